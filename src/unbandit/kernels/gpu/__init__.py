"""The same arithmetic on a GPU: separate loops, around the functions that the CPU's loops call."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # numba's use of what NumPy deprecates concerns no user of this package
    import numba.cuda  # noqa: F401
