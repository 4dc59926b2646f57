"""Document 4's worked examples, read from JSON texts and resolved to the results it prints (JSON headers compact)."""

from __future__ import annotations

import json

import pytest

from outfitter.basics import Level, Secret
from outfitter.catalog import NO_AUTH, Auth0M2M, ClientCredentials, JsonValue
from outfitter.errors import Refused
from outfitter.resolution import ArmedCredentials, arm, blueprint, explain, resolve
from tests.shelf import a_catalog, a_run, blank_headers, codes_of, sent_headers, supply_of

CONTEXT_STORE = """{
  "id": "context-store",
  "name": "Context Store",
  "description": "Document storage for agent context",
  "url": "http://localhost:9501/mcp",
  "header_schema": {
    "X-Context-Namespace": {"type": "string", "description": "Namespace for document isolation", "required": true},
    "X-Context-Scope-Filters": {"type": "json", "description": "Scope filters", "required": false},
    "X-API-Key": {"type": "string", "description": "API key", "required": false, "sensitive": true}
  },
  "default_headers": %s
}"""
ATLASSIAN = """{
  "id": "atlassian",
  "name": "Atlassian (Jira + Confluence)",
  "url": "http://localhost:9000/mcp",
  "header_schema": {
    "X-Jira-Projects": {"type": "string", "required": false, "example": "PROJ-A,PROJ-B"},
    "X-Confluence-Spaces": {"type": "string", "required": false, "example": "DEV,DOCS"},
    "X-API-Key": {"type": "string", "required": true, "sensitive": true}
  },
  "default_headers": {"X-API-Key": "${ATLASSIAN_API_KEY}"}
}"""
RESEARCHER = """{
  "capabilities": ["research-tools"],
  "system_prompt": "Research.",
  "mcpServers": {
    "context-store": {"headers": {
      "X-Context-Namespace": "project-alpha",
      "X-Context-Scope-Filters": {"department": "engineering"}
    }}%s
  }
}"""
RESEARCH_TOOLS = """{
  "mcpServers": {"context-store": {"ref": "context-store", "headers": {"X-Context-Namespace": "research"}}}
}"""


@pytest.mark.promise("DOC4-RESOLUTION")
def test_the_resolution_example_gives_the_printed_headers_and_says_who_overrode_whom() -> None:
    catalog = a_catalog(
        {"context-store": CONTEXT_STORE % '{"X-Context-Namespace": "default", "X-API-Key": "registry-key"}'},
        {"project-researcher": RESEARCHER % ""},
        {"research-tools": RESEARCH_TOOLS},
    )
    run = a_run(
        '{"agent_name": "project-researcher",'
        ' "mcp_headers": {"context-store": {"X-Context-Scope-Filters": {"team": "platform"}}}}'
    )
    plan = resolve("project-researcher", catalog, run)
    assert sent_headers(plan, "context-store") == {
        "X-Context-Namespace": "project-alpha",
        "X-API-Key": "registry-key",
        "X-Context-Scope-Filters": '{"team":"platform"}',
    }
    headers = plan.servers["context-store"].headers
    namespace = headers["X-Context-Namespace"]
    assert namespace.origin.level is Level.AGENT
    assert [o.origin.level for o in namespace.overruled] == [Level.REGISTRY, Level.CAPABILITY]
    assert headers["X-API-Key"].origin.level is Level.REGISTRY
    filters = headers["X-Context-Scope-Filters"]
    assert (filters.origin.level, [o.origin.level for o in filters.overruled]) == (Level.RUN, [Level.AGENT])


