"""Every public name is on a page of the API, once."""

from __future__ import annotations

import re
from collections import Counter

from documents_shown import ROOT

import unbandit

NAMED = re.compile(r"^\.\. auto(?:function|class|exception|module|data):: unbandit\.(\w+)$", re.MULTILINE)


def test_every_public_name_is_there_once():
    text = "".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.md")))
    named = Counter(NAMED.findall(text))
    assert [name for name, times in named.items() if times > 1] == []
    assert set(named) == set(unbandit.__all__) - {"__version__"}
    assert "`unbandit.__version__`" in text
