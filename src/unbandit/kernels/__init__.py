"""Compiled arithmetic: arrays in, arrays out. It imports nothing else of this package.

`compile` compiles and caches, `formula` connects a rule's formulas to the loops, `rng` and `special` hold functions of
one number; the other files hold one kind of loop each, `smc` the particle filters, `gpu` the loops for a GPU.
"""