@pytest.mark.promise("DOC4-CHAIN")
def test_the_chain_drawing_ends_with_the_runs_value_and_the_childs_is_its_parents() -> None:
    catalog = a_catalog(
        {"context-store": CONTEXT_STORE % '{"X-Context-Namespace": "default"}'},
        {
            "parent": '{"capabilities": ["shared"], "mcpServers": {"context-store": {"headers":'
            ' {"X-Context-Namespace": "project-alpha"}}}}',
            "child": '{"capabilities": ["shared"]}',
        },
        {
            "shared": '{"mcpServers": {"context-store": {"ref": "context-store",'
            ' "headers": {"X-Context-Namespace": "shared-knowledge"}}}}'
        },
    )
    run = a_run('{"agent_name": "parent", "mcp_headers": {"context-store": {"X-Context-Namespace": "project-beta"}}}')
    parent = resolve("parent", catalog, run)
    assert blank_headers(parent, "context-store") == {"X-Context-Namespace": "project-beta"}
    overruled = parent.servers["context-store"].headers["X-Context-Namespace"].overruled
    assert [o.origin.level for o in overruled] == [Level.REGISTRY, Level.CAPABILITY, Level.AGENT]
    child = resolve("child", catalog, a_run('{"agent_name": "child"}'), parent)
    assert blank_headers(child, "context-store") == {"X-Context-Namespace": "project-beta"}
    assert child.servers["context-store"].headers["X-Context-Namespace"].origin.level is Level.PARENT


@pytest.mark.promise("DOC4-EXAMPLE-1")
def test_example_1_scopes_the_context_store_under_the_capabilitys_alias() -> None:
    entry = """{"id": "context-store", "url": "http://localhost:9501/mcp",
      "header_schema": {"X-Context-Namespace": {"type": "string", "required": true},
                        "X-Context-Scope-Filters": {"type": "json", "required": false}},
      "default_headers": {"X-Context-Namespace": "default"}}"""
    capability = (
        '{"mcpServers": {"docs": {"ref": "context-store", "headers": {"X-Context-Namespace": "research-docs"}}}}'
    )
    agent = """{"capabilities": ["research-capability"],
      "mcpServers": {"docs": {"headers": {"X-Context-Scope-Filters": {"type": "sprint-artifact"}}}}}"""
    catalog = a_catalog({"context-store": entry}, {"sprint-researcher": agent}, {"research-capability": capability})
    run = a_run(
        '{"agent_name": "sprint-researcher",'
        ' "mcp_headers": {"docs": {"X-Context-Scope-Filters": {"sprint_id": "sprint-42"}}}}'
    )
    plan = resolve("sprint-researcher", catalog, run)
    assert blueprint(plan)["mcp_servers"] == {
        "docs": {
            "type": "http",
            "url": "http://localhost:9501/mcp",
            "headers": {
                "X-Context-Namespace": "research-docs",
                "X-Context-Scope-Filters": '{"sprint_id":"sprint-42"}',
            },
        }
    }
    assert sent_headers(plan, "docs") == {
        "X-Context-Namespace": "research-docs",
        "X-Context-Scope-Filters": '{"sprint_id":"sprint-42"}',
    }


@pytest.mark.promise("DOC4-EXAMPLE-2")
def test_example_2_scopes_jira_and_has_no_confluence_header() -> None:
    agent = """{"mcpServers": {"jira": {"ref": "atlassian",
      "headers": {"X-Jira-Projects": "ALPHA,ALPHA-OPS", "X-Confluence-Spaces": null}}}}"""
    catalog = a_catalog({"atlassian": ATLASSIAN}, {"alpha-project-assistant": agent})
    plan = resolve("alpha-project-assistant", catalog, a_run('{"agent_name": "alpha-project-assistant"}'))
    assert sent_headers(plan, "jira", supply_of({"ATLASSIAN_API_KEY": "key-1"})) == {
        "X-API-Key": "key-1",
        "X-Jira-Projects": "ALPHA,ALPHA-OPS",
    }
    assert plan.servers["jira"].removed["X-Confluence-Spaces"].origin.name == "alpha-project-assistant"


@pytest.mark.promise("DOC4-EXAMPLE-3")
@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("team-alpha-analyst", {"X-Neo4j-Partition": "team-alpha"}),
        ("team-beta-analyst", {"X-Neo4j-Partition": "team-beta"}),
        ("global-analyst", {}),
    ],
)
def test_example_3_three_agents_share_one_server_in_different_scopes(name: str, headers: dict[str, JsonValue]) -> None:
    entry = """{"id": "neo4j", "url": "http://localhost:9003/mcp/",
      "header_schema": {"X-Neo4j-Partition": {"type": "string", "required": false}}}"""
    agent: dict[str, JsonValue] = {"mcpServers": {"kg": {"ref": "neo4j", "headers": headers}}}
    plan = resolve(name, a_catalog({"neo4j": entry}, {name: agent}), a_run({"agent_name": name}))
    assert blueprint(plan)["mcp_servers"] == {
        "kg": {"type": "http", "url": "http://localhost:9003/mcp/", "headers": headers}
    }


