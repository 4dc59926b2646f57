"""A large result in the library: the model gets a preview and a tool, the program gets all of it."""

from __future__ import annotations

import pytest

from outfitter.bridge import McpIntegrationSection, ResultShelf
from outfitter.calls import READER, cut, find_large, find_parts, preview, read_part
from outfitter.errors import Invalid
from outfitter.session import Session
from tests.bridge.kit import call, scripted


@pytest.mark.promise("LARGE-RESULTS-LIBRARY")
def test_a_large_result_is_kept_for_the_session_and_a_tool_reads_it() -> None:
    shelf = ResultShelf(limit=2048)
    with McpIntegrationSection(servers=[scripted()], session=Session(), shelf=shelf) as section:
        result = call(section, "big", size=200_000)
        assert len(result.message) < 2048
        assert result.raw is not None
        assert len(str(result.raw)) > 200_000
        handle = result.message.partition("kept as ")[2].partition(". ")[0]
        part = call(section, READER, handle=handle, offset=199_990)
        assert part.message == "[bytes 199990 to 200000 of 200000; this is the end]\nxxxxxxxxxx"
        assert call(section, READER, handle="outfitter://results/other").code == "not_found"
        assert call(section, "big", size=100).message == "x" * 100
        again = section.clone(session=Session())
    assert again.live.options.shelf is not shelf
    assert shelf.fresh().tool.name == READER


def test_a_shelf_forgets_the_oldest_and_wants_room_for_a_preview() -> None:
    shelf = ResultShelf(most_bytes=10)
    first, second = shelf.keep(b"x" * 6), shelf.keep(b"y" * 6)
    assert [shelf.read(handle).success for handle in (first, second)] == [False, True]
    with pytest.raises(Invalid):
        ResultShelf(limit=10)


def test_strange_content_is_left_where_it_is() -> None:
    strange = [5, None, {"type": "resource", "resource": 7}, {"type": "resource", "resource": {"text": "x" * 3000}}]
    found = find_large({"content": strange}, 2048, repr_bytes)
    assert found is not None
    assert (found.text, found.others) == (b"x" * 3000, (5, None, {"type": "resource", "resource": 7}))
    assert find_large({"content": "text"}, 1, repr_bytes) is None
    assert find_large({"structuredContent": {"a": "b" * 3000}}, 2048, repr_bytes) is not None


def repr_bytes(value: object) -> bytes:
    """A value written down."""
    return repr(value).encode()


def test_no_character_is_cut_in_two() -> None:
    text = "äöü€𝄞".encode()
    for start in range(len(text) + 2):
        for length in range(len(text) + 2):
            assert "\ufffd" not in cut(text, start, length).text
    pieces, offset = "", 0
    while offset < len(text):
        piece = cut(text, offset, 4)
        pieces, offset = pieces + piece.text, piece.end
    assert pieces == "äöü€𝄞"


def test_what_is_looked_for_is_found_with_what_is_around_it() -> None:
    text = b"a" * 500 + b"Needle" + b"b" * 500 + b"needle"
    found = find_parts(text, "NEEDLE", 0, 10_000)
    assert found.startswith("[2 matches; there are no more]\noffset 500: ...aaa")
    assert "offset 1006" in found
    assert find_parts(text, "needle", 501, 10_000).startswith("[1 match")
    assert "does not stand" in find_parts(text, "absent", 0, 10_000)
    assert "behind the end" in read_part(text, 5000, 10)
    assert "bytes left out" in preview(text, "h", 1024)
