from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from typing import cast

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from outfitter.catalog import JsonValue
from outfitter.errors import InvalidDocument
from outfitter.formats import MAX_BYTES, Syntax, line_of, parse_text, pointer, render_text

JSON, JSONC, TOML, YAML = Syntax.JSON, Syntax.JSONC, Syntax.TOML, Syntax.YAML
MAX_STRING = 1024 * 1024
LONG = "x" * (MAX_STRING + 1)


def read(data: bytes | str, syntax: Syntax) -> dict[str, JsonValue]:
    return parse_text(data, source="team.conf", syntax=syntax)


def refusal(data: bytes | str, syntax: Syntax) -> InvalidDocument:
    with pytest.raises(InvalidDocument) as caught:
        read(data, syntax)
    assert caught.value.source == "team.conf"
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    return caught.value


@pytest.fixture(params=["libyaml", "pure Python"])
def yaml_reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both of PyYAML's parsers: the fast one is missing on some machines."""
    if request.param == "pure Python":
        monkeypatch.delattr(yaml, "CSafeLoader")
    return str(request.param)


# ── which syntax ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("filename", "syntax"),
    [("a.json", JSON), ("a.jsonc", JSONC), ("a.toml", TOML), ("a.yaml", YAML), ("team/a.b.YML", YAML), (".json", JSON)],
)
def test_the_suffix_tells_the_syntax(filename: str, syntax: Syntax) -> None:
    assert Syntax.of(filename) is syntax


@pytest.mark.parametrize("filename", ["json", "a.txt", "a", "", "a.json.bak", "a.json/b"])
def test_an_unknown_suffix_is_refused_with_the_known_ones(filename: str) -> None:
    with pytest.raises(InvalidDocument, match=r"\.json, \.jsonc, \.toml, \.yaml, \.yml"):
        Syntax.of(filename)


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("syntax", list(Syntax))
def test_invalid_utf8_is_refused_with_offset_and_line(syntax: Syntax) -> None:
    error = refusal(b'{"a": 1,\n"b": "\xff"}', syntax)
    assert error.line == 2
    assert "offset 15" in error.message
    assert "UTF-8" in error.hint


@pytest.mark.parametrize(("data", "syntax"), [('{"a": 1}', JSON), ('{"a": 1}', JSONC), ("a = 1", TOML), ("a: 1", YAML)])
def test_a_byte_order_mark_is_accepted(data: str, syntax: Syntax) -> None:
    assert read(data.encode("utf-8-sig"), syntax) == read("\ufeff" + data, syntax) == {"a": 1}
    assert line_of("\ufeff\n" + data, ["a"], syntax) == 2


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_utf16_and_utf32_are_refused_clearly(encoding: str) -> None:
    error = refusal('{"a": 1}'.encode(encoding), JSON)
    assert "UTF-16" in error.message
    assert "UTF-8" in error.hint


def test_a_text_with_half_a_character_is_refused() -> None:
    error = refusal('{"a":\n"\ud800"}', JSON)
    assert error.line == 2
    assert "surrogate" in error.message