@pytest.mark.promise("DOC4-BLUEPRINT")
def test_the_resolved_blueprint_is_the_printed_one_with_placeholders_unfilled() -> None:
    extra = ', "atlassian": {"ref": "atlassian", "headers": {"X-Jira-Projects": "ALPHA"}}'
    defaults = '{"X-Context-Namespace": "default", "X-API-Key": "${CONTEXT_STORE_API_KEY}"}'
    catalog = a_catalog(
        {"context-store": CONTEXT_STORE % defaults, "atlassian": ATLASSIAN},
        {"project-researcher": RESEARCHER % extra},
        {"research-tools": RESEARCH_TOOLS},
    )
    assert blueprint(resolve("project-researcher", catalog)) == {
        "name": "project-researcher",
        "system_prompt": "Research.",
        "mcp_servers": {
            "context-store": {
                "type": "http",
                "url": "http://localhost:9501/mcp",
                "headers": {
                    "X-Context-Namespace": "project-alpha",
                    "X-Context-Scope-Filters": '{"department":"engineering"}',
                    "X-API-Key": "${CONTEXT_STORE_API_KEY}",
                },
            },
            "atlassian": {
                "type": "http",
                "url": "http://localhost:9000/mcp",
                "headers": {"X-API-Key": "${ATLASSIAN_API_KEY}", "X-Jira-Projects": "ALPHA"},
            },
        },
    }


@pytest.mark.promise("DOC4-RUN")
def test_the_printed_run_request_is_read_and_resolved() -> None:
    extra = ', "atlassian": {"ref": "atlassian", "headers": {"X-Jira-Projects": "ALPHA"}}'
    catalog = a_catalog(
        {"context-store": CONTEXT_STORE % "{}", "atlassian": ATLASSIAN},
        {"project-researcher": RESEARCHER % extra},
        {"research-tools": RESEARCH_TOOLS},
    )
    run = a_run(
        """{"type": "start_session", "agent_name": "project-researcher", "prompt": "Research the API design",
            "mcp_headers": {
              "context-store": {"X-Context-Namespace": "project-beta",
                                "X-Context-Scope-Filters": {"sprint": "sprint-5"}},
              "atlassian": {"X-Jira-Projects": "BETA,BETA-OPS"}}}"""
    )
    plan = resolve("project-researcher", catalog, run)
    assert blank_headers(plan, "context-store") == {
        "X-Context-Namespace": "project-beta",
        "X-Context-Scope-Filters": '{"sprint":"sprint-5"}',
    }
    assert blank_headers(plan, "atlassian")["X-Jira-Projects"] == "BETA,BETA-OPS"


ORCHESTRATOR = """{
  "id": "orchestrator",
  "name": "Agent Orchestrator",
  "description": "Spawn and manage sub-agents",
  "url": "${AGENT_ORCHESTRATOR_MCP_URL}",
  "auth_type": "auth0_m2m",
  "header_schema": {
    "X-Agent-Session-Id": {
      "type": "string", "description": "Parent session ID for callback context", "required": true, "internal": true
    }
  }
}"""
AUTH0 = {
    "AUTH0_DOMAIN": "team.example.com",
    "AUTH0_CLIENT_ID": "runner",
    "AUTH0_CLIENT_SECRET": "made-up",
    "AUTH0_AUDIENCE": "orchestrator",
}
LEAD = '{"mcpServers": {"orchestrator": {"ref": "orchestrator"}}}'


