"""Which Python names the words of a schema get: identifiers for keys, class names for tools.

Keys are foreign text. Whatever they contain, the result is a plain identifier, the same one every time.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable, Mapping

EXTRA = "extra_"
"""The attribute that keeps properties the schema does not name; no field gets this name."""
_MOST_CHARACTERS = 80
_PLAIN_KEY = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]{0,79}", re.ASCII)
_TAKEN = frozenset((*keyword.kwlist, EXTRA))


def field_names(keys: Iterable[str]) -> Mapping[str, str]:
    """The field name of each key: the key itself where it is an identifier, otherwise one much like it."""
    listed = list(keys)
    names = {key: key for key in listed if _is_plain(key)}
    if len(names) == len(listed):
        return names
    taken = dict.fromkeys((EXTRA, *names), 1)
    for key in listed:
        if key not in names:
            names[key] = unique(_identifier(key), taken)
    return {key: names[key] for key in listed}


def _is_plain(key: str) -> bool:
    return _PLAIN_KEY.fullmatch(key) is not None and key not in _TAKEN


def _identifier(key: str) -> str:
    text = re.sub(r"\W", "_", unicodedata.normalize("NFKC", key[:_MOST_CHARACTERS]))
    if not text or text.startswith("__") or not f"_{text}".isidentifier():
        text = f"field_{re.sub(r'[^0-9A-Za-z]+', '_', text).strip('_')}".rstrip("_")
    if text[0].isdigit():
        text = f"_{text}"
    return f"{text}_" if keyword.iskeyword(text) else text


def unique(name: str, taken: dict[str, int]) -> str:
    """The name, with a number where it is taken; it is taken from now on. The last number of each name is kept."""
    found = name
    while found in taken:
        taken[name] += 1
        found = f"{name}_{taken[name]}"
    taken[found] = 1
    return found


def class_name(text: str, suffix: str = "") -> str:
    """``GithubCreateIssueParams`` for ``github_create_issue`` and ``Params``."""
    parts = re.findall(r"[A-Za-z0-9]+", text)
    name = "".join(f"{part[0].upper()}{part[1:]}" for part in parts)[:_MOST_CHARACTERS]
    name = name if not name[:1].isdigit() else f"Tool{name}"
    return f"{name}{suffix}" or "Value"
