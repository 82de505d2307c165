"""How far the answers can be trusted: intervals, errors and names, measured on simulated records whose truth is known.

`measure` says what a measure is; `closed_forms`, `posterior`, `identify`, `misfits` and `speed` define one or two each.
`criteria` compares scores with goals, `page` writes them down, `calibrate` does it all in a folder.
"""

from unbandit.calibration.calibrate import Calibration, calibrate, read_calibration

__all__ = ["Calibration", "calibrate", "read_calibration"]