@pytest.mark.parametrize("syntax", list(Syntax))
def test_a_document_over_the_size_limit_is_refused(syntax: Syntax) -> None:
    assert "4 MiB" in refusal(b" " * (MAX_BYTES + 1), syntax).message
    assert "4 MiB" in refusal("é" * (MAX_BYTES // 2 + 1), syntax).message


@pytest.mark.parametrize("data", ["", "\ufeff", "// nothing\n/* here */", " \n\t\n"])
def test_an_empty_file_is_refused_except_in_toml(data: str) -> None:
    assert "empty" in refusal(data, JSONC).message
    hashed = "\n# nothing\n" if "/" in data else data.replace("\t", "")
    assert "empty" in refusal(hashed, YAML).message
    assert read(hashed, TOML) == {}


# ── faults of every syntax ───────────────────────────────────────────────────────────────────────────────────────────

SYNTAX_ERRORS = [
    ('{"a": 1,\n "b" 2}', JSON, 2),
    ('{"a": 1}\n{}', JSON, 2),
    ('{\n"a": "x\ny"}', JSON, 2),
    ('{\n"a": [1,, 2]}', JSON, 2),
    ('{"a": 1,\n // why\n "b" 2}', JSONC, 3),
    ('{"a": 1\n/* never closed', JSONC, 2),
    ('{"a":\n[,]}', JSONC, 2),
    ("{\n,}", JSONC, 2),
    ('{"a": 1,\n,}', JSONC, 2),
    ("a = 1\nb = \n", TOML, 2),
    ('a = 1\nb = "x', TOML, 2),
    ("a: 1\nb: [1\n", YAML, 3),
    ("a: 1\nb: c: d\n", YAML, 2),
    ("a:\n\t- b", YAML, 2),
    ("a: 1\nb: \x07", YAML, 2),
]


@pytest.mark.parametrize(("data", "syntax", "line"), SYNTAX_ERRORS)
def test_a_syntax_error_has_its_line_and_a_way_out(data: str, syntax: Syntax, line: int) -> None:
    error = refusal(data, syntax)
    assert error.line == line
    assert error.hint


def test_comments_in_json_are_explained() -> None:
    assert ".jsonc" in refusal('{"a": 1 // one\n}', JSON).hint
    assert "comma" in refusal('{"a": 1,}', JSON).hint


DUPLICATES = [
    ('{"a": 1,\n"b": [{"x": 1,\n"x": 2}]}', JSON, "/b/0/x", 3),
    ('{"a": {"x": 1},\n"b": {"x": 1},\n"\\u0061": 3}', JSON, "/a", 3),
    ('{"a": 1, // one\n/* two */ "a": 2}', JSONC, "/a", 2),
    ("a = 1\nb = 2\na = 3\n", TOML, "/a", 3),
    ("[t]\nx = 1\n[u]\n[t]\ny = 2\n", TOML, "/t", 4),
    ("[[t]]\nx = 1\n[[t]]\nx = [\n1]\nx = 3\n", TOML, "/t/1/x", 6),
    ("t = {x = 1, y = {z = 1}, x = 2}\n", TOML, "/t/x", 1),
    ("a.b = 1\n\"a\" . 'b' = 2\n", TOML, "/a/b", 2),
    ("a: 1\nb:\n  x: 1\n  x: 2\n", YAML, "/b/x", 4),
    ('a: {x: [1, {"y": 1,\n y: 2}]}', YAML, "/a/x/1/y", 2),
    ("a: &a {x: 1}\nb: *a\na: 2\n", YAML, "/a", 3),
]


@pytest.mark.parametrize(("data", "syntax", "path", "line"), DUPLICATES)
def test_a_key_given_twice_is_refused_with_key_path_and_line(data: str, syntax: Syntax, path: str, line: int) -> None:
    error = refusal(data, syntax)
    assert (error.path, error.line) == (path, line)
    assert f"'{path.rpartition('/')[2]}' is given twice" in error.message


NOT_FINITE = [
    ('{"a": [1,\nNaN]}', JSON, "/a/1", 2),
    ('{"a": {"b":\n-Infinity}}', JSON, "/a/b", 2),
    ('{"a": 1e400}', JSON, "/a", 1),
    ('{"a": [-1.5E999, 2,]}', JSONC, "/a/0", 1),
    ("a = 1\nb = nan\n", TOML, "/b", 2),
    ("a = [1,\n-inf]\n", TOML, "/a/1", 2),
    ("[t]\nb = 1e400\n", TOML, "/t/b", 2),
    ("a:\n- 1\n- .inf\n", YAML, "/a/1", 3),
    ("a: -.Inf", YAML, "/a", 1),
    ("a: .NaN", YAML, "/a", 1),
    ("a: 1e400", YAML, "/a", 1),
]


@pytest.mark.parametrize(("data", "syntax", "path", "line"), NOT_FINITE)
def test_numbers_that_are_not_finite_are_refused(data: str, syntax: Syntax, path: str, line: int) -> None:
    error = refusal(data, syntax)
    assert (error.path, error.line) == (path, line)
    assert "finite" in error.hint


@pytest.mark.parametrize("number", [2**53 + 1, -(2**63) - 1, 2**64, 10**400 + 1])
@pytest.mark.parametrize("syntax", list(Syntax))
def test_large_whole_numbers_stay_exact(number: int, syntax: Syntax) -> None:
    assert read(render_text({"a": number}, syntax), syntax) == {"a": number}


@pytest.mark.parametrize(
    ("data", "syntax"),
    [
        ('{"b": 1,\n"a": %s}' % ("9" * 5000), JSON),
        ("b = 1\na = %s" % ("9" * 5000), TOML),
        ("b = 1\na = 0x%s" % ("f" * 5000), TOML),
        ("b: 1\na: %s" % ("9" * 5000), YAML),
        ("b: 1\na: 0x%s" % ("f" * 5000), YAML),
    ],
)
def test_absurdly_long_numbers_are_refused(data: str, syntax: Syntax) -> None:
    error = refusal(data, syntax)
    assert error.line == 2
    assert "digits" in error.message


def nested(depth: int, syntax: Syntax) -> str:
    """A document whose objects and lists stand inside each other this deep."""
    lists = "[" * (depth - 1) + "]" * (depth - 1)
    return {JSON: f'{{"a": {lists}}}', JSONC: f'{{"a": {lists},}}', TOML: f"a = {lists}", YAML: f"a: {lists}"}[syntax]


@pytest.mark.parametrize("syntax", list(Syntax))
@pytest.mark.usefixtures("yaml_reader")
def test_a_hundred_levels_are_read_and_one_more_is_refused(syntax: Syntax) -> None:
    assert str(read(nested(100, syntax), syntax)).count("[") == 99
    error = refusal(nested(101, syntax), syntax)
    assert "deeper than 100" in error.message
    assert error.path.startswith("/a/0/0")
    assert error.line == 1


DEEP = [
    ("[" * 100_000, JSON),
    ('{"a":' * 100_000, JSON),
    ('{"a":[' * 100_000 + "1" + "]}" * 100_000, JSONC),
    ('["]",' * 100_000, JSON),
    ("a = " + "[" * 100_000, TOML),
    ("a = " + "{a = " * 100_000, TOML),
    ("a." * 100_000 + "a = 1", TOML),
    ("[" + "a." * 100_000 + "a]", TOML),
    ("a" + ".a" * 99 + " = {b = 1}", TOML),
    ("[" * 100_000, YAML),
    ("{a: " * 100_000, YAML),
    ("- " * 100_000, YAML),
]


@pytest.mark.parametrize(("data", "syntax"), DEEP, ids=[f"{text[:6]}-{syntax}" for text, syntax in DEEP])
@pytest.mark.usefixtures("yaml_reader")
def test_very_deep_nesting_is_refused_and_does_no_harm(data: str, syntax: Syntax) -> None:
    assert "deeper than 100" in refusal(data, syntax).message


def test_brackets_in_strings_are_not_nesting() -> None:
    brackets = '\\"[{' * 200
    assert len(read(f'{{"a": "{brackets}", "b": ["{brackets}"]}}', JSON)) == 2
    assert len(read(f"a = '{'b.' * 200}'\nc = '{'[' * 200}'", TOML)) == 2


LONG_STRINGS = [
    (f'{{"b": 1,\n"a": ["{LONG}"]}}', JSON, "/a/0"),
    (f'{{"b": 1,\n"a": ["{"中" * (MAX_STRING // 3 + 1)}"],}}', JSONC, "/a/0"),
    (f"b = 1\na = ['{LONG}']", TOML, "/a/0"),
    (f"b: 1\na: [{LONG}]", YAML, "/a/0"),
]


@pytest.mark.parametrize(("data", "syntax", "path"), LONG_STRINGS, ids=["json", "jsonc", "toml", "yaml"])
def test_a_string_over_the_limit_is_refused_with_its_path(data: str, syntax: Syntax, path: str) -> None:
    error = refusal(data, syntax)
    assert (error.path, error.line) == (path, 2)
    assert "1 MiB" in error.message


def test_a_string_of_exactly_the_limit_is_read_and_a_longer_key_is_not() -> None:
    assert read(f'{{"a": "{LONG[1:]}"}}', JSON) == {"a": LONG[1:]}
    assert "1 MiB" in refusal(f'{{"{LONG}": 1}}', JSON).message


@pytest.mark.parametrize(
    ("value", "what"), [([], "a list"), (None, "null"), ("x", "a string"), (3.5, "a number"), (True, "true or false")]
)
def test_the_top_level_must_be_an_object(value: object, what: str) -> None:
    for syntax in (JSON, JSONC, YAML):
        error = refusal("\n" + json.dumps(value), syntax)
        assert f"is {what}, not an object" in error.message
        assert error.line == 2


@pytest.mark.parametrize("data", [r'{"b": 1, "a": "\ud800"}', r'{"b": 1, "a": "x\uDFFFy"}', r'{"a": "\ude00\ud83d"}'])
def test_half_of_a_surrogate_pair_is_refused(data: str) -> None:
    error = refusal(data, JSON)
    assert error.path == "/a"
    assert "surrogate" in error.message


def test_whole_surrogate_pairs_and_escaped_backslashes_are_read() -> None:
    assert read(r'{"a": "\ud83d\ude00", "b": "\\ud800"}', JSON) == {"a": "😀", "b": r"\ud800"}


SECRETS = [
    ('{"key": "hunter2hunter2" "b": 1}', JSON),
    ('{"key": "hunter2hunter2', JSON),
    ('{"a": "hunter2hunter2", "a": "hunter2hunter2"}', JSONC),
    ('["hunter2hunter2"]', JSON),
    ('key = "hunter2hunter2', TOML),
    ("key = hunter2hunter2", TOML),
    ('key = "hunter2hunter2"\nkey = "hunter2hunter2"', TOML),
    ("key: *hunter2hunter2", YAML),
    ("key: !hunter2hunter2", YAML),
    ("key: !!hunter2hunter2 x", YAML),
    ("key: !hunter2hunter2!x", YAML),
    ("key: &hunter2hunter2 [*hunter2hunter2]", YAML),
    ("key: %hunter2hunter2", YAML),
    ("key: @hunter2hunter2", YAML),
    ("key: 'hunter2hunter2", YAML),
    ("key: hunter2hunter2: x", YAML),
]


@pytest.mark.parametrize(("data", "syntax"), SECRETS)
@pytest.mark.usefixtures("yaml_reader")
def test_an_error_never_tells_a_value(data: str, syntax: Syntax) -> None:
    error = refusal(data, syntax)
    chain = f"{error} {error!r} {vars(error)} {error.__cause__!r} {error.__context__!r}"
    assert "hunter2hunter2" not in chain


def test_an_error_shows_strange_keys_escaped_and_short() -> None:
    error = refusal('{"\\u001b[31m": NaN}', JSON)
    assert "\x1b" not in str(error)
    assert len(str(refusal('{"%s": NaN}' % ("k" * 5000), JSON))) < 500


# ── JSONC ────────────────────────────────────────────────────────────────────────────────────────────────────────────

COMMENTED = """// first
{
  /* two
     lines */ "url": "http://x//y/*z*/,]", // "url": 2
  "list": [1, 2, /* last */ ], // done
  "quote": "\\"//", "empty": [], "none": {},
}
"""


def test_comments_and_trailing_commas_are_ignored_and_positions_kept() -> None:
    expected: dict[str, object] = {"url": "http://x//y/*z*/,]", "list": [1, 2], "quote": '"//', "empty": [], "none": {}}
    assert read(COMMENTED, JSONC) == expected
    assert read(COMMENTED.replace("\n", "\r\n"), JSONC) == expected
    assert [line_of(COMMENTED, [key], JSONC) for key in expected] == [4, 5, 6, 6, 6]


# ── YAML ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (
            "[text, '1', !!str 1, y, 1.2.3, 0bef, 8080:80, =, <<]",
            ["text", "1", "1", "y", "1.2.3", "0bef", "8080:80", "=", "<<"],
        ),
        ("[12, +12, -12, 0x1F, 0]", [12, 12, -12, 31, 0]),
        ("[1.5, 1e3, -.5, 1.]", [1.5, 1000.0, -0.5, 1.0]),
        ("[yes, off, true, ~, null, ]", [True, False, True, None, None]),
        ('{"a": [1, null], b: }', {"a": [1, None], "b": None}),
        ("|\n  a\n  b\n", "a\nb\n"),
    ],
)
@pytest.mark.usefixtures("yaml_reader")
def test_yaml_values_have_json_types(written: str, value: object) -> None:
    assert json.dumps(read(f"a: {written}", YAML)) == json.dumps({"a": value})


