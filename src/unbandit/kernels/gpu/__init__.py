"""The same arithmetic on a GPU: loops of their own, around the functions that the CPU's loops call."""
