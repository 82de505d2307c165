"""A report of an answer that can be sent to a colleague: one file that needs no other.

Names are imported when they are first used: `unbandit estimate` needs the sentence, and neither templates nor figures.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
