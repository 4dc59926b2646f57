"""The catalog folder: what is bad is told and changes nothing, what is saved is saved whole or not at all."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from outfitter.catalog import Agent, Capability, Catalog, MCPServer, ServerEntry, ServerRef
from outfitter.errors import OutfitterError, Refused, StorageUnavailable
from outfitter.resolution import check_catalog
from outfitter.storage import CatalogFolder, load_catalog, read_bytes, write_files
from tests.house.tree import write_tree
from tests.shelf import codes_of, folder_state

GOOD = {
    "mcp-servers/docs.json": '{"url": "http://localhost:9501/mcp"}',
    "mcp-servers/git.toml": 'command = "uvx"\nargs = ["mcp-server-git"]\n',
    "capabilities/research.yaml": "mcpServers:\n  docs:\n    ref: docs\n",
    "agents/ann.json": '{"capabilities": ["research"], "system_prompt_file": "ann.md"}',
    "agents/ann.md": "You are Ann.",
    "agents/.hidden.json": "not read",
    "agents/notes.txt": "not read",
}


@pytest.mark.promise("CATALOG-FOLDER")
def test_a_folder_of_json_toml_and_yaml_files_is_one_catalog(tmp_path: Path) -> None:
    catalog = load_catalog(write_tree(tmp_path, GOOD))
    assert (set(catalog.servers), set(catalog.capabilities), set(catalog.agents)) == (
        {"docs", "git"}, {"research"}, {"ann"},
    )  # fmt: skip
    assert catalog.agents["ann"].system_prompt == "You are Ann."
    assert catalog.servers["git"].server.args == ("mcp-server-git",)
    assert catalog.servers["docs"].source.endswith("mcp-servers/docs.json")


BAD: dict[str, tuple[str, bytes, str]] = {
    "wrong type": ("agents/x.json", b'{"capabilities": 3}', "agents/x.json:1 at /capabilities"),
    "duplicate key": ("agents/x.json", b'{"role": "a",\n"role": "b"}', "agents/x.json:2 at /role"),
    "unknown field": ("agents/x.json", b'{\n"rol": "a"}', "agents/x.json:2 at /rol"),
    "cyclic YAML": ("agents/x.yaml", b"budgets: &a\n  calls: *a\n", "agents/x.yaml:2 at /budgets/calls"),
    "too long": ("agents/x.json", b'{"role": "' + b"a" * 1_100_000 + b'"}', "agents/x.json:1 at /role"),
    "far too long": ("agents/x.json", b" " * (4 * 1024 * 1024 + 1), "agents/x.json"),
    "invalid UTF-8": ("agents/x.json", b'{\n"role": "\xff"}', "agents/x.json:2"),
    "mismatched name": ("agents/x.json", b'{"name": "y"}', "agents/x.json:1 at /name"),
    "mismatched id": ("mcp-servers/x.json", b'{"id": "y", "url": "http://h"}', "mcp-servers/x.json:1 at /id"),
    "bad file name": ("mcp-servers/Bad Name.json", b'{"url": "http://h"}', "mcp-servers/Bad Name.json:1"),
    "not JSON": ("agents/x.json", b"{", "agents/x.json:1"),
    "empty": ("agents/x.json", b"", "agents/x.json"),
    "deep": ("agents/x.json", b'{"role":' + b"[" * 100_000, "agents/x.json:1"),
    "prompt outside": ("agents/x.json", b'{"system_prompt_file": "../../p"}', "agents/x.json:1 at /system_prompt_file"),
    "prompt absolute": ("agents/x.json", b'{"system_prompt_file": "/p"}', "agents/x.json:1 at /system_prompt_file"),
    "prompt missing": ("agents/x.json", b'{"system_prompt_file": "no"}', "agents/x.json:1 at /system_prompt_file"),
    "prompt binary": ("agents/x.json", b'{"system_prompt_file": "b"}', "agents/x.json:1 at /system_prompt_file"),
    "prompt long": ("agents/x.json", b'{"system_prompt_file": "l"}', "agents/x.json:1 at /system_prompt_file"),
    "twice": ("agents/ann.yaml", b"role: x", "agents/ann.yaml"),
}


@pytest.mark.promise(
    "BAD-INPUT-SHAPE", "BAD-INPUT-DUPLICATE", "BAD-INPUT-UNKNOWN-FIELD", "BAD-INPUT-CYCLE", "BAD-INPUT-LONG",
    "BAD-INPUT-ENCODING", "BAD-INPUT-IDS", "BAD-INPUT-NOTHING-CHANGES",
)  # fmt: skip
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_one_clear_error_and_changes_nothing(tmp_path: Path, kind: str) -> None:
    name, data, place = BAD[kind]
    write_tree(tmp_path, GOOD)
    (tmp_path / "agents/b").write_bytes(b"\xff\xfe\xff")
    (tmp_path / "agents/l").write_bytes(b"x" * (4 * 1024 * 1024 + 1))
    (tmp_path / name).write_bytes(data)
    before = folder_state(tmp_path)
    with pytest.raises(OutfitterError) as error:
        load_catalog(tmp_path)
    assert not isinstance(error.value, Refused)
    assert error.value.where.startswith(f"{tmp_path}/{place}")
    assert len(str(error.value)) < 1000
    assert folder_state(tmp_path) == before


@pytest.mark.promise("BAD-INPUT-SHAPE")
def test_several_bad_files_are_all_told_together(tmp_path: Path) -> None:
    write_tree(tmp_path, GOOD | {"agents/x.json": "{", "mcp-servers/y.json": "[]", "capabilities/z.json": '{"a": 1}'})
    with pytest.raises(Refused) as refused:
        load_catalog(tmp_path)
    assert [Path(problem.where.split(":")[0]).name for problem in refused.value.problems] == [
        "y.json", "z.json", "x.json",
    ]  # fmt: skip


@pytest.mark.promise("BAD-INPUT-REFS")
def test_a_missing_ref_and_a_missing_capability_are_told_with_their_user_and_a_suggestion(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "mcp-servers/docs.json": '{"url": "http://h/mcp"}',
            "capabilities/unused.json": '{"mcpServers": {"d": {"ref": "docz"}}}',
            "agents/ann.json": '{"capabilities": ["reserch"], "mcpServers": {"d": {"ref": "dcs"}, "bare": {}}}',
        },
    )
    problems = check_catalog(load_catalog(tmp_path)).problems
    assert [problem.code for problem in problems] == ["missing_ref", "unknown_capability", "missing_ref", "missing_ref"]
    told = "\n".join(map(str, problems))
    for words in ("capability 'unused'", "agents/ann.json", "did you mean 'docs'?", "alias 'bare' has no ref"):
        assert words in told


@pytest.mark.promise("BAD-INPUT-REFS")
def test_a_folder_without_a_catalog_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(OutfitterError) as error:
        load_catalog(tmp_path)
    assert error.value.code == "not_found"


def _catalog(version: str) -> Catalog:
    entries = [ServerEntry(MCPServer.http(f"s{n}", "http://h/mcp", description=version)) for n in range(5)]
    agent = Agent("ann", system_prompt=version, servers={"s": ServerRef("s0")})
    return Catalog.of(entries, [Capability("c", text=version)], [agent])


@pytest.mark.promise("ROUND-TRIP", "CATALOG-FOLDER")
def test_what_is_saved_loads_as_the_same_catalog_and_only_changes_are_written(tmp_path: Path) -> None:
    folder = CatalogFolder(tmp_path)
    first, second = _catalog("1"), _catalog("2")
    assert len(folder.save(first)) == 7
    assert folder.load() == first
    assert folder.save(first, folder.load()) == ()
    mixed = Catalog(first.servers, first.capabilities, second.agents)
    assert folder.save(mixed, first) == (tmp_path / "agents/ann.json",)
    assert folder.load() == mixed


@pytest.mark.promise("CATALOG-FOLDER")
def test_a_file_keeps_the_syntax_it_has(tmp_path: Path) -> None:
    write_tree(tmp_path, {"mcp-servers/s0.toml": 'url = "http://old/mcp"\n', "agents/ann.yaml": "role: old\n"})
    CatalogFolder(tmp_path).save(_catalog("1"))
    assert 'description = "1"' in (tmp_path / "mcp-servers/s0.toml").read_text()
    assert not (tmp_path / "mcp-servers/s0.json").exists()
    assert load_catalog(tmp_path) == _catalog("1")


@pytest.mark.promise("WRITES-ATOMIC")
@pytest.mark.parametrize(
    "blocked", ["mcp-servers/s4.json", "capabilities/c.json", "agents/ann.json", "mcp-servers/s0.json"]
)
def test_when_one_file_cannot_be_written_every_file_is_as_it_was(tmp_path: Path, blocked: str) -> None:
    folder = CatalogFolder(tmp_path)
    folder.save(_catalog("1"))
    (tmp_path / blocked).unlink()
    (tmp_path / blocked / "inside").mkdir(parents=True)
    before = folder_state(tmp_path)
    with pytest.raises(StorageUnavailable, match="nothing was changed"):
        folder.save(_catalog("2"))
    assert folder_state(tmp_path) == before


@pytest.mark.promise("WRITES-ATOMIC")
@pytest.mark.parametrize("blocked", ["mcp-servers", "capabilities", "agents"])
def test_when_a_folder_cannot_be_made_nothing_is_left_behind(tmp_path: Path, blocked: str) -> None:
    (tmp_path / blocked).write_text("a file stands in the way")
    before = folder_state(tmp_path)
    with pytest.raises(StorageUnavailable):
        CatalogFolder(tmp_path).save(_catalog("1"))
    assert folder_state(tmp_path) == before


@pytest.mark.promise("WRITES-ATOMIC")
def test_a_value_that_a_files_syntax_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    write_tree(tmp_path, {"agents/ann.toml": 'role = "old"\n'})
    agent = Agent("ann", servers={"s": ServerRef("s0", {"X-A": None})})
    before = folder_state(tmp_path)
    with pytest.raises(OutfitterError) as error:
        CatalogFolder(tmp_path).save(Catalog(_catalog("1").servers, {}, {"ann": agent}))
    assert codes_of(error.value) == ["invalid_document"]
    assert folder_state(tmp_path) == before


@pytest.mark.promise("WRITES-ATOMIC")
def test_files_can_be_deleted_in_the_same_change_and_come_back_when_it_fails(tmp_path: Path) -> None:
    write_tree(tmp_path, {"old.txt": "old", "kept.txt": "kept"})
    (tmp_path / "dir").mkdir()
    before = folder_state(tmp_path)
    with pytest.raises(StorageUnavailable):
        write_files({tmp_path / "old.txt": None, tmp_path / "new/x.txt": "x", tmp_path / "dir": "in the way"})
    assert folder_state(tmp_path) == before
    write_files({tmp_path / "old.txt": None, tmp_path / "new/x.txt": "x", tmp_path / "gone.txt": None})
    assert folder_state(tmp_path) == {"dir": None, "kept.txt": b"kept", "new": None, "new/x.txt": b"x"}


@pytest.mark.promise("WRITES-ATOMIC")
def test_a_written_file_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("old")
    file.chmod(0o600)
    write_files({file: "new", tmp_path / "y.json": "new"})
    assert [path.stat().st_mode & 0o777 for path in (file, tmp_path / "y.json")] == [0o600, 0o644]


@pytest.mark.promise("WRITES-ATOMIC")
def test_readers_never_see_a_half_written_file(tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    versions = {letter * 100_000 for letter in "ab"}
    write_files({file: "a" * 100_000})
    seen: set[str] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(file.read_text())

    readers = [threading.Thread(target=read, daemon=True) for _ in range(2)]
    try:
        for reader in readers:
            reader.start()
        for turn in range(20):
            write_files({file: "ab"[turn % 2] * 100_000})
    finally:
        done.set()
    for reader in readers:
        reader.join(timeout=30)
    assert seen <= versions
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]


@pytest.mark.promise("CATALOG-FOLDER")
def test_reading_stops_at_its_limit_and_names_what_it_could_not_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abcdef")
    assert read_bytes(tmp_path / "x", 3) == b"abcd"
    with pytest.raises(StorageUnavailable, match="cannot read"):
        read_bytes(tmp_path, 3)
