"""The paper's pictures, one small file each, and what is claimed about them.

A `Picture` names the studies it needs, draws their results, hands over the rows behind the drawing, and puts what the
paper says to the test. `registry.py` lists the pictures; `reproduce.py` makes them; `page.py` shows them on one page.
"""
