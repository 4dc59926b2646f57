"""How is it written? Text in, values out; values in, text out.

One door for JSON, JSONC, TOML and YAML: whatever the syntax, a document is an object of JSON's own types, and what
cannot be one is refused with the place and the way out. What the values *mean* is the other files of this room.
Positions are ``positions``, JSON itself is ``jsonc``. No file is opened here.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from outfitter.basics import quote
from outfitter.catalog import JsonValue
from outfitter.errors import InvalidDocument
from outfitter.formats import jsonc, positions
from outfitter.formats.jsonc import MAX_STRING
from outfitter.formats.positions import MAX_DEPTH, Draft, Path, YamlEntry, line_at, pointer

if TYPE_CHECKING:
    from yaml import SafeDumper, ScalarNode
    from yaml.events import AliasEvent, ScalarEvent

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_STRING",
    "JsonObject",
    "Syntax",
    "line_of",
    "lines_of",
    "parse_text",
    "pointer",
    "render_text",
]

JsonObject: TypeAlias = "dict[str, JsonValue]"

MAX_BYTES = 4 * 1024 * 1024
"""How many bytes a document may have, also with its YAML aliases written out."""
_SUFFIX = re.compile(r"^.*(?=\.)", re.DOTALL)
_SUFFIXES = {".json": "json", ".jsonc": "jsonc", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}


class Syntax(StrEnum):
    """The ways to write a document."""

    JSON = "json"
    JSONC = "jsonc"
    TOML = "toml"
    YAML = "yaml"

    @classmethod
    def of(cls, filename: str) -> Syntax:
        """The syntax that the file's suffix tells."""
        suffix = _SUFFIX.sub("", filename).lower()
        if suffix not in _SUFFIXES:
            hint = f"end the name in {', '.join(_SUFFIXES)}"
            raise InvalidDocument("the file's name does not tell how it is written", source=filename, hint=hint)
        return cls(_SUFFIXES[suffix])


def parse_text(data: bytes | str, *, source: str, syntax: Syntax) -> JsonObject:
    """The object that the text describes; InvalidDocument says what is wrong, where, and what to do."""
    text = _decode(data, source)
    if syntax is Syntax.JSON:
        draft = Draft(text, source, jsonc.json_entries)
        value = jsonc.read_json(draft)
    elif syntax is Syntax.JSONC:
        draft = Draft(text, source, jsonc.json_entries)
        value = jsonc.read_jsonc(draft)
    elif syntax is Syntax.TOML:
        return _read_toml(Draft(text.replace("\r\n", "\n"), source, positions.toml_entries))
    else:
        draft = Draft(text, source, positions.yaml_entries)
        value = _YamlReader(draft).read()
    if isinstance(value, dict):
        return value
    raise _not_an_object(draft, value)


def render_text(value: Mapping[str, object], syntax: Syntax) -> str:
    """The value as text, keys in their order; TOML alone puts the tables of each table behind its other keys."""
    draft = Draft("", f"{syntax.upper()} to write")
    plain = jsonc.plain_object(value, draft)
    if syntax is Syntax.TOML:
        return _render_toml(plain, draft)
    if syntax is Syntax.YAML:
        return _render_yaml(plain)
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def lines_of(data: str, paths: Collection[Path]) -> dict[Path, int]:
    """The lines, from 1, of the keys or list elements at these paths of a JSON text, all in one pass."""
    return positions.find_lines(data, frozenset(paths), jsonc.json_entries(data))


