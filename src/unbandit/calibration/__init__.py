"""How far the answers can be trusted: intervals, errors and names, measured on simulated records whose truth is known.

`settings` says what is played, `trials` plays it on means drawn from the prior, `posteriors` and `identified` are the
two kinds of trial, `closed_forms` are studies on fixed means; `measures` and `coverage` make figures of the rows,
`goals` and `reaching` compare them with what is to be reached, `measuring` does it all in a folder, `page` writes it
down.
"""

from unbandit.calibration.calibrate import Calibration, calibrate

__all__ = ["Calibration", "calibrate"]
