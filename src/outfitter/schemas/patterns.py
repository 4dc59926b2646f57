r"""How large would a regular expression be when compiled? Counted from its text, before any engine sees it.

Counted repetitions inside each other multiply: ``(\w{100}){100}`` is ten thousand classes. The count need not be
exact; it must not be small for a pattern that is large.
"""

from __future__ import annotations

import re

CAP = 100_000
_PROPERTY = 600
_MANY = 12
_CASES = 3
_TOKEN = re.compile(
    r"""\\[pP]\{[^}]*\} | \\. | \[(?:\\.|[^\]\\])*\] | \{(?P<low>\d{1,6})(?:,(?P<high>\d{0,6}))?\} | .""",
    re.VERBOSE | re.DOTALL,
)


def weight_of(pattern: str) -> int:
    """About how many parts the compiled pattern has, counted no further than the cap."""
    sizes, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        text = token.group()
        if text == "(":
            sizes.append(0)
            last = 0
        elif text == ")" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        elif token["low"]:
            repeated = last * max(int(token["high"] or token["low"]), 1)
            sizes[-1] += repeated - last
            last = repeated
        else:
            last = _size(text)
            sizes[-1] += last
        if sizes[-1] > CAP:
            return CAP
    return sum(sizes) * (_CASES if "(?i" in pattern else 1)


def _size(text: str) -> int:
    """How many parts one character, class or escape becomes: the wider it is in Unicode, the more."""
    if "\\p" in text.lower():
        return _PROPERTY
    return _MANY if text == "." or text.startswith("[^") or "\\S" in text or "\\W" in text or "\\D" in text else 1
