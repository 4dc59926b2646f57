"""What a cassette says, what is masked in it, and which answer belongs to which request."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outfitter.basics import MASK
from outfitter.errors import AlreadyExists, InvalidDocument, NotFound
from outfitter.formats import Announced, Cassette, CassetteHeader, Exchange, read_cassette, write_cassette_line
from outfitter.testing import CassetteFile, Masker, Playback, load_cassette, words_of_environment

HEADER = CassetteHeader("2026-11-16T12:00:00Z", "a server", "modern")
GHP = "ghp_" + "a1B2c3D4e5F6g7H8"


def call(name: str, *texts: str, **arguments: Any) -> Exchange:  # noqa: ANN401 - JSON
    content = [{"type": "text", "text": text} for text in texts]
    return Exchange("tools/call", {"name": name, "arguments": arguments}, {"content": content})


def texts_of(exchange: Exchange) -> list[str]:
    return [part["text"] for part in (exchange.result or {})["content"]]


# ── the format ──


def test_what_is_written_is_read_again() -> None:
    entries = (
        call("echo", "ä", text="ä\u2028\n"),
        Announced({"method": "notifications/tools/list_changed"}),
        Exchange("prompts/get", {"name": "p"}, error={"code": -1, "message": "no"}, masked=("/params/x",)),
        Exchange("tools/call", {}, {}, None, ({"method": "n"},), ({"method": "q", "params": {}},)),
    )
    text = "".join(map(write_cassette_line, (HEADER, *entries)))
    assert read_cassette(text, "x") == Cassette(HEADER, entries)
    assert [entry.line for entry in read_cassette(text, "x").entries] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("[]", "x:2"),
        ("{cut", "x:2"),
        ('{"method": 1}', "x:2 at /method"),
        ('{"method": "m", "params": []}', "x:2 at /params"),
        ('{"method": "m", "result": 1}', "x:2 at /result"),
        ('{"method": "m", "result": {}, "notices": [1]}', "x:2 at /notices"),
        ('{"method": "m", "result": {}, "masked": 1}', "x:2 at /masked"),
        ('{"notice": {}}', "x:2 at /notice"),
    ],
)
def test_a_bad_line_is_named(line: str, where: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        read_cassette(write_cassette_line(HEADER) + line + "\n", "x")
    assert refused.value.where == where


@pytest.mark.parametrize("first", ["", "{}\n", '{"outfitter_cassette": 2}\n', '{"outfitter_cassette":1,"era":"no"}\n'])
def test_what_is_no_cassette_is_refused(first: str) -> None:
    with pytest.raises(InvalidDocument):
        read_cassette(first, "x")


@pytest.mark.promise("CASSETTE-KILL")
def test_a_file_that_was_cut_anywhere_in_its_last_line_can_be_read(tmp_path: Path) -> None:
    file = CassetteFile(tmp_path / "f.jsonl", "s")
    for text in ("eins", "zwei ä"):
        file.write(call("echo", text), "legacy")
    file.close()
    whole = file.path.read_bytes()
    start = whole[:-1].rfind(b"\n") + 1
    for end in range(start, len(whole) + 1):
        file.path.write_bytes(whole[:end])
        read = load_cassette(file.path)
        assert len(read.exchanges) == (2 if end == len(whole) else 1)
        assert read.is_cut == (start < end < len(whole))


def test_a_file_is_for_its_owner_and_is_not_replaced_by_accident(tmp_path: Path) -> None:
    path = tmp_path / "new" / "f.jsonl"
    for times in (1, 2):
        file = CassetteFile(path, "s", existing="overwrite" if times == 2 else "keep")
        assert path.exists() == (times == 2)
        file.write(call("echo", str(times)), "legacy")
        file.close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [texts_of(one) for one in load_cassette(path).exchanges] == [[str(times)]]
    with pytest.raises(AlreadyExists):
        CassetteFile(path, "s")
    path.write_bytes(path.read_bytes() + b"cut o")
    more = CassetteFile(path, "other", existing="append")
    more.write(call("echo", "3"), "modern")
    more.close()
    whole = load_cassette(path)
    assert [texts_of(one) for one in whole.exchanges] == [["2"], ["3"]]
    assert (whole.header.server, whole.is_cut) == ("s", False)
    assert "{time}" not in CassetteFile(tmp_path / "f-{time}.jsonl", "s").path.name
    assert [item.name for item in path.parent.iterdir()] == ["f.jsonl"]


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such recording"):
        load_cassette(tmp_path / "none.jsonl")


def test_a_lone_surrogate_is_written_as_json_writes_it(tmp_path: Path) -> None:
    file = CassetteFile(tmp_path / "f.jsonl", "s")
    file.write(call("echo", "\ud800"), "legacy")
    file.close()
    assert texts_of(load_cassette(file.path).exchanges[0]) == ["\ud800"]


# ── masking ──


@pytest.mark.promise("RECORD-MASKED")
def test_secrets_are_masked_by_name_by_schema_by_look_and_wherever_they_come_again() -> None:
    masker = Masker(["word-of-the-environment"])
    schema = {"properties": {"pin": {"type": "string", "writeOnly": True}, "token": {"type": "string"}}}
    listed = masker.exchange(Exchange("tools/list", {}, {"tools": [{"name": "login", "inputSchema": schema}]}))
    assert listed.masked == ()
    asked = {"pin": "pin-of-mine", "token": "token-of-mine", "note": GHP, "user": "ada"}
    echoed = ["said token-of-mine", json.dumps({"password": "of-the-server", "user": "ada"}), "word-of-the-environment"]
    given = call("login", *echoed, **asked)
    masked = masker.exchange(given)
    assert masked.params["arguments"] == {"pin": MASK, "token": MASK, "note": MASK, "user": "ada"}
    assert texts_of(masked) == [f"said {MASK}", f'{{"password": "{MASK}", "user": "ada"}}', MASK]
    assert {"/params/arguments/pin", "/result/content/1/text"} <= set(masked.masked)
    later = masker.exchange(call("echo", "it was pin-of-mine, of-the-server"))
    assert texts_of(later) == [f"it was {MASK}, {MASK}"]


@pytest.mark.promise("RECORD-MASKED")
def test_what_a_request_says_of_its_client_is_left_out_and_cursors_and_pictures_stay() -> None:
    given = Exchange(
        "tools/call",
        {"name": "x", "_meta": {"token": "t"}, "cursor": "eyJvZmZzZXQiOjEwfQ"},
        {"content": [{"type": "image", "data": "AA/eyJvZmZzZXQiOjEwfQ"}], "nextCursor": "eyJvZmZzZXQiOjEwfQ"},
    )
    masked = Masker().exchange(given)
    assert (masked.params, masked.result) == ({"name": "x", "cursor": "eyJvZmZzZXQiOjEwfQ"}, given.result)


def test_a_short_secret_is_masked_where_it_stands_alone() -> None:
    masker = Masker(["test", "abc", "true"])
    assert masker.text("a test, the latest abc, true") == f"a {MASK}, the latest abc, true"


def test_a_secret_number_is_masked_and_the_folder_is_no_secret() -> None:
    masked = Masker().exchange(Exchange("tools/call", {"arguments": {"token": 123456}}, {"x": 123456, "y": 12}))
    assert masked.result == {"x": MASK, "y": 12}
    assert words_of_environment({"PWD": "/work", "MY_TOKEN": "t", "X": "y", "Z": "z"}, ["X"]) == {"t", "y"}


# ── matching ──


def playback(*exchanges: Exchange) -> Playback:
    return Playback(Cassette(HEADER, exchanges))


def found(played: Playback, name: str, **arguments: Any) -> list[str] | None:  # noqa: ANN401 - JSON
    answer = played.find("tools/call", {"name": name, "arguments": arguments, "_meta": {"progressToken": 3}})
    return None if answer is None else texts_of(answer.exchange)


@pytest.mark.promise("REPLAY-ORDER")
def test_a_repeated_request_gets_its_answers_in_their_order_and_then_the_last() -> None:
    played = playback(call("next", "one"), call("other", "x"), call("next", "two"))
    assert [found(played, "next") for _ in range(4)] == [["one"], ["two"], ["two"], ["two"]]
    assert played.unused() == 1
    later = playback(*(replace(call("next", text), line=line) for line, text in enumerate(("one", "two", "three"), 2)))
    later.resume([2])
    assert found(later, "next") == ["two"]
    again = played.find("tools/call", {"name": "next"})
    assert again is not None
    assert again.is_repeated


def test_every_parameter_counts_but_not_the_meta_and_not_their_order() -> None:
    played = playback(call("add", "3", a=1, b=2))
    assert found(played, "add", b=2, a=1) == ["3"]
    assert played.find("tools/call", {"name": "add", "arguments": {"a": 1}}) is None
    assert played.find("tools/call", {"name": "add", "arguments": {"a": True, "b": 2}}) is None
    assert played.find("tools/list", {"name": "add", "arguments": {"a": 1, "b": 2}}) is None


@pytest.mark.promise("REPLAY-MASKS")
def test_anything_fits_where_a_mask_stands_and_nothing_else_does() -> None:
    masked = Masker(["word-of-the-environment"]).exchange(
        call("login", "in", token="t0ken", header="Bearer word-of-the-environment.", user="ada")
    )
    assert found(playback(masked), "login", token="other", header="Bearer mine.", user="ada") == ["in"]
    assert found(playback(masked), "login", token="other", header="Basic mine.", user="ada") is None
    assert found(playback(masked), "login", token="other", header="Bearer mine.", user="bob") is None
    assert found(playback(masked), "login", header="Bearer mine.", user="ada") is None
    assert found(playback(call("echo", "x", text=MASK)), "echo", text="y") is None


def test_the_nearest_are_those_of_the_same_tool() -> None:
    played = playback(call("add", "3", a=1, b=2), call("add", "4", a=2, b=2), call("sub", "0", a=2), call("zzz", "0"))
    assert played.nearest("tools/call", {"name": "add", "arguments": {"a": 1, "b": 9}})[0] == (
        'tools/call add {"a": 1, "b": 2}'
    )