@pytest.mark.parametrize(
    "written",
    ["2024-11-05", "2024-11-05T10:00:00Z", "2024-11-05 10:00:00.5 +02:00", "12:30", "8080:22", "0755", "1_000"],
)
def test_yaml_dates_and_unclear_numbers_must_be_quoted(written: str) -> None:
    error = refusal(f"b: 1\na: {written}", YAML)
    assert (error.path, error.line) == ("/a", 2)
    assert "quotes" in error.hint
    assert read(f"a: '{written}'", YAML) == {"a": written}


@pytest.mark.parametrize(
    "written",
    ["!!binary aGk=", "!!timestamp '2024-01-01'", "!!set {a}", "!!python/object/apply:os.system [ls]", "!mine {b: 1}"],
)
@pytest.mark.usefixtures("yaml_reader")
def test_yaml_tags_are_refused(written: str) -> None:
    error = refusal(f"b: 1\na: {written}", YAML)
    assert (error.path, error.line) == ("/a", 2)
    assert "tag" in error.message


@pytest.mark.parametrize("key", ["no", "on", "Yes", "1", "1.5", "~", "null", "2024-01-01", "0o7"])
def test_yaml_keys_that_are_not_strings_must_be_quoted(key: str) -> None:
    error = refusal(f"a: 1\n{key}: 2", YAML)
    assert error.line == 2
    assert "quotes" in error.hint
    assert read(f"a: 1\n'{key}': 2", YAML) == {"a": 1, key: 2}


