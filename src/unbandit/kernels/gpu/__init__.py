"""The same arithmetic on a GPU: loops of their own, around the functions that the CPU's loops call."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what numba does that NumPy deprecates is not ours to tell
    import numba.cuda  # noqa: F401
