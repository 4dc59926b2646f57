"""What of an exchange may be written into a file? Everything but secrets, which a mask replaces. Pure.

A secret is what the rules of ``calls`` call one (by its name, by the tool's schema), what looks like a credential,
and every text that this process got as one: from its environment, in a header, or in an argument that was masked
before. So what a server repeats of it is masked, too. ``matching`` lets anything stand where a mask stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import quote

from outfitter.basics import MASK
from outfitter.calls import redact
from outfitter.formats import Exchange, find_credentials, is_sensitive, mask_marked

_SHORTEST, _SHORTEST_INSIDE = 4, 6
_DEFINING = frozenset({"initialize", "server/discover"})
_OPAQUE = frozenset({"data", "blob", "cursor", "nextCursor", "requestState"})
_KEPT = frozenset({"inputRequests", "_meta"})
_FOLDERS = frozenset({"PWD", "OLDPWD"})
_HARMLESS = frozenset({MASK, "true", "false", "none", "null"})


def words_of_environment(environment: Mapping[str, str], hidden: Iterable[str] = ()) -> set[str]:
    """The texts in an environment that must never be written: whole values by their names, parts by their look."""
    named = set(hidden)
    words = {
        value for name, value in environment.items() if name in named or (is_sensitive(name) and name not in _FOLDERS)
    }
    return words | {word for value in environment.values() for word in words_of_text(value)}


def words_of_text(text: str) -> set[str]:
    """The credentials that stand in a command line or in an address."""
    return {text[find.start : find.end] for find in find_credentials(text)}


class Masker:
    """Masks exchanges and notices; learns new secrets and the schemas of tools as they pass."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._words: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        self._learn(words)

    def text(self, text: str) -> str:
        """The text without any secret."""
        return self._without_words(mask_marked(text, MASK))

    def exchange(self, given: Exchange) -> Exchange:
        """The exchange as it may be written, with pointers to what was masked; ``_meta`` of the request is left out."""
        self._learn_tools(given)
        params = {key: value for key, value in given.params.items() if key != "_meta"}
        heard = replace(given, params=params)
        masked = replace(
            heard,
            params=self._clean(self._params(given.method, params)),
            result=None if given.result is None else self._clean(self._result(given, given.result)),
            error=None if given.error is None else self._clean(self._redact(given.error)),
            notices=tuple(map(self.notice, given.notices)),
            questions=tuple(map(self.notice, given.questions)),
        )
        places = [
            *_differing(heard.params, masked.params, "/params"),
            *_differing(heard.result, masked.result, "/result"),
            *_differing(heard.error, masked.error, "/error"),
        ]
        return replace(masked, masked=tuple(places))

    def notice(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """A notice or a question as it may be written."""
        params = message.get("params")
        kept = {"method": message["method"]}
        return kept if not isinstance(params, dict) else {**kept, "params": self._clean(cast("dict[str, Any]", params))}

    # ── by name and schema ──

    def _params(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method in _DEFINING:
            return params
        redacted = self._redact(params)
        arguments = params.get("arguments")
        if method == "tools/call" and isinstance(arguments, dict):
            schema = self._inputs.get(str(params.get("name")))
            redacted["arguments"] = self._redact(cast("dict[str, Any]", arguments), schema)
        return redacted

    def _result(self, given: Exchange, result: dict[str, Any]) -> dict[str, Any]:
        """Definitions stay as they are: there a name such as ``token`` is a property and not a value."""
        if given.method in _DEFINING or given.method.endswith("/list"):
            return result
        values = {key: value for key, value in result.items() if key not in _KEPT}
        redacted = {**result, **self._redact(values)}
        structured = result.get("structuredContent")
        if isinstance(structured, dict):
            schema = self._outputs.get(given.target)
            redacted["structuredContent"] = self._redact(cast("dict[str, Any]", structured), schema)
        return cast("dict[str, Any]", self._texts(redacted))

    def _texts(self, value: object) -> object:
        """The value with every ``text`` that holds JSON masked as that JSON would be."""
        if isinstance(value, list):
            return [self._texts(item) for item in cast("list[object]", value)]
        if not isinstance(value, dict):
            return value
        members = cast("dict[str, Any]", value)
        return {
            key: self._json_text(item) if key == "text" and isinstance(item, str) else self._texts(item)
            for key, item in members.items()
        }

    def _json_text(self, text: str) -> str:
        if not text.lstrip().startswith(("{", "[")):
            return text
        try:
            value: Any = json.loads(text)
        except (ValueError, RecursionError):
            return text
        masked = self._redact({"text": value})["text"]
        return text if masked == value else json.dumps(masked, ensure_ascii=False)

    def _redact(self, members: Mapping[str, Any], schema: Any = None) -> dict[str, Any]:  # noqa: ANN401 - JSON
        redacted = cast("dict[str, Any]", redact(members, schema))
        self._learn(_replaced(members, redacted))
        return redacted

    def _learn_tools(self, given: Exchange) -> None:
        tools = (given.result or {}).get("tools") if given.method == "tools/list" else None
        for tool in cast("list[Any]", tools) if isinstance(tools, list) else ():
            if isinstance(tool, dict):
                told = cast("dict[str, Any]", tool)
                self._inputs[str(told.get("name"))] = _schema(told.get("inputSchema"))
                self._outputs[str(told.get("name"))] = _schema(told.get("outputSchema"))

    # ── by text ──

    def _learn(self, words: Iterable[str]) -> None:
        new = {word for word in words if len(word) >= _SHORTEST and word.lower() not in _HARMLESS} - self._words
        if new:
            self._words |= new
            forms = {form for word in self._words for form in (word, json.dumps(word)[1:-1], quote(word, safe=""))}
            longest_first = sorted(forms, key=lambda form: (-len(form), form))
            self._pattern = re.compile("|".join(map(_pattern_of, longest_first)))

    def _without_words(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def _clean(self, members: dict[str, Any]) -> dict[str, Any]:
        return {self._without_words(key): self._clean_value(key, value) for key, value in members.items()}

    def _clean_value(self, key: str, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            return self._without_words(value) if key in _OPAQUE else self.text(value)
        if isinstance(value, list):
            return [self._clean_value(key, item) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            return self._clean(cast("dict[str, Any]", value))
        return MASK if not isinstance(value, bool) and str(value) in self._words else value


def _pattern_of(word: str) -> str:
    """A short word is meant where it stands alone; a longer one wherever it stands."""
    escaped = re.escape(word)
    return escaped if len(word) >= _SHORTEST_INSIDE else rf"(?<!\w){escaped}(?!\w)"


def _schema(value: object) -> object:
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType] - JSON


def _replaced(given: object, masked: object) -> Iterator[str]:
    """The texts that a mask now stands for."""
    if isinstance(given, dict) and isinstance(masked, dict):
        members = cast("dict[str, Any]", masked)
        for key, value in cast("dict[str, Any]", given).items():
            yield from _replaced(value, members.get(key))
    elif isinstance(given, list) and isinstance(masked, list):
        for value, other in zip(cast("list[Any]", given), cast("list[Any]", masked), strict=True):
            yield from _replaced(value, other)
    elif masked == MASK:
        yield from _leaves(cast("object", given))


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for item in cast("dict[str, Any]", value).values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _leaves(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _differing(given: object, masked: object, place: str) -> Iterator[str]:
    """Pointers to the values that are not what they were."""
    if isinstance(given, dict) and isinstance(masked, dict):
        before, after = cast("dict[str, Any]", given), cast("dict[str, Any]", masked)
        if before.keys() != after.keys():
            yield place
            return
        for key in after:
            yield from _differing(before[key], after[key], f"{place}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(given, list) and isinstance(masked, list):
        for index, pair in enumerate(zip(cast("list[Any]", given), cast("list[Any]", masked), strict=True)):
            yield from _differing(*pair, f"{place}/{index}")
    elif given != masked:
        yield place
