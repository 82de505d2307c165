"""Read the small languages of options: lists of arms, `key=value`."""

from __future__ import annotations

from unbandit.errors import ParameterError

__all__ = ["anchor_from", "arm_list", "assignments", "numbers"]


def arm_list(text: str | None) -> list[str] | None:
    """Read `A,B,C`; a name with a comma in it is put in double quotes.

    Examples
    --------
    >>> arm_list('A,"B, large",C')
    ['A', 'B, large', 'C']
    """
    if text is None:
        return None
    import csv

    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not all(names) or not names:
        raise ParameterError(f'expected names between commas, as in A,B,C; got "{text}".', parameter="arms")
    return names


def assignments(option: str, text: str | None) -> dict[str, str] | None:
    """Read `key=value,key=value`; a pair with a comma in it is put in double quotes.

    Examples
    --------
    >>> assignments("--columns", 'arm=picked, round=week, "reward=gain, in euros"')
    {'arm': 'picked', 'round': 'week', 'reward': 'gain, in euros'}
    """
    if text is None:
        return None
    import csv

    pairs = {}
    for part in next(csv.reader([text], skipinitialspace=True), []):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals):
            raise ParameterError(f'expected key=value,key=value; got "{part}".', parameter=option)
        pairs[key] = value
    return pairs


def numbers(option: str, text: str) -> list[float]:
    """Read `1,0.5`.

    Examples
    --------
    >>> numbers("--means", "1, 0.5")
    [1.0, 0.5]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f'expected numbers between commas, as in 1,0.5; got "{text}".', parameter=option) from None


def anchor_from(text: str | None) -> dict[str, float] | None:
    """Read `ARM=VALUE`; the arm's name may have an equals sign of its own."""
    if text is None:
        return None
    arm, _, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        arm = ""
    if not arm.strip():
        raise ParameterError(f'expected ARM=VALUE, as in B=0.4; got "{text}".', parameter="anchor")
    return {arm.strip(): number}