def line_of(data: str, path: Sequence[str | int], syntax: Syntax) -> int | None:
    """The line, from 1, of the key or list element at this path; None when there is none."""
    text = data.removeprefix(_BOM)
    entries = jsonc.json_entries
    if syntax is Syntax.JSONC:
        try:
            text = jsonc.without_comments(Draft(text, ""))
        except InvalidDocument:
            return None
    elif syntax is not Syntax.JSON:
        entries = positions.toml_entries if syntax is Syntax.TOML else positions.yaml_entries
    return positions.find_line(text, tuple(path), entries(text))


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_BOM = "\ufeff"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def _decode(data: bytes | str, source: str) -> str:
    """The text without its byte order mark, when it is UTF-8 and not too long."""
    if isinstance(data, str):
        try:
            data = data.encode()
        except UnicodeEncodeError as error:
            where = line_at(data, error.start)
        else:
            return _decode(data, source)
        message = "the text has half of a surrogate pair, which is not a character"
        raise InvalidDocument(message, source=source, line=where, hint="write the character itself")
    if len(data) > MAX_BYTES:
        message = f"the document has {len(data)} bytes, more than {MAX_BYTES // 1024 // 1024} MiB"
        raise InvalidDocument(message, source=source, hint="split it into smaller files")
    if data.startswith(_UTF16_MARKS) or b"\0" in data[:4]:
        raise InvalidDocument("the text is UTF-16 or UTF-32", source=source, line=1, hint="save the file as UTF-8")
    try:
        return data.decode().removeprefix(_BOM)
    except UnicodeDecodeError as error:
        start = error.start
    message = f"the byte at offset {start} is not UTF-8"
    raise InvalidDocument(message, source=source, line=data.count(b"\n", 0, start) + 1, hint="save the file as UTF-8")


def _not_an_object(draft: Draft, value: object) -> InvalidDocument:
    names = {"list": "a list", "str": "a string", "bool": "true or false", "NoneType": "null"}
    name = names.get(type(value).__name__, "a number")
    return draft.fault(f"the document is {name}, not an object", hint="write keys and values at the top level")


# ── TOML ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

_MANY_DOTS = re.compile(rf"^(?:[^.\n]*+\.){{{MAX_DEPTH}}}", re.MULTILINE)


def _read_toml(draft: Draft) -> JsonObject:
    import tomllib

    if _MANY_DOTS.search(draft.text):
        _refuse_long_keys(draft)
    refusal: InvalidDocument | None = None
    value: dict[str, object] = {}
    try:
        value = tomllib.loads(draft.text)
    except RecursionError:
        _refuse_long_keys(draft)
        refusal = draft.depth_fault(())
    except ValueError as error:
        refusal = positions.toml_fault(draft, str(error))
    if refusal:
        raise refusal  # here, not above: newer versions of the first error hold the whole text
    return jsonc.plain_object(value, draft)


def _refuse_long_keys(draft: Draft) -> None:
    """Look before ``tomllib`` does: it needs very long for very long dotted keys."""
    for entry in positions.toml_entries(draft.text):
        if len(entry.path) > MAX_DEPTH:
            raise draft.depth_fault(entry.path, at=entry.at)


def _render_toml(value: JsonObject, draft: Draft) -> str:
    import tomlkit

    def ready(member: JsonValue, path: Path) -> object:
        if member is None:
            raise draft.fault("TOML has no null", path=path, hint="leave the key out")
        if isinstance(member, dict):
            return {key: ready(inner, (*path, key)) for key, inner in member.items()}
        if isinstance(member, list):
            return [ready(inner, (*path, index)) for index, inner in enumerate(member)]
        return member

    text = tomlkit.dumps({key: ready(member, (key,)) for key, member in value.items()})
    return text if text.endswith("\n") else text + "\n"


# ── YAML ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

