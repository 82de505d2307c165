"""The paper's figures, one small file each, and what is claimed about them.

A `Figure` names the studies it needs, draws their results, hands over the rows behind the drawing, and puts what the
paper says to the test. `registry.py` lists the figures; `reproduce.py` makes them; `page.py` shows them on one page.
"""
