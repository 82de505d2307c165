"""A report of an answer that can be sent to a colleague: one file that needs no other.

Names are imported when they are first used: `unbandit estimate` needs the sentence, and neither templates nor figures.
"""

import warnings
from typing import Any

import lazy_loader

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name == "Source":
        message = "unbandit.reporting.Source is now unbandit.reporting.LogSource; the old name goes in version 0.7."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return _public("LogSource")
    return _public(name)