_PLAIN_SCALAR = re.compile(
    r"""(?P<null>~|null|Null|NULL|)
    |(?P<true>yes|Yes|YES|true|True|TRUE|on|On|ON)
    |(?P<false>no|No|NO|false|False|FALSE|off|Off|OFF)
    |(?P<integer>[-+]?(?:0|[1-9][0-9]*+)|0x[0-9a-fA-F]++)
    |(?P<unclear>[-+]?(?:0[0-9_]++|0b[01_]++|0o[0-7]++|0x[0-9a-fA-F_]++
                      |[0-9][0-9_]*+(?::[0-5]?[0-9])++(?:\.[0-9_]*+)?
                      |(?=[0-9.]*+_)[0-9][0-9_]*+(?:\.[0-9_]*+)?(?:[eE][-+]?[0-9]++)?))
    |(?P<number>[-+]?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)(?:[eE][-+]?[0-9]++)?)
    |(?P<infinite>[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))
    |(?P<date>[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]++)[0-9]{1,2}:[0-9:.]++[ \t]*+(?:Z|[-+][0-9:]++)?)?)
    """,
    re.VERBOSE,
)
"""What a word without quotes means. The same table tells the writer which strings need quotes."""
_REFUSED_SCALARS = {
    "unclear": ("YAML readers disagree about a number written like this", "put it in quotes, or write it in decimals"),
    "infinite": ("infinity and not-a-number are not JSON values", "write a finite number, or text in quotes"),
    "date": ("a date or time is not a JSON value", "put it in quotes"),
}
_CONSTANTS = {"null": None, "true": True, "false": False}
_MAX_DIGITS = 3500  # well below the number of digits that Python writes out again
_CONTROL = re.compile(r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029]")
_KNOWN_TAG = re.compile(r"!!(?:binary|bool|float|int|map|null|omap|pairs|python|seq|set|str|timestamp)\b")
_QUOTED = re.compile(r"'[^'<]{3,}'")
_TAG = "tag:yaml.org,2002:"


