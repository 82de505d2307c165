"""How far the answers can be trusted: intervals, errors and names, measured on simulated records whose truth is known.

`settings` says what is played, `trials` plays it, `metrics` turns the rows into scores, `criteria` compares those with
what is to be reached and writes the page, `calibrate` does it all in a folder.
"""

from unbandit.calibration.calibrate import calibrate
from unbandit.calibration.criteria import Calibration

__all__ = ["Calibration", "calibrate"]