@pytest.mark.parametrize("key", ["? [b]\n", "? {b: 1}\n", "*a ", "!!binary b"])
def test_yaml_keys_of_other_kinds_are_refused(key: str) -> None:
    assert refusal(f"a: &a x\n{key}: 2", YAML).line == 2


def test_yaml_merge_keys_are_refused_clearly() -> None:
    error = refusal("a: &a {x: 1}\nb:\n  <<: *a\n", YAML)
    assert (error.path, error.line) == ("/b/<<", 3)
    assert "merge" in error.message
    assert read('"<<": 1', YAML) == {"<<": 1}


def test_yaml_aliases_are_copies() -> None:
    value = read("a: &a [1, {b: &b 2}]\nc: *a\nd: *b\n", YAML)
    assert value == {"a": [1, {"b": 2}], "c": [1, {"b": 2}], "d": 2}
    assert value["a"] is not value["c"]
    assert read("&a a: 1\nb: *a", YAML) == {"a": 1, "b": "a"}


@pytest.mark.parametrize("data", ["a: &a [*a]", "a: &a {b: [1, *a]}", "&a a: 1\nb: *c", "a: *a"])
@pytest.mark.usefixtures("yaml_reader")
def test_yaml_aliases_to_themselves_or_to_nothing_are_refused(data: str) -> None:
    assert "alias" in refusal(data, YAML).message


