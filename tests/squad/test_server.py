"""The squad server in both protocol eras: what it lists, reads, completes and searches, and what its tools answer."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from mcp import MCPError
from mcp.types import ResourceTemplateReference

from outfitter.squad import Decision
from tests.squad.server_kit import ERAS, LivingTeam, asking

pytestmark = pytest.mark.anyio
TEAM_URIS = [
    "squad://roster",
    "squad://decisions",
    "squad://decisions/latest",
    "squad://backlog",
    "squad://agents",
    "squad://metrics",
]


def history(name: str) -> str:
    return f"squad://agents/{name}/history"


def status(name: str) -> str:
    return f"squad://agents/{name}/status"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.promise("SQUAD-RESOURCES")
async def test_every_resource_is_listed_and_says_what_the_team_says(era: str) -> None:
    async with asking(LivingTeam(), "keaton", era) as client:
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        documents = {uri: json.loads(await client.read_text(uri)) for uri in listed}
    names = ("hockney", "keaton", "scribe", "verbal")
    assert listed == [*TEAM_URIS, *(uri for name in names for uri in (status(name), history(name)))]
    assert [member["id"] for member in documents["squad://roster"]["members"]] == [
        "keaton",
        "verbal",
        "hockney",
        "scribe",
    ]
    assert documents["squad://roster"]["notes"] == ["a note on the roster"]
    assert [one["id"] for one in documents["squad://decisions"]["decisions"]] == ["d2", "d1"]
    assert documents["squad://backlog"]["source"] == "files"
    assert documents["squad://backlog"]["items"][0]["title"] == "Mend the build"
    assert documents["squad://agents"]["agents"][1]["history_uri"] == history("verbal")
    assert documents["squad://metrics"]["team_total"]["input_tokens"] == 110
    assert documents[status("verbal")]["agent"]["last_task"] == "wrote tests"
    assert documents[history("verbal")]["entries"][0]["text"] == "what only verbal knows"


@pytest.mark.parametrize("era", ERAS)
async def test_the_latest_decisions_are_ten(era: str) -> None:
    kept = tuple(Decision(f"d{number}", f"number {number}", "text") for number in range(25))
    async with asking(LivingTeam(kept=kept), "keaton", era) as client:
        latest = json.loads(await client.read_text("squad://decisions/latest"))
        every = json.loads(await client.read_text("squad://decisions"))
    assert [one["id"] for one in latest["decisions"]] == [f"d{number}" for number in range(10)]
    assert every["total"] == 25


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.promise("SQUAD-RESOURCES")
async def test_templates_are_listed_and_their_names_complete(era: str) -> None:
    async with asking(LivingTeam(), "keaton", era) as client:
        templates = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
        assert templates == ["squad://agents/{name}/status", "squad://agents/{name}/history"]
        every = await client.complete(ResourceTemplateReference(uri=templates[0]), {"name": "name", "value": ""})
        some = await client.complete(ResourceTemplateReference(uri=templates[1]), {"name": "name", "value": "VER"})
        with pytest.raises(MCPError):
            await client.complete(ResourceTemplateReference(uri="squad://roster"), {"name": "name", "value": ""})
    assert every.completion.values == ["hockney", "keaton", "scribe", "verbal"]
    assert every.completion.total == 4
    assert some.completion.values == ["verbal"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.promise("SQUAD-TOOLS")
async def test_tools_only_look_and_answer_what_their_schemas_say(era: str) -> None:
    async with asking(LivingTeam(), "hockney", era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        answers = {
            "squad_status": await client.call_tool("squad_status", {}),
            "squad_decision_search": await client.call_tool("squad_decision_search", {"query": "postgresql"}),
        }
    assert list(tools) == ["squad_status", "squad_decision_search"]
    for name, answer in answers.items():
        assert not answer.is_error
        schema = tools[name].output_schema
        assert schema is not None
        assert schema["type"] == "object"
        jsonschema.validate(answer.structured_content, schema)
        assert json.loads(answer.content[0].text) == answer.structured_content
        annotations = tools[name].annotations
        assert annotations is not None
        assert annotations.read_only_hint
        assert not annotations.destructive_hint
    found: dict[str, Any] = answers["squad_decision_search"].structured_content
    assert [(one["id"], one["snippets"]) for one in found["decisions"]] == [("d2", ["**postgresql**"])]
    told: dict[str, Any] = answers["squad_status"].structured_content
    assert {agent["id"]: agent["last_task"] for agent in told["agents"]}["verbal"] == "wrote tests"
    assert told["backlog"]["total"] == 1


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("name", "arguments", "word"),
    [
        ("squad_decision_search", {}, "query"),
        ("squad_decision_search", {"query": ""}, "query"),
        ("squad_decision_search", {"query": "a", "limit": 51}, "limit"),
        ("squad_decision_search", {"query": "a", "write": True}, "write"),
        ("squad_status", {"agent": "keaton"}, "agent"),
        ("squad_write", {}, "squad_status"),
    ],
)
async def test_a_wrong_call_is_an_answer_that_says_what_is_wrong(
    era: str, name: str, arguments: dict[str, Any], word: str
) -> None:
    async with asking(LivingTeam(), "hockney", era) as client:
        answer = await client.call_tool(name, arguments)
    assert answer.is_error
    assert word in answer.content[0].text


@pytest.mark.parametrize("era", ERAS)
async def test_the_instructions_say_where_the_state_is_read(era: str) -> None:
    async with asking(LivingTeam(), "hockney", era) as client:
        assert (await client.instructions()).startswith("Read in a test.")
