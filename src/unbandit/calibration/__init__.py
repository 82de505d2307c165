"""How far the answers can be trusted: intervals, errors and names, measured on simulated records whose truth is known.

`settings` says what is simulated, `trials` simulates it on means drawn from the prior, `closed_forms` are studies on
fixed means; `metrics` turns rows into scores, `criteria` compares those with what is to be reached, `calibrate` does it
all in a folder, `page` holds the result and writes it down.
"""

from unbandit.calibration.calibrate import calibrate
from unbandit.calibration.page import Calibration

__all__ = ["Calibration", "calibrate"]
