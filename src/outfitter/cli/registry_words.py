"""What the commands of servers, capabilities and agents have in common: the kind's words, and how a change is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from outfitter.cli.api_client import Answer, ApiClient, path_of
from outfitter.cli.console import print_json, visible


@dataclass(frozen=True, slots=True)
class Words:
    """One kind of entry: its path in the API, its command, what one of it is called."""

    kind: str
    command: str
    noun: str

    @property
    def key(self) -> str:
        """The field of a document that names it."""
        return "id" if self.kind == "mcp-servers" else "name"

    def path(self, name: str, *rest: str) -> str:
        """The path of one entry."""
        return path_of(self.kind, name, *rest)

    def document_path(self, name: str) -> str:
        """Where its document is read: an agent's own path answers its blueprint."""
        return self.path(name, "document") if self.kind == "agents" else self.path(name)

    def record(self, client: ApiClient, name: str) -> dict[str, Any]:
        """The document with what is known about it."""
        return client.request("GET", self.document_path(name), query={"detail": True}).json


SERVERS = Words("mcp-servers", "servers", "server")
CAPABILITIES = Words("capabilities", "capabilities", "capability")
AGENTS = Words("agents", "agents", "agent")
KINDS = {words.kind: words for words in (SERVERS, CAPABILITIES, AGENTS)}


def tell_change(words: Words, did: str, name: str, answer: Answer, *, as_json: bool) -> None:
    """Say what was done, and which version it made."""
    version = answer.etag.strip('"')
    if as_json:
        print_json({"kind": words.kind, "id": name, "version": int(version), "document": answer.json})
    else:
        click.echo(visible(f"{did} {words.noun} '{name}', version {version}."))
