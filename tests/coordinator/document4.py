"""The examples of document 4, as they are printed there."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from outfitter.coordinator import Author, Claim, Coordinator, WorkOrder
from outfitter.storage import Kind, TokenRecord

ADMIN = Author("ada", is_admin=True)
EDITOR = Author("eve")

CONTEXT_STORE: dict[str, Any] = {
    "id": "context-store",
    "name": "Context Store",
    "description": "Document storage for agent context",
    "url": "http://localhost:9501/mcp",
    "header_schema": {
        "X-Context-Namespace": {
            "type": "string",
            "description": "Namespace for document isolation",
            "required": True,
        },
        "X-Context-Scope-Filters": {
            "type": "json",
            "description": "JSON object with scope filters (e.g., root_session_id)",
            "required": False,
        },
        "X-API-Key": {
            "type": "string",
            "description": "API key for authentication",
            "required": False,
            "sensitive": True,
        },
    },
    "default_headers": {"X-Context-Namespace": "default"},
}
ATLASSIAN: dict[str, Any] = {
    "id": "atlassian",
    "name": "Atlassian (Jira + Confluence)",
    "description": "Access Jira issues and Confluence pages",
    "url": "http://localhost:9000/mcp",
    "header_schema": {
        "X-Jira-Projects": {
            "type": "string",
            "description": "Comma-separated Jira project keys",
            "required": False,
            "example": "PROJ-A,PROJ-B",
        },
        "X-Confluence-Spaces": {
            "type": "string",
            "description": "Comma-separated Confluence space keys",
            "required": False,
            "example": "DEV,DOCS",
        },
        "X-API-Key": {
            "type": "string",
            "description": "API key for Atlassian access",
            "required": True,
            "sensitive": True,
        },
    },
    "default_headers": {"X-API-Key": "${ATLASSIAN_API_KEY}"},
}
NEO4J: dict[str, Any] = {
    "id": "neo4j",
    "url": "http://localhost:9003/mcp/",
    "header_schema": {"X-Neo4j-Partition": {"type": "string", "required": False}},
}
ORCHESTRATOR: dict[str, Any] = {
    "id": "orchestrator",
    "name": "Agent Orchestrator",
    "description": "Spawn and manage sub-agents",
    "url": "${AGENT_ORCHESTRATOR_MCP_URL}",
    "auth_type": "auth0_m2m",
    "header_schema": {
        "X-Agent-Session-Id": {
            "type": "string",
            "description": "Parent session ID for callback context",
            "required": True,
            "internal": True,
        }
    },
}
RESEARCHER: dict[str, Any] = {
    "name": "project-researcher",
    "system_prompt": "...",
    "mcpServers": {
        "context-store": {
            "ref": "context-store",
            "headers": {
                "X-Context-Namespace": "project-alpha",
                "X-Context-Scope-Filters": {"department": "engineering"},
                "X-API-Key": "${CONTEXT_STORE_API_KEY}",
            },
        },
        "atlassian": {"ref": "atlassian", "headers": {"X-Jira-Projects": "ALPHA"}},
    },
}
RUN: dict[str, Any] = {
    "type": "start_session",
    "agent_name": "project-researcher",
    "prompt": "Research the API design",
    "mcp_headers": {
        "context-store": {
            "X-Context-Namespace": "project-beta",
            "X-Context-Scope-Filters": {"sprint": "sprint-5"},
        },
        "atlassian": {"X-Jira-Projects": "BETA,BETA-OPS"},
    },
}
BLUEPRINT = rb"""{
  "name": "project-researcher",
  "system_prompt": "...",
  "mcp_servers": {
    "context-store": {
      "type": "http",
      "url": "http://localhost:9501/mcp",
      "headers": {
        "X-Context-Namespace": "project-alpha",
        "X-Context-Scope-Filters": "{\"department\": \"engineering\"}",
        "X-API-Key": "${CONTEXT_STORE_API_KEY}"
      }
    },
    "atlassian": {
      "type": "http",
      "url": "http://localhost:9000/mcp",
      "headers": {
        "X-Jira-Projects": "ALPHA",
        "X-API-Key": "${ATLASSIAN_API_KEY}"
      }
    }
  }
}"""


def server(name: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any field of a document
    """A small entry."""
    return {"id": name, "url": f"http://localhost:9100/{name}", **more}


def agent(name: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any field of a document
    """A small agent."""
    return {"name": name, **more}


async def fill(coordinator: Coordinator, *documents: tuple[Kind, dict[str, Any]]) -> None:
    """Store these, in this order."""
    for kind, document in documents:
        await coordinator.entries.create(kind, document, ADMIN)


async def fill_document_4(coordinator: Coordinator) -> None:
    """Store the two servers and the agent whose blueprint document 4 prints."""
    await fill(coordinator, ("mcp-servers", CONTEXT_STORE), ("mcp-servers", ATLASSIAN), ("agents", RESEARCHER))


def run_token(agent: str, run_id: str, seconds: float) -> TokenRecord:
    """What is kept of a token of a run; nobody knows the token."""
    assert seconds > 0
    name = uuid.uuid4().hex
    return TokenRecord(name, name, "agent", "2026-11-16T00:00:00.000000Z", "test", agent=agent, run_id=run_id)


async def begin(coordinator: Coordinator, run_id: str, runner: str = "r1", **more: Any) -> WorkOrder:  # noqa: ANN401 - of a Claim
    """A runner takes a run."""
    return await coordinator.executions.begin(run_id, Claim(runner, **more), run_token, EDITOR)


def headers_of(explained: Any, alias: str) -> dict[str, Any]:  # noqa: ANN401 - an explanation, as JSON
    """The headers of one server of an explanation, by name."""
    (found,) = (server for server in explained["servers"] if server["alias"] == alias)
    return {header["name"]: header["value"] for header in found["headers"]}


def text_of(value: object) -> str:
    """Everything that a value shows, as one text to search."""
    return f"{value!r} {value!s} {json.dumps(value, default=repr)}"


def files_with(folder: Path, text: str) -> list[str]:
    """The names of the files below a folder that hold a text."""
    found = (file for file in folder.rglob("*") if file.is_file())
    return sorted(file.name for file in found if text.encode() in file.read_bytes())
