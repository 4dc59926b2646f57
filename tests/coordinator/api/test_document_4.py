"""Every API example of document 4, against the running service, byte for byte where it prints an answer."""

from __future__ import annotations

import json

import pytest

from tests.coordinator.api.kit import Reply, Served
from tests.coordinator.document4 import CONTEXT_STORE

pytestmark = pytest.mark.anyio

ATLASSIAN = """{
  "id": "atlassian",
  "name": "Atlassian (Jira + Confluence)",
  "description": "Access Jira issues and Confluence pages",
  "url": "http://localhost:9000/mcp",
  "header_schema": {
    "X-Jira-Projects": {
      "type": "string",
      "description": "Comma-separated Jira project keys",
      "required": false,
      "example": "PROJ-A,PROJ-B"
    },
    "X-Confluence-Spaces": {
      "type": "string",
      "description": "Comma-separated Confluence space keys",
      "required": false,
      "example": "DEV,DOCS"
    },
    "X-API-Key": {
      "type": "string",
      "description": "API key for Atlassian access",
      "required": true,
      "sensitive": true
    }
  },
  "default_headers": {
    "X-API-Key": "${ATLASSIAN_API_KEY}"
  }
}"""
ORCHESTRATOR = """{
  "id": "orchestrator",
  "name": "Agent Orchestrator",
  "description": "Spawn and manage sub-agents",
  "url": "${AGENT_ORCHESTRATOR_MCP_URL}",
  "auth_type": "auth0_m2m",
  "header_schema": {
    "X-Agent-Session-Id": {
      "type": "string",
      "description": "Parent session ID for callback context",
      "required": true,
      "internal": true
    }
  }
}"""
RUN = """{
  "type": "start_session",
  "agent_name": "project-researcher",
  "prompt": "Research the API design",
  "mcp_headers": {
    "context-store": {
      "X-Context-Namespace": "project-beta",
      "X-Context-Scope-Filters": {"sprint": "sprint-5"}
    },
    "atlassian": {
      "X-Jira-Projects": "BETA,BETA-OPS"
    }
  }
}"""
BLUEPRINT = """{
  "name": "project-researcher",
  "system_prompt": "...",
  "mcp_servers": {
    "context-store": {
      "type": "http",
      "url": "http://localhost:9501/mcp",
      "headers": {
        "X-Context-Namespace": "project-alpha",
        "X-Context-Scope-Filters": "{\\"department\\": \\"engineering\\"}",
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
AGENT = {
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


def headers_of(reply: Reply, alias: str) -> dict[str, str]:
    (server,) = (server for server in reply.json["plan"]["servers"] if server["alias"] == alias)
    return {header["name"]: header["value"] for header in server["headers"]}


@pytest.mark.promise("DOC4-API")
@pytest.mark.parametrize("example", [ATLASSIAN, ORCHESTRATOR, json.dumps(CONTEXT_STORE, indent=2)])
async def test_a_server_is_made_and_read_as_the_document_prints_it(served: Served, example: str) -> None:
    made = await served.post("/mcp-servers", example.encode())
    assert (made.status, made.content) == (201, example.encode())
    name = json.loads(example)["id"]
    assert (await served.get(f"/mcp-servers/{name}")).content == example.encode()
    (listed,) = (await served.get("/mcp-servers")).json["items"]
    assert json.dumps(listed["document"]) == json.dumps(json.loads(example))
    put = await served.put(f"/mcp-servers/{name}", example.encode(), made.etag)
    assert (put.status, put.content) == (200, example.encode())
    assert (await served.ask("DELETE", f"/mcp-servers/{name}", if_match=put.etag)).status == 204


@pytest.mark.promise("DOC4-API")
async def test_the_blueprint_is_the_one_that_the_document_prints(served: Served) -> None:
    await served.must("/mcp-servers", CONTEXT_STORE)
    await served.must("/mcp-servers", ATLASSIAN.encode())
    await served.must("/agents", AGENT)
    assert (await served.get("/agents/project-researcher")).content == BLUEPRINT.encode()
    explained = (await served.get("/agents/project-researcher?explain=true")).json
    (server, _) = explained["servers"]
    (namespace,) = (header for header in server["headers"] if header["name"] == "X-Context-Namespace")
    assert (namespace["value"], namespace["origin"]["level"]) == ("project-alpha", "agent")
    assert [(o["value"], o["origin"]["level"]) for o in namespace["overruled"]] == [("default", "registry")]


@pytest.mark.promise("DOC4-API")
async def test_the_run_of_the_document_starts_with_its_headers(served: Served) -> None:
    await served.must("/mcp-servers", CONTEXT_STORE)
    await served.must("/mcp-servers", ATLASSIAN.encode())
    await served.must("/agents", AGENT)
    made = await served.must("/runs", RUN.encode())
    assert made.headers["location"] == f"/runs/{made.json['id']}"
    run = (await served.get(made.headers["location"])).json
    assert run == made.json
    asked = json.loads(RUN)
    assert {name: run[name] for name in asked} == asked
    session = await served.get(f"/sessions/{run['session_id']}")
    assert headers_of(session, "context-store") == {
        "X-Context-Namespace": "project-beta",
        "X-Context-Scope-Filters": '{"sprint":"sprint-5"}',
        "X-API-Key": "${CONTEXT_STORE_API_KEY}",
    }
    assert headers_of(session, "atlassian")["X-Jira-Projects"] == "BETA,BETA-OPS"


@pytest.mark.promise("DOC4-API")
async def test_client_credentials_are_taken_and_kept_by_nobody(served: Served) -> None:
    await served.must("/mcp-servers", json.loads(ATLASSIAN) | {"id": "jira"})
    uses = {"mcpServers": {"atlassian": {"ref": "jira"}}}
    await served.must("/agents", {"name": "analyst"} | uses)
    run = {"agent_name": "analyst", "credentials": {"atlassian": {"X-API-Key": "user-provided-key"}}}
    made = await served.must("/runs", run)
    session = await served.get(f"/sessions/{made.json['session_id']}")
    for reply in (made, session, await served.get("/runs")):
        assert b"user-provided-key" not in reply.content