@pytest.mark.promise("DOC4-ORCHESTRATOR")
def test_the_orchestrator_gets_its_url_and_session_from_the_runner() -> None:
    plan = resolve("lead", a_catalog({"orchestrator": ORCHESTRATOR}, {"lead": LEAD}), a_run('{"agent_name": "lead"}'))
    runtime = {"runtime.session_id": "ses-7", "runner.orchestrator_mcp_url": "http://127.0.0.1:51234/mcp"}
    server = arm(plan, supply_of({}, runtime=runtime)).servers["orchestrator"]
    assert sent_headers(plan, "orchestrator", supply_of({}, runtime=runtime)) == {"X-Agent-Session-Id": "ses-7"}
    assert plan.servers["orchestrator"].auth == Auth0M2M()
    assert server.auth == NO_AUTH, "it is the runner that signs in, at the coordinator"
    assert getattr(server.transport, "url").reveal() == "http://127.0.0.1:51234/mcp"  # noqa: B009 (either transport)


@pytest.mark.promise("DOC4-ORCHESTRATOR")
def test_a_server_of_its_own_place_signs_in_with_the_variables_of_the_runner() -> None:
    document = ORCHESTRATOR.replace("${AGENT_ORCHESTRATOR_MCP_URL}", "https://orchestrator.example.com/mcp")
    plan = resolve("lead", a_catalog({"orchestrator": document}, {"lead": LEAD}), a_run('{"agent_name": "lead"}'))
    armed = arm(plan, supply_of(AUTH0, runtime={"runtime.session_id": "ses-7"})).servers["orchestrator"].auth
    assert isinstance(armed, ArmedCredentials)
    assert armed.token_url == Secret("https://team.example.com/oauth/token")
    assert armed.audience == Secret("orchestrator")


@pytest.mark.promise("DOC4-ORCHESTRATOR")
@pytest.mark.parametrize("level", ["agent", "run"])
def test_nobody_but_the_registry_sets_an_internal_header(level: str) -> None:
    headers: dict[str, JsonValue] = {"X-Agent-Session-Id": "someone-else"}
    use: dict[str, JsonValue] = {"ref": "orchestrator", **({"headers": headers} if level == "agent" else {})}
    catalog = a_catalog({"orchestrator": ORCHESTRATOR}, {"lead": {"mcpServers": {"orchestrator": use}}})
    run = a_run({"agent_name": "lead", "mcp_headers": {"orchestrator": headers} if level == "run" else {}})
    with pytest.raises(Refused) as refused:
        resolve("lead", catalog, run)
    assert codes_of(refused.value) == ["internal_header"]


@pytest.mark.promise("DOC4-ORCHESTRATOR")
def test_a_child_gets_its_own_session_id_and_not_its_parents() -> None:
    catalog = a_catalog({"orchestrator": ORCHESTRATOR}, {"lead": LEAD})
    parent = resolve("lead", catalog, a_run('{"agent_name": "lead", "session_id": "ses-parent"}'))
    child = resolve("lead", catalog, a_run('{"agent_name": "lead", "session_id": "ses-child"}'), parent)
    runtime = {"runtime.session_id": "ses-child", "runner.orchestrator_mcp_url": "http://127.0.0.1:1/mcp"}
    supply = supply_of(AUTH0, runtime=runtime)
    assert sent_headers(child, "orchestrator", supply) == {"X-Agent-Session-Id": "ses-child"}


@pytest.mark.promise("DOC4-CREDENTIALS")
def test_a_credential_of_the_run_fills_the_sensitive_header_it_names() -> None:
    catalog = a_catalog({"atlassian": ATLASSIAN}, {"analyst": '{"mcpServers": {"atlassian": {"ref": "atlassian"}}}'})
    run = a_run('{"agent_name": "analyst", "credentials": {"atlassian": {"api_key": "user-provided-key"}}}')
    plan = resolve("analyst", catalog, run)
    assert sent_headers(plan, "atlassian") == {"X-API-Key": "user-provided-key"}
    assert "user-provided-key" not in json.dumps(explain(plan).to_json())


