"""Import, export and migrate on the command line: everything shown, nothing started, nothing lost."""

from __future__ import annotations

import json

import pytest

from tests.cli.terminal import Terminal

CLAUDE = {
    "mcpServers": {
        "git": {"command": "uvx", "args": ["mcp-server-git", "--repository", "."]},
        "search": {"type": "http", "url": "https://search.example.com/mcp", "headers": {"X-API-Key": "CNRY-5"}},
    }
}
SQUAD = {
    "servers": {"fs": {"type": "local", "command": "npx", "args": ["-y", "fs"], "tools": ["*"], "timeout": 5000}},
    "agentServers": {"scribe": ["fs"]},
    "toolRestrictions": {"scribe": {"fs": {"include": ["read_file"]}}},
}


@pytest.mark.promise("CLI-IMPORT")
@pytest.mark.promise("P14")
def test_import_shows_each_command_and_turns_secrets_into_references(terminal: Terminal) -> None:
    source = terminal.write(".mcp.json", CLAUDE)
    before = source.read_bytes()
    printed = terminal.run("import", ".mcp.json")
    assert printed.code == 0, printed.err
    assert "git: uvx mcp-server-git --repository ." in printed.out
    assert "Nothing was started." in printed.out
    assert "CNRY-5" not in printed.out + printed.err
    written = terminal.snapshot()
    assert written.pop(".mcp.json") == before
    assert not any(b"CNRY-5" in content for content in written.values())
    entry = json.loads(written["outfitter/mcp-servers/search.json"])
    assert entry["default_headers"]["X-API-Key"] == "${SEARCH_API_KEY}"
    assert terminal.run("validate").code == 0


def test_a_dry_run_changes_nothing(terminal: Terminal) -> None:
    terminal.write(".mcp.json", CLAUDE)
    before = terminal.snapshot()
    printed = terminal.run("import", ".mcp.json", "--dry-run", "--json").json()
    assert printed["added"] == ["server 'git'", "server 'search'"]
    assert terminal.snapshot() == before


def test_a_definition_that_exists_and_differs_is_kept_unless_told_otherwise(terminal: Terminal) -> None:
    terminal.write(".mcp.json", CLAUDE)
    terminal.write("outfitter/mcp-servers/git.json", {"command": "other"})
    before = terminal.snapshot()
    refused = terminal.run("import", ".mcp.json")
    assert refused.code == 5
    assert "server 'git' is in the catalog with another definition" in refused.err
    assert terminal.snapshot() == before
    assert terminal.run("import", ".mcp.json", "--replace").code == 0
    assert json.loads((terminal.folder / "outfitter/mcp-servers/git.json").read_text())["command"] == "uvx"


def test_importing_twice_changes_nothing_the_second_time(terminal: Terminal) -> None:
    terminal.write(".mcp.json", CLAUDE)
    terminal.run("import", ".mcp.json")
    before = terminal.snapshot()
    assert "0 new, 0 replaced, 2 unchanged" in terminal.run("import", ".mcp.json").out
    assert terminal.snapshot() == before


def test_a_squad_file_brings_its_agents_too_and_goes_out_again(terminal: Terminal) -> None:
    terminal.write(".squad/mcp-config.json", SQUAD)
    assert terminal.run("import", ".squad/mcp-config.json").code == 0
    explained = terminal.run("explain", "scribe", "--json").json()
    assert explained["servers"][0]["filters"][0]["include"] == ["read_file"]
    exported = terminal.run("export", "squad").json()
    assert exported == SQUAD


@pytest.mark.promise("CLI-EXPORT")
@pytest.mark.parametrize("target", ["claude-code", "vscode", "cursor", "jetbrains", "copilot-cli", "codex"])
def test_export_of_an_agent_can_be_imported_again(demo: Terminal, target: str) -> None:
    name = "config.toml" if target == "codex" else "out.json"
    printed = demo.run("export", target, "--agent", "backend-dev", "-o", name)
    assert printed.code == 0, printed.err
    text = (demo.folder / name).read_text()
    assert "GITHUB_TOKEN" in text
    assert demo.run("--catalog", "fresh", "import", name, "--from", target).code == 0
    servers = demo.run("--catalog", "fresh", "servers", "list", "--json").json()
    assert {server["id"] for server in servers} == {"github", "filesystem", "postgres"}


def test_export_keeps_what_the_file_already_has(demo: Terminal) -> None:
    demo.write(".mcp.json", {"mcpServers": {"mine": {"command": "mine"}}, "other": True})
    assert demo.run("export", "claude-code", "--server", "neo4j", "-o", ".mcp.json").code == 0
    written = json.loads((demo.folder / ".mcp.json").read_text())
    assert written["other"] is True
    assert set(written["mcpServers"]) == {"mine", "neo4j"}


@pytest.mark.promise("CLI-MIGRATE")
def test_migrate_turns_inline_servers_into_refs_and_changes_no_plan(terminal: Terminal) -> None:
    inline = {"type": "http", "url": "http://localhost:9501/mcp", "headers": {"X-A": "1"}, "tools": ["read_*"]}
    terminal.write("outfitter/agents/one.json", {"mcpServers": {"store": inline}})
    terminal.write("outfitter/agents/two.yaml", "mcpServers:\n  docs: {url: 'http://localhost:9501/mcp'}\n")
    before = [terminal.run("agents", "show", name, "--resolved", "--json").json() for name in ("one", "two")]
    dry = terminal.snapshot()
    assert "Would change 2 inline servers" in terminal.run("migrate", "--dry-run").out
    assert terminal.snapshot() == dry
    assert "Changed 2 inline servers" in terminal.run("migrate").out
    after = [terminal.run("agents", "show", name, "--resolved", "--json").json() for name in ("one", "two")]
    assert after == before
    assert len(list((terminal.folder / "outfitter/mcp-servers").iterdir())) == 1
    assert terminal.run("validate", "--json").json()["notices"] == []
    assert "Changed 0 inline servers" in terminal.run("migrate").out


def test_an_unknown_file_asks_for_its_format(terminal: Terminal) -> None:
    terminal.write("strange.json", {"a": 1})
    printed = terminal.run("import", "strange.json")
    assert printed.code == 3
    assert "--from" in printed.err
