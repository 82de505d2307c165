"""Compiled arithmetic: arrays in, arrays out, nothing else of ours.

`scalar` holds the formulas of one number, `compiling` how they are compiled and kept, and the other files one
loop each.
"""