class _YamlReader:
    """One pass over the nodes of a YAML text; the length of a node's path tells which open container it goes into."""

    __slots__ = ("_anchors", "_draft", "_open", "_room", "_root")

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._root: list[JsonValue] = []
        self._open: list[JsonValue] = [self._root]
        self._anchors: dict[str, JsonValue] = {}
        self._room = MAX_BYTES - len(draft.text)

    def read(self) -> JsonValue:
        """The value of the only document in the text."""
        from yaml import MarkedYAMLError, YAMLError

        try:
            for node in positions.yaml_nodes(self._draft.text):
                self._take(node)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            message = f"not valid YAML: {_QUOTED.sub('…', str(error.problem or error.context))}"
            at = mark.index if mark else 0
        except YAMLError:
            message = "not valid YAML: a control character"
            control = _CONTROL.search(self._draft.text)
            at = control.start() if control else 0
        else:
            if self._root:
                return self._root[0]
            raise self._draft.fault("the document is empty", hint="write at least {}")
        raise self._draft.fault(message, at=at, hint="correct the file here or just before")

    def _take(self, node: YamlEntry) -> None:
        if node.is_key:
            self._check_key(node)
            return
        del self._open[len(node.path) + 1 :]
        if self._root and not node.path:
            raise self._refuse(node, "the file has more than one document", "keep one document per file")
        parent = self._open[-1]
        value = self._value(node)
        if isinstance(parent, dict):
            parent[str(node.path[-1])] = value
        elif isinstance(parent, list):
            parent.append(value)

    def _refuse(self, node: YamlEntry, message: str, hint: str) -> InvalidDocument:
        return self._draft.fault(message, path=node.path, at=node.at, hint=hint)

    def _check_key(self, node: YamlEntry) -> None:
        from yaml.events import ScalarEvent

        if not isinstance(node.event, ScalarEvent):
            raise self._refuse(node, "a key is not a string", "write a plain or quoted string")
        key = self._text(node, node.event)
        if key == "<<" and _is_plain(node.event):
            raise self._refuse(node, "the merge key << is not supported", "write the entries out")
        if _is_plain(node.event) and _kind_of(key) != "text":
            raise self._refuse(node, f"YAML does not read the key {quote(key)} as a string", "put the key in quotes")
        del self._open[len(node.path) + 1 :]
        parent = self._open[-1]
        if isinstance(parent, dict) and key in parent:
            raise self._draft.repeat_fault(node.path, at=node.at)
        if node.event.anchor is not None:
            self._anchors[node.event.anchor] = key

    def _value(self, node: YamlEntry) -> JsonValue:
        from yaml.events import AliasEvent, CollectionStartEvent, MappingStartEvent, ScalarEvent

        event = node.event
        if isinstance(event, AliasEvent):
            return self._copy(node, event)
        value: JsonValue = None
        if isinstance(event, ScalarEvent):
            value = self._scalar(node, event)
        elif isinstance(event, CollectionStartEvent):
            is_object = isinstance(event, MappingStartEvent)
            value = {} if is_object else []
            self._check_tag(node, event.tag, "map" if is_object else "seq")
            if len(node.path) >= MAX_DEPTH:
                raise self._draft.depth_fault(node.path, at=node.at)
            self._open.append(value)
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _copy(self, node: YamlEntry, alias: AliasEvent) -> JsonValue:
        """What the alias stands for, as a copy, so that no two parts of a document are one object."""
        if alias.anchor not in self._anchors:
            hint = "put a value that begins with * in quotes, or define the anchor above"
            raise self._refuse(node, "this alias names no anchor", hint)
        value = self._anchors[alias.anchor]
        if any(value is container for container in self._open):
            raise self._refuse(node, "this alias refers to a value that contains it", "take it out")
        text = json.dumps(value, ensure_ascii=False)
        self._room -= len(text)
        if self._room < 0:
            message = f"with its aliases written out the document has more than {MAX_BYTES // 1024 // 1024} MiB"
            raise self._refuse(node, message, "use fewer aliases")
        if len(node.path) + jsonc.depth_of(text) > MAX_DEPTH:
            raise self._draft.depth_fault(node.path, at=node.at)
        return json.loads(text)

    def _scalar(self, node: YamlEntry, event: ScalarEvent) -> JsonValue:
        text = self._text(node, event)
        kind = _kind_of(text) if _is_plain(event) else "text"
        if kind in _REFUSED_SCALARS:
            message, hint = _REFUSED_SCALARS[kind]
            raise self._refuse(node, message, hint)
        if kind == "integer":
            return self._whole_number(node, text)
        if kind == "number":
            return jsonc.plain_value(float(text), self._draft, node.path)
        return _CONSTANTS.get(kind, text)

    def _whole_number(self, node: YamlEntry, text: str) -> JsonValue:
        if len(text) > _MAX_DIGITS:
            raise self._refuse(node, "this whole number has too many digits", "write it as text in quotes")
        return int(text, 16 if text.startswith("0x") else 10)

    def _text(self, node: YamlEntry, event: ScalarEvent) -> str:
        """What is written there, when it is written without a tag that asks for more."""
        self._check_tag(node, event.tag, "str")
        return jsonc.plain_string(event.value, self._draft, node.path)

    def _check_tag(self, node: YamlEntry, tag: str | None, usual: str) -> None:
        """Refuse a tag; only well-known ones are named, for the others may be a password that begins with !."""
        if tag in {None, "!", _TAG + usual}:
            return
        known = _KNOWN_TAG.match(str(tag).replace(_TAG, "!!"))
        message = f"the YAML tag {known[0]} is not supported" if known else "YAML tags are not supported"
        raise self._refuse(node, message, "take the tag out, or put a value that begins with ! in quotes")


def _is_plain(event: ScalarEvent) -> bool:
    """Whether it is written without quotes and tag, so that its meaning depends on its letters."""
    return event.tag is None and event.implicit[0]


def _kind_of(text: str) -> str:
    meaning = _PLAIN_SCALAR.fullmatch(text)
    return str(meaning.lastgroup) if meaning else "text"


def _render_yaml(value: JsonObject) -> str:
    import yaml

    return yaml.dump(value, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=sys.maxsize)


@cache
def _dumper() -> type[SafeDumper]:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes equal parts out, long texts as blocks, and quotes around whatever might not be read as text."""

        def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 (the name is PyYAML's)
            return True

    def represent_text(_: SafeDumper, text: str) -> ScalarNode:
        if _OTHER_BREAKS.search(text):
            style = '"'  # in the other styles PyYAML breaks lines here that do not come back
        else:
            style = "|" if "\n" in text else None if _kind_of(text) == "text" else "'"
        return yaml.ScalarNode(_TAG + "str", text, style=style)

    Dumper.add_representer(str, represent_text)
    return Dumper
