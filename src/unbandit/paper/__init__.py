"""The paper's figures, each with what is claimed about it (`figure.py`), and `unbandit reproduce` (`reproduce.py`)."""
