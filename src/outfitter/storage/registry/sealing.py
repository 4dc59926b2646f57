"""Sealed literals inside a document: ``{"$sealed": "..."}`` in the place of the value, bound to that place.

A sealed literal that is copied to another entry or another pointer does not open. Which literals are sensitive is not
decided here: the caller names their JSON pointers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, cast

from outfitter.errors import InvalidDocument
from outfitter.storage.registry.keys import KeyRing

SEALED = "$sealed"
MARK = f'"{SEALED}"'
_Swap = Callable[[str, object], object]


@dataclass(frozen=True, slots=True)
class Sealer:
    """Seals and opens what is sensitive in the documents of one place, such as an entry."""

    keys: KeyRing
    kind: str
    id: str

    def write(self, document: object, sealed: AbstractSet[str]) -> str:
        """The document as text, its sensitive literals sealed; what is sealed already must open here."""
        missing = set(sealed)

        def swap(pointer: str, value: object) -> object:
            text = sealed_text(value)
            if pointer in sealed or text is not None:
                missing.difference_update({inner for inner in missing if f"{inner}/".startswith(f"{pointer}/")})
            if text is not None:
                self._reopen(pointer, text)
                return value
            return self._seal(pointer, value) if pointer in sealed else _KEEP

        done = _walk("", document, swap)
        if missing:
            hint = "the pointers of sealed literals must be in the document"
            raise InvalidDocument("there is nothing to seal", source=self._source, path=min(missing), hint=hint)
        return json.dumps(done, separators=(",", ":"))

    def read(self, text: str) -> tuple[Any, frozenset[str]]:
        """The document with every literal open, and where the sealed ones are."""
        document = json.loads(text)
        if MARK not in text:
            return document, frozenset()
        found: set[str] = set()

        def swap(pointer: str, value: object) -> object:
            sealed = sealed_text(value)
            if sealed is None:
                return _KEEP
            found.add(pointer)
            return json.loads(self.keys.open(sealed, self._place(pointer)))

        return _walk("", document, swap), frozenset(found)

    def reseal(self, text: str) -> str:
        """The same document with every sealed literal under the newest key."""
        document, sealed = self.read(text)
        return self.write(document, sealed)

    def _seal(self, pointer: str, value: object) -> dict[str, str]:
        return {SEALED: self.keys.seal(json.dumps(value).encode(), self._place(pointer))}

    def _reopen(self, pointer: str, text: str) -> None:
        if not self.keys.opens(text, self._place(pointer)):
            hint = "give the value itself"
            raise InvalidDocument(f"'{SEALED}' does not open here", source=self._source, path=pointer, hint=hint)

    def _place(self, pointer: str) -> bytes:
        return json.dumps([self.kind, self.id, pointer]).encode()

    @property
    def _source(self) -> str:
        return f"{self.kind}/{self.id}"


_KEEP = object()


def sealed_text(value: object) -> str | None:
    """What is inside a sealed literal; None for anything else."""
    if not isinstance(value, dict):
        return None
    fields = cast("dict[object, object]", value)
    text = fields.get(SEALED)
    return text if len(fields) == 1 and isinstance(text, str) else None


def _walk(pointer: str, value: object, swap: _Swap) -> object:
    """A copy of a JSON value in which ``swap`` has replaced what it wanted to."""
    swapped = swap(pointer, value)
    if swapped is not _KEEP:
        return swapped
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return {key: _walk(f"{pointer}/{_escaped(key)}", item, swap) for key, item in fields.items()}
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        return [_walk(f"{pointer}/{number}", item, swap) for number, item in enumerate(items)]
    return value


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
