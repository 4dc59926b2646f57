"""Commands that fetch a package: told where its version is not fixed, and approved first where that is wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from outfitter.catalog import Agent, Catalog, InlineServer, MCPServer, PinMode
from outfitter.policy import unpinned_package
from outfitter.resolution import explain, resolve
from outfitter.upstream import PackageUnpinned, ProgramRegister, SpawnRules, prepare_launch
from tests.upstream.stage import armed


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("npx -y server", "server"),
        ("npx -y @scope/server@latest data", "@scope/server@latest"),
        ("npx -y @scope/server", "@scope/server"),
        ("npx server@^1.2.3", "server@^1.2.3"),
        ("npx server@1", "server@1"),
        ("/usr/bin/npx.cmd server@next", "server@next"),
        ("uvx mcp-server-git", "mcp-server-git"),
        ("uvx mcp-server-git@latest", "mcp-server-git@latest"),
        ("pipx run server", "server"),
        ("uv tool run server", "server"),
        ("pnpm dlx server", "server"),
        ("npx -y @scope/server@1.2.3", None),
        ("uvx mcp-server-git@2026.1", None),
        ("uvx mcp-server-git==2026.1.0", None),
        ("npx ./server", None),
        ("npm install server", None),
        ("node server.js", None),
        ("npx", None),
    ],
)
def test_a_package_without_a_fixed_version_is_told(line: str, package: str | None) -> None:
    command, *args = line.split()
    assert unpinned_package(command, args) == package


def _npx(folder: Path) -> dict[str, str]:
    folder.mkdir()
    program = folder / "npx"
    program.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    program.chmod(0o755)
    return {"PATH": str(folder)}


@pytest.mark.promise("P15")
def test_in_mode_approve_a_package_of_any_version_is_not_started_before_somebody_approved_it(tmp_path: Path) -> None:
    path, register = _npx(tmp_path / "bin"), ProgramRegister(tmp_path / "state")
    rules = SpawnRules(programs=register)
    loose = armed(MCPServer.stdio("x", "npx", ("-y", "server"), pins=PinMode.APPROVE))
    with pytest.raises(PackageUnpinned, match="'server' is not pinned") as refused:
        prepare_launch(loose, rules, path)
    assert refused.value.code == "unpinned_package"
    prepare_launch(armed(MCPServer.stdio("y", "npx", ("-y", "server@1.2.3"), pins=PinMode.APPROVE)), rules, path)
    prepare_launch(armed(MCPServer.stdio("z", "npx", ("-y", "server"))), rules, path)
    register.approve("x")
    for _ in range(2):
        assert prepare_launch(loose, rules, path).program == tmp_path / "bin" / "npx"


@pytest.mark.promise("P15")
def test_explain_tells_it() -> None:
    servers = {
        "loose": InlineServer(MCPServer.stdio("loose", "npx", ("-y", "server@latest"), pins=PinMode.APPROVE)),
        "tight": InlineServer(MCPServer.stdio("tight", "npx", ("-y", "server@1.2.3"))),
    }
    agent = Agent("a", servers=servers)
    notices = explain(resolve("a", Catalog(agents={"a": agent}))).notices
    (notice,) = [one for one in notices if one.code == "unpinned_package"]
    assert "server 'loose' starts 'server@latest', which is not pinned" in notice.message
    assert "outfitter approve loose" in notice.message
