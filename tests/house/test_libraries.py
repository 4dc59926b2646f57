"""Each outside library has its named rooms, and the ground floor opens no connection.

import-linter forbids whole packages on the ground floor; here stand the finer rules: the table of libraries and rooms,
and the standard modules of which only a part does I/O.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.tree import PACKAGE, ROOT, SRC, Import, imports_of, python_files, room_of, write_tree

# A new library is a line here and a line in docs/decisions/dependencies.md.
ROOMS_OF_LIBRARY = {
    "aiohttp": {"runner", "upstream", "gateway", "testing"},
    "aiosqlite": {"storage"},
    "alembic": {"storage"},
    "anyio": {
        "upstream",
        "tools",
        "bridge",
        "adapters",
        "storage",
        "gateway",
        "coordinator",
        "runner",
        "squad",
        "app",
        "testing",
        "cli",
        "dashboard",
    },
    "claude_agent_sdk": {"adapters"},
    "click": {"cli"},
    "copilot": {"adapters"},
    "cryptography": {"storage"},
    "dbos": {"runner"},
    "httptools": {"gateway"},
    "hvac": {"upstream"},
    "jinja2": {"dashboard"},
    "jsonschema_rs": {"schemas"},
    "jwt": {"coordinator"},
    "keyring": {"upstream"},
    "litellm": {"adapters"},
    "mcp": {"adapters", "runner", "squad"},
    "mcp_types": {"squad"},
    "msgspec": {
        "upstream",
        "schemas",
        "bridge",
        "prompt",
        "storage",
        "gateway",
        "coordinator",
        "dashboard",
        "runner",
        "squad",
        "testing",
    },
    "openai": {"adapters"},
    "opentelemetry": {"telemetry"},
    "psycopg": {"storage"},
    "pytest": {"testing"},
    "requests": {"upstream"},
    "rich": {"cli"},
    "sqlalchemy": {"storage"},
    "starlette": {"coordinator", "dashboard"},
    "tomlkit": {"formats"},
    "tomllib": {"formats"},
    "uvicorn": {"gateway"},
    "yaml": {"formats"},
}
GROUND = frozenset({"errors", "basics", "catalog", "calls", "policy", "resolution", "formats"})
NOT_ON_THE_GROUND = ("asyncio", "http.client", "http.server", "socket", "sqlite3", "subprocess", "urllib.request")


def library_findings(src: Path) -> list[str]:
    """Imports of a library, or of a standard module with I/O, in a room where it does not belong."""
    return [
        f"{file.relative_to(src).as_posix()}:{item.line} {finding}"
        for file in python_files(src)
        for item in imports_of(file, src)
        if (finding := _finding(item, room_of(file, src)))
    ]


def _finding(item: Import, room: str | None) -> str | None:
    library = item.module.partition(".")[0]
    if library in ROOMS_OF_LIBRARY:
        allowed = ROOMS_OF_LIBRARY[library]
        return None if room in allowed else f"imports {library}, which belongs to {', '.join(sorted(allowed))}"
    if library != PACKAGE and library not in sys.stdlib_module_names:
        return f"imports {library}, which is in no room's list"
    if room in GROUND and _is_forbidden_on_the_ground(item):
        return f"imports {item.target} on the ground floor"
    return None


def _is_forbidden_on_the_ground(item: Import) -> bool:
    return any(f"{item.target}.".startswith(f"{module}.") for module in NOT_ON_THE_GROUND)


def test_every_library_stays_in_its_rooms() -> None:
    assert library_findings(SRC) == []


def test_the_ground_floor_is_the_same_in_the_import_contract() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    (ground,) = (contract for contract in tools["importlinter"]["contracts"] if contract["id"] == "ground")
    built = {room for room in GROUND if (SRC / PACKAGE / room).exists() or (SRC / PACKAGE / f"{room}.py").exists()}
    listed = {module.removeprefix(f"{PACKAGE}.") for module in ground["source_modules"]}
    assert built <= listed <= GROUND


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("catalog/a.py", "import msgspec"),
        ("formats/a.py", "from rich.table import Table"),
        ("__init__.py", "import click"),
        ("cli/a.py", "import requests"),
        ("errors.py", "from urllib.request import urlopen"),
        ("catalog/a.py", "from urllib import request"),
        ("resolution/a.py", "import http.client"),
        ("formats/a.py", "def late():\n    import subprocess"),
    ],
)
def test_an_import_in_the_wrong_room_is_found(tmp_path: Path, file: str, line: str) -> None:
    write_tree(tmp_path, {f"outfitter/{file}": line})
    assert len(library_findings(tmp_path)) == 1


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("formats/a.py", "import tomlkit, yaml, tomllib"),
        ("cli/a.py", "from rich.table import Table"),
        ("catalog/a.py", "from urllib.parse import urlsplit"),
        ("storage/a.py", "import sqlite3"),
    ],
)
def test_an_import_in_its_own_room_is_fine(tmp_path: Path, file: str, line: str) -> None:
    write_tree(tmp_path, {f"outfitter/{file}": line})
    assert library_findings(tmp_path) == []
