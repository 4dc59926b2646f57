"""Where in a text does a credential stand? By the name beside it, by its look, by its disorder.

It would rather take a harmless value for a secret than the other way round: a variable too many is a nuisance, a
secret in a catalog is a leak. What is done with a find is ``conceal``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from outfitter.basics import looks_sensitive
from outfitter.formats.clients.naming import words_of

_ALSO_SENSITIVE = frozenset({"auth", "bearer", "key", "pass", "passphrase", "pat", "pw", "signature"})
_SWITCH = re.compile(r"(?:no|use|enable|disable|skip|with|without|require|allow)[-_]", re.IGNORECASE)
_FLAG = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*)")
HARMLESS = frozenset({"", "0", "1", "true", "false"})

_SCHEMES = r"(?:Bearer|Basic|Token|ApiKey|Digest|Negotiate)[ \t]+"
SCHEME = re.compile(_SCHEMES, re.IGNORECASE)
_MARKED = re.compile(
    r"""(?<![A-Za-z0-9])(?:
    (?:sk|pk|rk)-(?=[\w-]{0,200}\d)[\w-]{12,}
    |(?:sk|pk|rk)_(?:live|test)_\w{8,}
    |gh[a-z]_[A-Za-z0-9]{8,} |github_pat_\w{8,} |glpat-[\w-]{8,}
    |xox[a-z]-(?=[\w-]{0,200}\d)[\w-]{8,}
    |(?:AKIA|ASIA)[0-9A-Z]{12,} |AIza[\w-]{20,} |ya29\.[\w-]{8,}
    |eyJ[\w-]{8,}(?:\.[\w-]*){0,2}
    |(?:hf|npm|dop_v1|ntn|lin_api|figd|secret)_(?=\w{0,200}\d)\w{12,}
    |(?:pypi|tvly|pplx|gsk|fc|ctx7sk)-(?=[\w-]{0,200}\d)[\w-]{16,}
    |SG\.[\w-]{8,}(?:\.[\w-]*)?
    |-----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----[\s\S]*
    )""",
    re.VERBOSE,
)
_WITH_SCHEME = re.compile(rf"(?<![A-Za-z0-9]){_SCHEMES}(?P<value>(?=\S{{0,200}}\d)\S{{8,}}|\S{{20,}})", re.IGNORECASE)
_NAME = re.compile(
    r"""(?<![\w.-])(?P<dashes>-{0,2})(?P<name>[A-Za-z][\w.-]*+)(?:["']?\s*+[=:]\s*+|(?P<space>\s++)(?=[^\s-]))["']?"""
)
_VALUE = re.compile(rf"(?:{_SCHEMES})?(?P<value>[^\s&;,\"'{{}}]+)", re.IGNORECASE)
_USERINFO = re.compile(r"://(?P<value>[^\s/@?#]++)@")
_REFERENCE = re.compile(r"\$\w+|%\w+%|\$\([^)]*\)")
_WORD = re.compile(r"(?<![A-Za-z0-9_+=-])[A-Za-z0-9_+=-]{24,}")
_HEX = re.compile(r"[0-9a-fA-F]{32,}")
_DIGEST = re.compile(r"(?:sha\d+|md5)[:=-]$", re.IGNORECASE)
_DISORDER = 3.7
_HEX_DISORDER = 3.0


def is_sensitive(name: str) -> bool:
    """Whether a value of this name is taken for a secret whatever it looks like."""
    words = words_of(name).lower()
    return looks_sensitive(name) or looks_sensitive(words) or words.rpartition("_")[2] in _ALSO_SENSITIVE


def takes_secret(flag: str) -> bool:
    """Whether the argument after this one is taken for a secret: yes for ``--api-key``, no for ``--no-auth``."""
    match = _FLAG.fullmatch(flag)
    return match is not None and _SWITCH.match(match["name"]) is None and is_sensitive(match["name"])


@dataclass(frozen=True, slots=True, order=True)
class Find:
    """Where a credential stands in a text, and what it seems to be called."""

    start: int
    end: int
    hint: str


def find_credentials(text: str) -> list[Find]:
    """Every credential in the text, in order, none overlapping another."""
    finds: list[Find] = []
    for find in sorted([*_named(text), *_marked(text), *_disordered(text)], key=lambda find: (find.start, -find.end)):
        if not finds or find.start >= finds[-1].end:
            finds.append(find)
    return finds


def mask(text: str) -> str:
    """The text as it may be shown: dots where a credential stands."""
    pieces: list[str] = []
    end = 0
    for find in find_credentials(text):
        pieces += text[end : find.start], "•••"
        end = find.end
    return "".join([*pieces, text[end:]])


def mask_marked(text: str, dots: str) -> str:
    """The text without what is a credential by its look alone, such as ``ghp_…``; names and disorder do not count."""
    pieces: list[str] = []
    end = 0
    for find in sorted(_marked(text)):
        if find.start >= end:
            pieces += text[end : find.start], dots
            end = find.end
    return "".join([*pieces, text[end:]])


def _named(text: str) -> Iterator[Find]:
    """What stands after ``name=``, ``name:`` or ``--name `` when the name says that it is a secret."""
    start = 0
    while (name := _NAME.search(text, start)) is not None:
        start = name.end()
        is_flag = name["space"] is None or (name["dashes"] and _SWITCH.match(name["name"]) is None)
        value = _VALUE.match(text, start) if is_flag and is_sensitive(name["name"]) else None
        if value is not None:
            start = value.end()
            if value["value"].lower() not in HARMLESS and _REFERENCE.fullmatch(value["value"]) is None:
                yield Find(*value.span("value"), name["name"])


def _marked(text: str) -> Iterator[Find]:
    yield from (Find(*match.span(), "token") for match in _MARKED.finditer(text))
    yield from (Find(*match.span("value"), "token") for match in _WITH_SCHEME.finditer(text))
    for match in _USERINFO.finditer(text):
        is_web = text[max(0, match.start() - 5) : match.start()].lower().endswith(("http", "https"))
        if is_web or ":" in match["value"]:
            yield Find(*match.span("value"), "credentials")


def _disordered(text: str) -> Iterator[Find]:
    for match in _WORD.finditer(text):
        if _is_disordered(match[0]) and not _DIGEST.search(text[max(0, match.start() - 8) : match.start()]):
            yield Find(*match.span(), "secret")


def _is_disordered(word: str) -> bool:
    if _HEX.fullmatch(word):
        return _entropy(word) > _HEX_DISORDER
    kinds = (str.isupper, str.islower, str.isdigit)
    return all(any(kind(ch) for ch in word) for kind in kinds) and _entropy(word) > _DISORDER


def _entropy(word: str) -> float:
    """Bits for each character: about 3 for a name, over 4 for a random key."""
    return -sum(count / len(word) * math.log2(count / len(word)) for count in Counter(word).values())
