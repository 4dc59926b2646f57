"""The description is made from the routes, holds what OpenAPI wants, and the service does what it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from openapi_spec_validator import validate

from outfitter.coordinator import ACTIONS, ROLES, ROUTES, describe
from tests.coordinator.api.kit import Served
from tests.coordinator.document4 import CONTEXT_STORE

pytestmark = pytest.mark.anyio
DOCUMENT = Path(__file__).parents[3] / "docs" / "api.md"


@pytest.mark.promise("API-DESCRIBED")
async def test_the_description_is_valid_and_names_every_route(served: Served) -> None:
    described: dict[str, Any] = (await served.nobody().get("/openapi.json")).json
    validate(described)
    assert described["openapi"] == "3.1.0"
    named = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    assert named == {(route.method, route.path) for route in ROUTES}
    assert json.loads(msgspec.json.encode(describe(ROUTES))) == described
    ids = [operation["operationId"] for methods in described["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))


@pytest.mark.promise("API-DESCRIBED")
async def test_every_field_that_is_described_is_read_and_no_other(served: Served) -> None:
    """The documents are read by hand-written readers; their fields are those of the description."""
    schemas = describe(ROUTES)["components"]["schemas"]
    told: dict[str, set[str]] = {}
    for path, name in (("/mcp-servers", "ServerDocument"), ("/capabilities", "CapabilityDocument"),
                       ("/agents", "AgentDocument"), ("/runs", "RunDocument")):  # fmt: skip
        reply = await served.post(path, {"colour": "red"})
        assert reply.status == 422
        told[name] = set(schemas[name]["properties"])
        for field in told[name]:
            reply = await served.post(path, {field: [[1]]})
            assert f"unknown field '{field}'" not in reply.json["detail"], reply.json
    assert "system_prompt_file" not in told["AgentDocument"]


@pytest.mark.promise("API-DESCRIBED")
def test_the_routes_in_the_documents_are_those_of_the_table() -> None:
    rows = re.findall(r"^\| `([A-Z]+)` \| `([^`]+)` \| (.*?) \| (.*?) \|$", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    expected = [
        (route.method, route.path, route.summary, "everyone" if route.action is None else f"`{route.action}`")
        for route in ROUTES
    ]
    assert rows == expected


def test_the_roles_in_the_documents_are_those_of_the_table() -> None:
    rows = re.findall(r"^\| `([a-z]+\.[a-z]+)` \| (.*?) \| (.*?) \|$", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    expected = [(name, rule.about, ", ".join(sorted(rule.roles))) for name, rule in ACTIONS.items()]
    assert rows == expected


def test_the_page_of_roles_draws_the_table_of_actions() -> None:
    text = (DOCUMENT.parent / "roles.md").read_text("utf-8")
    names = ["action", "what it is", *(f"`{role}`" for role in ROLES), "bound to an agent"]
    rows = [
        [f"`{name}`", rule.about, *(_yes(role in rule.roles) for role in ROLES), _yes(rule.concerns_one_agent)]
        for name, rule in ACTIONS.items()
    ]
    drawn = [line.strip("|").split("|") for line in text.splitlines() if line.startswith(("| action", "| `"))]
    cells = [[cell.strip() for cell in line] for line in drawn]
    assert [line for line in cells if len(line) == len(names)] == [names, *rows]
    assert {line[0].strip("`") for line in cells if len(line) == 2} == set(ROLES)


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "–"


async def test_a_blueprint_fits_its_description(served: Served) -> None:
    import jsonschema

    await served.must("/mcp-servers", CONTEXT_STORE)
    await served.must("/agents", {"name": "a", "mcpServers": {"s": {"ref": "context-store"}}})
    described = describe(ROUTES)
    for path, name in (
        ("/agents/a", "BlueprintDocument"),
        ("/agents/a?explain=true", "ExplanationDocument"),
        ("/agents/a/document?detail=true", "EntryRecord"),
        ("/mcp-servers/context-store", "ServerDocument"),
        ("/mcp-servers/context-store/history", "ChangeList"),
    ):
        schema = {"$ref": f"#/components/schemas/{name}", "components": described["components"]}
        jsonschema.validate((await served.get(path)).json, schema)


def test_the_web_framework_is_loaded_when_the_api_is_made_and_not_before() -> None:
    program = (
        "import sys, outfitter.app, outfitter.gateway, outfitter.coordinator as c; "
        "assert 'starlette' not in sys.modules; c.make_api; assert 'starlette' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
