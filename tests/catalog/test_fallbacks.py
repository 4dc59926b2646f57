"""What to do instead of a server: a line of plain text in its definition, written as it is and shown as it is."""

from __future__ import annotations

import pytest

from outfitter.catalog import Agent, Catalog, MCPServer, ServerEntry, ServerRef
from outfitter.errors import InvalidDocument, InvalidServer
from outfitter.formats import (
    Syntax,
    read_document,
    read_entry,
    read_squad,
    write_entry,
    write_squad,
)
from outfitter.resolution import Supply, arm_each, explain, resolve, wants_of

URL = "http://127.0.0.1:1/mcp"
LINE = "use the `gh` CLI, ${HOME} stays as it is"


@pytest.mark.promise("DEGRADE-FALLBACK")
@pytest.mark.parametrize("text", ["x" * 501, "two\nlines", "a\x1b[31mb", "a\0b"])
def test_a_fallback_that_is_no_line_of_plain_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidServer, match="one line of at most 500 printable characters"):
        MCPServer.http("gh", URL, fallback=text)
    with pytest.raises((InvalidServer, InvalidDocument), match="one line") as raised:
        read_entry({"url": URL, "fallback": text}, "gh", "gh.json")
    assert raised.value.trail == ("fallback",)


@pytest.mark.promise("DEGRADE-FALLBACK")
def test_a_fallback_is_written_read_and_explained_and_nothing_in_it_is_filled_in() -> None:
    entry = ServerEntry(MCPServer.http("gh", URL, fallback=f"  {LINE} "))
    assert write_entry(entry)["fallback"] == LINE
    assert read_entry(write_entry(entry), "gh", "").server == entry.server
    catalog = Catalog.of([entry], [], [Agent("a", role="a", servers={"gh": ServerRef("gh")})])
    assert read_squad(write_squad(catalog), "").servers["gh"].server.fallback == LINE
    plan = resolve("a", catalog)
    (server,) = explain(plan).servers
    assert server.fallback == LINE
    assert f"'fallback': '{LINE}'" in str(explain(plan).to_json())
    assert "HOME" not in str(wants_of(plan))
    armed = arm_each(plan, Supply())["gh"]
    assert LINE in str(armed)


@pytest.mark.promise("DEGRADE-FALLBACK")
def test_a_squad_file_says_where_its_fallback_is_wrong() -> None:
    text = b'{"servers": {"gh": {"type": "http", "url": "http://h/mcp", "fallback": "a\\nb"}}}'
    with pytest.raises(InvalidServer) as raised:
        read_document(text, "mcp-config.json", Syntax.JSON, lambda value: read_squad(value, "mcp-config.json"))
    assert "/servers/gh/fallback" in str(raised.value)