@pytest.mark.usefixtures("yaml_reader")
def test_yaml_alias_bombs_are_refused() -> None:
    layers = [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    assert "aliases" in refusal("\n".join(["a: &a [lol, lol, lol]", *layers]), YAML).message
    deep = f"a: &a {'[' * 60}{']' * 60}\nb: {'[' * 60}*a{']' * 60}"
    assert "deeper than 100" in refusal(deep, YAML).message


def test_yaml_files_hold_one_document() -> None:
    assert read("---\na: 1\n...\n", YAML) == {"a": 1}
    assert refusal("a: 1\n---\nb: 2", YAML).line == 3


# ── positions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_pointer_is_escaped() -> None:
    assert pointer(["mcpServers", "docs", "headers", "X-A"]) == "/mcpServers/docs/headers/X-A"
    assert pointer([]) == ""
    assert pointer(["a/b", "m~n", 0, ""]) == "/a~1b/m~0n/0/"


TABLES = """
top = [
  1, # one
  {x = 1}
]
[a]
b.c = "]"
text = '''
[not.a.table]
'''
[[a.list]]
[[a.list]]
name = "two"
[a.list.sub]
"quoted key" = 1979-05-27 07:32:00
"""


LINES = """/top 2  /top/0 3  /top/1/x 4  /a 6  /a/b 7  /a/b/c 7  /a/text 8  /a/list 11  /a/list/1 12  /a/list/1/name 13
           /a/list/1/sub 14  /a/list/1/sub/quoted_key 15"""


@pytest.mark.parametrize(("place", "line"), re.findall(r"/(\S+) (\d+)", LINES))
def test_lines_of_toml_values(place: str, line: str) -> None:
    path = [int(step) if step.isdigit() else step.replace("_", " ") for step in place.split("/")]
    assert line_of(TABLES, path, TOML) == int(line)
    assert line_of(TABLES, [*path, "missing"], TOML) is None


def test_lines_of_list_elements_and_of_values_behind_an_alias() -> None:
    text = "a: &a\n  - 1\n  - b:\n      2\nc:\n  *a\n"
    assert [line_of(text, path, YAML) for path in (["a"], ["a", 0], ["a", 1], ["a", 1, "b"])] == [1, 2, 3, 3]
    assert line_of(text, ["c", 1, "b"], YAML) == 5
    assert line_of('{"a":\n[1,\n2]}', ["a", 1], JSON) == 3


@pytest.mark.parametrize("syntax", list(Syntax))
@pytest.mark.parametrize("data", ["", "}", "[", "{", '"', "/*", "a: [", "= 1", "[[", "a = {", '{"a":', "\x00", "- [*a"])
def test_lines_in_broken_texts_are_unknown(data: str, syntax: Syntax) -> None:
    assert line_of(data, ["a", "b", 0], syntax) is None


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Colour(StrEnum):
    RED = "red"


def test_texts_are_written_stably() -> None:
    value = {"z": "é", "a": [1, 2.5], "on": {"k": "on"}, "colour": Colour.RED, "text": "one\ntwo\n", "t": (True,)}
    assert render_text(value, YAML) == (
        "z: é\na:\n- 1\n- 2.5\n'on':\n  k: 'on'\ncolour: red\ntext: |\n  one\n  two\nt:\n- true\n"
    )
    assert (
        render_text({"z": "é", "a": [{"b": 1}]}, JSON)
        == '{\n  "z": "é",\n  "a": [\n    {\n      "b": 1\n    }\n  ]\n}\n'
    )
    assert render_text({"t": {"b": "x"}, "z": "é"}, TOML).split() == ["z", "=", '"é"', "[t]", "b", "=", '"x"']


@pytest.mark.parametrize("syntax", list(Syntax))
def test_an_empty_object_can_be_written(syntax: Syntax) -> None:
    assert render_text({}, syntax).endswith("\n")
    assert read(render_text({}, syntax), syntax) == {}


def test_toml_has_no_null() -> None:
    with pytest.raises(InvalidDocument, match="TOML has no null") as caught:
        render_text({"a": [{"b": None}]}, TOML)
    assert caught.value.path == "/a/0/b"
    assert "leave" in caught.value.hint


@pytest.mark.parametrize("value", [b"x", object(), {1}, float("nan"), float("inf"), "\ud800", {1: 2}, [[b""]]])
@pytest.mark.parametrize("syntax", list(Syntax))
def test_what_is_not_json_cannot_be_written(value: object, syntax: Syntax) -> None:
    with pytest.raises(InvalidDocument) as caught:
        render_text({"a": {"b": value}}, syntax)
    assert caught.value.path.startswith("/a/b")


def test_a_value_that_holds_itself_cannot_be_written() -> None:
    value: dict[str, object] = {}
    value["a"] = value
    with pytest.raises(InvalidDocument, match="deeper than 100"):
        render_text(value, JSON)


# ── properties ───────────────────────────────────────────────────────────────────────────────────────────────────────

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text(
    " \n\t:#-'\"\\,[]{}1e.~yno", max_size=8
)
toml_scalars = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
scalars = st.none() | toml_scalars


def documents(
    leaves: st.SearchStrategy[object], keys: st.SearchStrategy[str] = texts
) -> st.SearchStrategy[dict[str, object]]:
    inner = st.recursive(
        leaves, lambda deeper: st.lists(deeper, max_size=4) | st.dictionaries(keys, deeper, max_size=4)
    )
    return st.dictionaries(keys, inner, max_size=5)


@settings(deadline=None)
@given(documents(scalars), st.sampled_from([JSON, JSONC, YAML]))
@example({"a": "1e3", "0o7": "=", "<<": "\ufeff", "b": "\x85\u2028x", "c": " \n x\n\n"}, YAML)
def test_what_is_written_is_read_back_in_order(value: dict[str, object], syntax: Syntax) -> None:
    assert json.dumps(read(render_text(value, syntax), syntax)) == json.dumps(value)


@settings(deadline=None)
@given(documents(toml_scalars))
@example({"a": [{"x": 1}], "b": 2, "c": {"d": [[{}], []]}, "": {"": "\x7f\r\n"}})
def test_what_is_written_as_toml_is_read_back(value: dict[str, object]) -> None:
    assert json.dumps(read(render_text(value, TOML), TOML), sort_keys=True) == json.dumps(value, sort_keys=True)


def paths_of(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value inside."""
    members: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        members = cast("dict[str, object]", value).items()
    elif isinstance(value, list):
        members = enumerate(cast("list[object]", value))
    for step, member in members:
        yield (*path, step)
        yield from paths_of(member, (*path, step))


@settings(deadline=None)
@given(documents(toml_scalars, st.uuids().map(lambda key: f"k{key.hex}")), st.sampled_from(list(Syntax)))
def test_a_line_contains_its_key(value: dict[str, object], syntax: Syntax) -> None:
    text = render_text(value, syntax)
    if syntax is JSONC:
        text = re.sub(r"(?m)^(?= *\")", '// a "comment": {[\n/* \' */', text)
    for path in paths_of(value):
        line = line_of(text, path, syntax)
        assert line is not None
        assert not isinstance(path[-1], str) or path[-1] in text.split("\n")[line - 1]


@settings(deadline=None)
@given(st.text("{}[]\"',:\\/*#=.&!-?| \nab1", max_size=40), st.sampled_from(list(Syntax)))
def test_any_text_is_read_or_refused_and_never_crashes(data: str, syntax: Syntax) -> None:
    line_of(data, ["a", 0], syntax)
    with suppress(InvalidDocument):
        value = read(data, syntax)
        assert read(render_text(value, JSON), JSON) == value
        assert all(line_of(data, path, syntax) for path in paths_of(value))
