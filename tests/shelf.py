"""What the tests build and look at: values read from JSON texts, plans armed with a few variables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from outfitter.basics import Secret, SecretRef
from outfitter.catalog import Agent, Capability, Catalog, JsonValue, RunRequest, ServerEntry, json_text
from outfitter.errors import OutfitterError, Refused
from outfitter.formats import Syntax, read_agent, read_capability, read_document, read_entry, read_run
from outfitter.resolution import ArmedRemote, RunPlan, Supply, arm, text_of

Text = str | Mapping[str, JsonValue]


def as_text(content: Text) -> str:
    """The content as JSON text, when it is not text already."""
    return content if isinstance(content, str) else json_text(dict(content))


def an_entry(id_: str, content: Text) -> ServerEntry:
    """The registry entry that this JSON describes."""
    source = f"mcp-servers/{id_}.json"
    return read_document(as_text(content), source, Syntax.JSON, lambda value: read_entry(value, id_, source))


def a_capability(name: str, content: Text) -> Capability:
    """The capability that this JSON describes."""
    source = f"capabilities/{name}.json"
    return read_document(as_text(content), source, Syntax.JSON, lambda value: read_capability(value, name, source))


def an_agent(name: str, content: Text) -> Agent:
    """The agent that this JSON describes."""
    source = f"agents/{name}.json"
    return read_document(as_text(content), source, Syntax.JSON, lambda value: read_agent(value, name, source))


def a_run(content: Text) -> RunRequest:
    """The run request that this JSON describes."""
    return read_document(as_text(content), "run.json", Syntax.JSON, lambda value: read_run(value, "run.json"))


def a_catalog(
    servers: Mapping[str, Text], agents: Mapping[str, Text], capabilities: Mapping[str, Text] | None = None
) -> Catalog:
    """The catalog of these texts, each under its id or name."""
    return Catalog.of(
        [an_entry(id_, content) for id_, content in servers.items()],
        [a_capability(name, content) for name, content in (capabilities or {}).items()],
        [an_agent(name, content) for name, content in agents.items()],
    )


def blank_headers(plan: RunPlan, alias: str) -> dict[str, str]:
    """The headers of a server before anything is filled in."""
    return {name: text_of(header.value) for name, header in plan.servers[alias].headers.items()}


def supply_of(
    variables: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    runtime: Mapping[str, str] | None = None,
) -> Supply:
    """A supply of these plain values."""
    return Supply(
        {name: Secret(value) for name, value in (variables or {}).items()},
        {SecretRef.parse(name): Secret(value) for name, value in (secrets or {}).items()},
        dict(runtime or {}),
    )


def sent_headers(plan: RunPlan, alias: str, supply: Supply | None = None) -> dict[str, str]:
    """The headers as the server would receive them."""
    transport = arm(plan, supply or Supply()).servers[alias].transport
    assert isinstance(transport, ArmedRemote)
    return {name: secret.reveal() for name, secret in transport.headers.items()}


def codes_of(error: OutfitterError) -> list[str]:
    """The codes of an error's problems, or its own."""
    return [problem.code for problem in error.problems] if isinstance(error, Refused) else [error.code]


def folder_state(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder: files with their bytes, folders as None."""
    return {
        path.relative_to(folder).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }
