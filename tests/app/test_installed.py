"""``outfitter up`` where an extra is not installed: it says which one, and serves what it can without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.kit import Place

pytestmark = pytest.mark.anyio
NOWHERE = "http://127.0.0.1:9/mcp"
POSTGRES = "postgresql://user:hidden-word@127.0.0.1:9/none"


def place_without(folder: Path, *libraries: str, **variables: str) -> Place:
    """A machine whose Python does not have these libraries."""
    (folder / "python").mkdir()
    names = ", ".join(f"{name}=None" for name in libraries)
    (folder / "python" / "sitecustomize.py").write_text(f"import sys; sys.modules.update({names})\n")
    place = Place(folder, {"PYTHONPATH": str(folder / "python"), **variables})
    place.write_catalog(NOWHERE)
    return place


@pytest.mark.parametrize("library", ["sqlalchemy", "starlette", "alembic", "aiosqlite", "cryptography", "jwt"])
async def test_without_the_extra_the_folder_is_served_and_it_is_said_what_to_install(
    tmp_path: Path, library: str
) -> None:
    place = place_without(tmp_path, library)
    async with place.up("--open") as up:
        assert (await up.tools("a"))[0] == 200
        assert (await up.api("GET", "/agents"))[0] == 404
        assert up.log().count("pip install 'outfitter[service]'") == 1
        assert await up.stop() == 0
        assert "Traceback" not in up.log()


@pytest.mark.parametrize(
    ("library", "extra"), [("sqlalchemy", "outfitter[service]"), ("psycopg", "outfitter[postgres]")]
)
@pytest.mark.parametrize("is_option", [True, False])
def test_a_named_database_is_not_left_out_because_an_extra_is_missing(
    tmp_path: Path, library: str, extra: str, *, is_option: bool
) -> None:
    named = () if is_option else (("OUTFITTER_DATABASE", POSTGRES),)
    place = place_without(tmp_path, library, **dict(named))
    said = place.command("up", "--port", "0", *(["--database", POSTGRES] if is_option else []))
    assert said.returncode == 7
    assert f"pip install '{extra}'" in said.stderr
    assert "hidden-word" not in said.stderr + said.stdout
    assert "Traceback" not in said.stderr
