"""A report of an answer that can be sent to a colleague: one file that needs no other."""
