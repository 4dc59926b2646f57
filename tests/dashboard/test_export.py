"""Calls as files: what is chosen is in them, and no cell of a spreadsheet becomes a formula."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from outfitter.testing import Script, serve_http
from tests.app.kit import Place
from tests.dashboard.test_doors import signed_in, visitor
from tests.gateway.kit import Raw

pytestmark = pytest.mark.anyio
WORDS = ("=1+1", "+1", "-1", "@SUM(A1)", "plain")


@pytest.mark.promise("D11")
async def test_a_file_of_calls_has_what_was_chosen_and_no_formula(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        place = Place(tmp_path)
        place.write_catalog(served.url)
        async with place.up() as up, visitor(up) as http:
            assert await signed_in(http, up.token) == 303
            _, made, _ = await up.api("POST", "/tokens", {"role": "agent", "agent": "a"})
            raw = Raw(f"{up.url}/mcp/a", up.http, {"authorization": f"Bearer {made['token']}"})
            for word in WORDS:
                await raw.modern("tools/call", {"name": word, "arguments": {"text": "hi"}})
            items: list[dict[str, str]] = []
            while len(items) < len(WORDS):
                items = (await up.api("GET", "/calls"))[1]["items"]
            async with http.get("/ui/calls/export?format=csv&agent=a&range=1h") as answer:
                assert answer.headers["content-disposition"] == 'attachment; filename="outfitter-calls.csv"'
                rows = list(csv.DictReader(io.StringIO(await answer.text())))
            assert {row["shown"] for row in rows} == {"'=1+1", "'+1", "'-1", "'@SUM(A1)", "plain"}
            assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@", "\t"))]
            async with http.get("/ui/calls/export?format=json&tool=plain") as answer:
                assert [call["shown"] for call in await answer.json()] == ["plain"]
            async with http.get("/ui/calls/export?format=json&agent=nobody") as answer:
                assert await answer.json() == []
            for query in ("format=xml", "format=csv&range=ever", "format=csv&from=soon"):
                async with http.get(f"/ui/calls/export?{query}") as answer:
                    assert answer.status == 422, query