@pytest.mark.promise("DOC4-CREDENTIALS")
@pytest.mark.parametrize(
    ("run", "code"),
    [
        ('{"agent_name": "analyst", "credentials": {"atlassian": {"jira_projects": "k"}}}', "invalid_run"),
        (
            """{"agent_name": "analyst", "credentials": {"atlassian": {"api_key": "k"}},
                "mcp_headers": {"atlassian": {"x-api-key": "other"}}}""",
            "conflict",
        ),
        ('{"agent_name": "analyst", "credentials": {"atlasian": {"api_key": "k"}}}', "unknown_alias"),
    ],
)
def test_a_credential_that_fits_nothing_is_refused(run: str, code: str) -> None:
    catalog = a_catalog({"atlassian": ATLASSIAN}, {"analyst": '{"mcpServers": {"atlassian": {"ref": "atlassian"}}}'})
    with pytest.raises(Refused) as refused:
        resolve("analyst", catalog, a_run(run))
    assert codes_of(refused.value) == [code]


@pytest.mark.promise("DOC4-SECRET")
def test_a_secret_reference_is_shown_as_a_reference_and_filled_when_armed() -> None:
    entry = ATLASSIAN.replace('"${ATLASSIAN_API_KEY}"', '{"$secret": "atlassian-api-key"}')
    catalog = a_catalog({"atlassian": entry}, {"analyst": '{"mcpServers": {"atlassian": {"ref": "atlassian"}}}'})
    plan = resolve("analyst", catalog, a_run('{"agent_name": "analyst"}'))
    assert blank_headers(plan, "atlassian") == {"X-API-Key": '{"$secret":"atlassian-api-key"}'}
    sent = sent_headers(plan, "atlassian", supply_of(secrets={"atlassian-api-key": "from the vault"}))
    assert sent == {"X-API-Key": "from the vault"}


@pytest.mark.promise("DOC4-SECRET")
def test_client_credentials_of_an_entry_are_filled_when_armed() -> None:
    entry = """{"id": "external-api", "url": "https://api.example.com/mcp",
      "auth": {"type": "oauth2_client_credentials", "token_url": "https://auth.example.com/token",
               "client_id": "${EXTERNAL_CLIENT_ID}", "client_secret": "${EXTERNAL_CLIENT_SECRET}",
               "scope": "api:read api:write"}}"""
    catalog = a_catalog({"external-api": entry}, {"a": '{"mcpServers": {"api": {"ref": "external-api"}}}'})
    plan = resolve("a", catalog)
    assert isinstance(plan.servers["api"].auth, ClientCredentials)
    supply = supply_of({"EXTERNAL_CLIENT_ID": "id-1", "EXTERNAL_CLIENT_SECRET": "shh"})
    auth = arm(plan, supply).servers["api"].auth
    assert getattr(auth, "client_secret").reveal() == "shh"  # noqa: B009 (one of three kinds)
    assert getattr(auth, "scope").reveal() == "api:read api:write"  # noqa: B009 (one of three kinds)


@pytest.mark.promise("DOC4-INLINE")
def test_the_old_inline_form_still_works_and_says_which_file_to_migrate() -> None:
    agent = '{"mcpServers": {"context-store-http": {"type": "http", "url": "http://localhost:9501/mcp"}}}'
    plan = resolve("old", a_catalog({}, {"old": agent}))
    assert blueprint(plan)["mcp_servers"] == {
        "context-store-http": {"type": "http", "url": "http://localhost:9501/mcp", "headers": {}}
    }
    (notice,) = plan.notices
    assert (notice.code, notice.where) == ("inline_server", "agents/old.json")
    assert "agents/old.json" in notice.message


@pytest.mark.promise("DOC4-REQUIRED")
def test_a_run_without_a_required_header_is_refused_with_the_list_of_what_is_missing() -> None:
    entry = """{"url": "http://localhost:9000/mcp", "header_schema": {
      "X-One": {"required": true}, "X-Two": {"required": true}, "X-Three": {}}}"""
    catalog = a_catalog({"s": entry}, {"a": '{"mcpServers": {"s": {"ref": "s"}}}'})
    with pytest.raises(Refused) as refused:
        resolve("a", catalog, a_run('{"agent_name": "a"}'))
    assert codes_of(refused.value) == ["missing_header", "missing_header"]
    assert all(name in str(refused.value) for name in ("X-One", "X-Two"))
    assert [notice.code for notice in resolve("a", catalog).notices] == ["missing_header", "missing_header"]
