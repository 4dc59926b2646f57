"""Where secrets come from: the environment, a folder of files, the keyring. Each is fetched once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from outfitter.basics import Secret, SecretRef
from outfitter.catalog import MCPServer
from outfitter.errors import InvalidHeader, Refused, SecretUnavailable, UnresolvedPlaceholder
from outfitter.resolution import ArmedServer, resolve, wants_of
from outfitter.upstream import (
    DefaultSecrets,
    EnvironmentSecrets,
    FileSecrets,
    KeyringSecrets,
    SecretProvider,
    arm_servers,
    fetch_each,
    fetch_supply,
    is_kept,
    make_providers,
    provider_of,
)
from tests.shelf import a_catalog, sent_headers


@pytest.mark.promise("SECRET-PROVIDERS")
def test_the_environment_gives_what_is_set_and_an_empty_variable_counts_as_unset() -> None:
    secrets = EnvironmentSecrets({"A": "value", "EMPTY": ""})
    assert [secrets.fetch(name) for name in ("A", "EMPTY", "B")] == [Secret("value"), None, None]
    assert "value" not in repr(secrets)


@pytest.mark.promise("SECRET-PROVIDERS")
@pytest.mark.parametrize(
    ("content", "secret"),
    [(b"value\n", "value"), (b"value\r\n", "value"), (b"two\nlines\n", "two\nlines"), ("ключ".encode(), "ключ")],
)
def test_a_file_gives_its_content_without_the_last_line_break(tmp_path: Path, content: bytes, secret: str) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/key").write_bytes(content)
    assert FileSecrets(tmp_path).fetch("deep/key") == Secret(secret)
    assert FileSecrets(tmp_path).fetch("deep/none") is None
    assert FileSecrets(tmp_path / "no folder").fetch("key") is None


@pytest.mark.promise("SECRET-PROVIDERS")
@pytest.mark.parametrize("name", ["../key", "/etc/hostname", "link", "folder/../../key", "linked/key"])
def test_a_file_outside_the_secrets_folder_is_never_read(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "secrets"
    (folder / "folder").mkdir(parents=True)
    (tmp_path / "key").write_text("CNRY")
    (folder / "link").symlink_to(tmp_path / "key")
    (folder / "linked").symlink_to(tmp_path)
    with pytest.raises(SecretUnavailable, match="outside"):
        FileSecrets(folder).fetch(name)


@pytest.mark.promise("SECRET-PROVIDERS")
def test_a_link_to_another_file_of_the_folder_is_fine(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data/key").write_text("mounted")
    (tmp_path / "key").symlink_to(tmp_path / "..data/key")
    assert FileSecrets(tmp_path).fetch("key") == Secret("mounted")


@pytest.mark.promise("SECRET-PROVIDERS")
@pytest.mark.parametrize(
    ("content", "words"),
    [(b"x" * (64 * 1024 + 1), "larger than"), (b"CNRY\xff", "not UTF-8"), (None, "cannot be read")],
)
def test_a_file_that_cannot_be_a_secret_is_told_without_its_content(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    if content is None:
        (tmp_path / "key").mkdir()
    else:
        (tmp_path / "key").write_bytes(content)
    with pytest.raises(SecretUnavailable, match=words) as error:
        FileSecrets(tmp_path).fetch("key")
    assert "CNRY" not in str(error.value)


class MemoryKeyring(KeyringBackend):
    """A real backend that keeps its passwords in memory."""

    priority = 1  # pyright: ignore[reportAssignmentType]

    def __init__(self, *, is_locked: bool = False) -> None:
        super().__init__()
        self.is_locked = is_locked
        self.passwords: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        if self.is_locked:
            raise KeyringLocked("CNRY")
        return self.passwords.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.passwords[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.passwords[service, username]


@pytest.fixture
def memory() -> Iterator[MemoryKeyring]:
    before = keyring.get_keyring()
    backend = MemoryKeyring()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


@pytest.mark.promise("SECRET-PROVIDERS")
def test_the_keyring_gives_what_is_kept_under_service_and_name(memory: MemoryKeyring) -> None:
    keyring.set_password("jira", "api", "one")
    keyring.set_password("outfitter", "plain", "two")
    fetch = KeyringSecrets().fetch
    assert [fetch("jira/api"), fetch("plain"), fetch("jira/none"), fetch("jira")] == [
        Secret("one"), Secret("two"), None, None,
    ]  # fmt: skip
    assert len(memory.passwords) == 2


@pytest.mark.promise("SECRET-PROVIDERS")
def test_a_locked_keyring_is_unavailable_and_its_complaint_is_not_repeated(memory: MemoryKeyring) -> None:
    memory.is_locked = True
    with pytest.raises(SecretUnavailable, match="KeyringLocked") as error:
        KeyringSecrets().fetch("jira/api")
    assert "CNRY" not in str(error.value)


@pytest.mark.promise("SECRET-PROVIDERS")
def test_a_bare_name_is_looked_up_in_the_folder_first_and_then_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "both-key").write_text("file")
    environment = EnvironmentSecrets({"BOTH_KEY": "variable", "ONLY_VARIABLE": "variable"})
    secrets = DefaultSecrets(FileSecrets(tmp_path), environment)
    assert [secrets.fetch(name) for name in ("both-key", "only-variable", "none")] == [
        Secret("file"), Secret("variable"), None,
    ]  # fmt: skip


@pytest.mark.promise("SECRET-PROVIDERS")
def test_a_provider_that_does_not_exist_is_told_with_those_that_do(tmp_path: Path) -> None:
    providers = make_providers({}, tmp_path)
    with pytest.raises(SecretUnavailable, match="no secret provider 'nowhere'") as error:
        provider_of(SecretRef.parse("nowhere:key"), providers)
    assert error.value.hint == "known: env, file, keyring, vault"


@dataclass
class CountingSecrets:
    """A provider that remembers what it was asked for."""

    asked: list[str] = field(default_factory=list[str])

    def fetch(self, name: str) -> Secret | None:
        self.asked.append(name)
        return Secret(f"secret of {name}")


@pytest.mark.promise("SECRET-PROVIDERS")
def test_a_supply_holds_what_a_plan_wants_and_each_secret_is_fetched_once(tmp_path: Path) -> None:
    entry = """{"url": "http://${HOST}/mcp", "default_headers": {
        "X-A": {"$secret": "vault:one"}, "X-B": {"$secret": "vault:one"},
        "X-C": "${C:-c}", "X-D": "${AGENT_SESSION_ID}"}}"""
    plan = resolve("a", a_catalog({"s": entry}, {"a": '{"mcpServers": {"s": {"ref": "s"}}}'}))
    counting = CountingSecrets()
    providers: Mapping[str, SecretProvider] = make_providers({}, tmp_path) | {"vault": counting}
    environment = {"HOST": "localhost", "UNRELATED": "CNRY"}
    supply = fetch_supply(wants_of(plan), environment, providers, {"runtime.session_id": "s-1"})
    assert sent_headers(plan, "s", supply) == {
        "X-A": "secret of one", "X-B": "secret of one", "X-C": "c", "X-D": "s-1",
    }  # fmt: skip
    assert counting.asked == ["one"]
    assert set(supply.variables) == {"HOST"}


@pytest.mark.promise("SECRET-PROVIDERS")
@pytest.mark.parametrize(
    "name", ["../x", "a/../b", "/x", "", "a b", "a\nb", "x" * 201, "env:", "ENV:x", ":x", "e-n:x", "file:../x", "a\0"]
)
def test_a_secret_name_that_could_climb_or_confuse_is_refused(name: str) -> None:
    with pytest.raises(InvalidHeader):
        SecretRef.parse(name)


@pytest.mark.promise("SECRET-PROVIDERS")
@pytest.mark.parametrize("text", ["name", "env:NAME", "file:a/b.txt", "keyring:service/user@host"])
def test_a_reference_is_written_the_way_it_is_read(text: str) -> None:
    assert str(SecretRef.parse(text)) == text


@pytest.mark.promise("SECRET-PROVIDERS")
def test_a_secret_file_that_is_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "key")
    with pytest.raises(SecretUnavailable):
        FileSecrets(tmp_path).fetch("key")


OWN = ("OUTFITTER_DATABASE", "VAULT_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")


@pytest.mark.parametrize(
    "written", ['"${NAME}"', '"${NAME:-default}"', '{"$secret": "env:NAME"}', '{"$secret": "NAME"}']
)
@pytest.mark.parametrize("name", OWN)
def test_what_the_service_itself_runs_on_is_given_to_no_server(tmp_path: Path, name: str, written: str) -> None:
    entry = '{"url": "http://x/mcp", "default_headers": {"X-A": VALUE}}'.replace("VALUE", written.replace("NAME", name))
    plan = resolve("a", a_catalog({"s": entry}, {"a": '{"mcpServers": {"s": {"ref": "s"}}}'}))
    environment = {name: "CNRY", "GITHUB_TOKEN": "t"}
    with pytest.raises(UnresolvedPlaceholder, match=f"unresolved: {name} is the service's own") as error:
        fetch_supply(wants_of(plan), environment, make_providers(environment, tmp_path))
    assert "CNRY" not in f"{error.value} {error.value.hint}"


def test_every_other_variable_may_be_used_and_a_program_has_its_own_environment_whole() -> None:
    assert not [
        name
        for name in ("GITHUB_TOKEN", "OTEL_EXPORTER_OTLP_ENDPOINT", "PGPASSWORD", "MY_VAULT_TOKEN")
        if is_kept(name)
    ]
    server = MCPServer.http("s", "http://x/mcp", headers={"X-A": "${OUTFITTER_TOKEN}"})
    assert isinstance(arm_servers([server], {"OUTFITTER_TOKEN": "t"})["s"], ArmedServer)


def test_a_provider_that_cannot_be_asked_is_the_fault_of_the_servers_that_want_it(tmp_path: Path) -> None:
    entries = {
        name: f'{{"url": "http://x/mcp", "default_headers": {{"X-A": {{"$secret": "{ref}"}}}}}}'
        for name, ref in {"one": "nowhere:key", "two": "vault:a/b/c", "three": "env:FINE"}.items()
    }
    uses = ", ".join(f'"{name}": {{"ref": "{name}"}}' for name in entries)
    wants = wants_of(resolve("a", a_catalog(entries, {"a": f'{{"mcpServers": {{{uses}}}}}'})))
    environment = {"FINE": "t"}
    found = fetch_each(wants, environment, make_providers(environment, tmp_path))
    assert {alias: fault.code for alias, fault in found.faults.items()} == dict.fromkeys(
        ("one", "two"), "secret_unavailable"
    )
    assert found.supply.secrets == {SecretRef.parse("env:FINE"): Secret("t")}
    with pytest.raises(Refused) as refused:
        fetch_supply(wants, environment, make_providers(environment, tmp_path))
    assert len(refused.value.problems) == 2
