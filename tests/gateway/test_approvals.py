"""Calls that a rule asks about wait for a person: answered elsewhere or at the client, once, and for nothing else."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

from outfitter.catalog import Agent, Catalog, Effect, MCPServer, ToolRule
from outfitter.gateway import Governing, Seat
from outfitter.policy import Verdict
from outfitter.resolution import Supply, arm_each, resolve
from outfitter.storage import ApprovalStore, ApprovalTimes
from outfitter.testing import Script, ScriptedTool, serve_http
from tests.gateway.kit import META, Raw, agent, raw
from tests.gateway.watched import Watched, until, watched

pytestmark = pytest.mark.anyio
YES, NO = Verdict(is_yes=True, by="alice", where="command line"), Verdict(is_yes=False, by="bob", where="API")
ECHO: dict[str, Any] = {"name": "echo", "arguments": {"text": "hi", "password": "hunter2"}}
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])
RULE = ToolRule(("echo",), Effect.ASK, reason="it talks")


@dataclass(slots=True)
class Stage:
    """A gateway whose agent may echo only when a person says so."""

    running: Watched
    store: ApprovalStore
    http: Raw
    requests: Mapping[str, int]
    agent: Agent
    era: str = "modern"

    async def call(self, params: Mapping[str, Any] = ECHO) -> Any:  # noqa: ANN401 - JSON
        """What comes of a call."""
        ask = self.http.legacy if self.era == "legacy" else self.http.modern
        _, answer = await ask("tools/call", dict(params))
        return answer["result"]

    async def waiting(self, count: int = 1) -> list[str]:
        """The ids of calls that wait, as soon as there are so many."""

        def found() -> list[str]:
            return [one.id for one in self.store.list(["waiting"]) if one.waits_until]

        await until(lambda: len(found()) == count)
        return found()

    async def answered(self, verdict: Verdict, params: Mapping[str, Any] = ECHO) -> Any:  # noqa: ANN401 - JSON
        """What comes of a call that somebody answers while it waits."""
        async with anyio.create_task_group() as group:

            async def decide() -> None:
                (ident,) = await self.waiting()
                self.store.decide(ident, verdict)

            group.start_soon(decide)
            return await self.call(params)

    def use(self, changed: Agent) -> None:
        """Another catalog from now on."""
        plan = resolve("a", Catalog(agents={"a": changed}))
        self.running.desk.seats.swap(lambda _name: Seat(plan, arm_each(plan, Supply())))

    def calls(self) -> int:
        """How many calls the server has seen."""
        return self.requests["tools/call"]


@asynccontextmanager
async def stage(
    folder: Path,
    *,
    wait: float = 60.0,
    era: str = "modern",
    script: Script | None = None,
    change: Callable[[Agent], Agent] = lambda one: one,
) -> AsyncGenerator[Stage]:
    """A gateway with one agent, and a client of the era."""
    store = ApprovalStore(folder / "approvals", ApprovalTimes(wait=wait, most_waiting=2))
    async with serve_http(script or Script("x")) as served:
        one = change(replace(agent("a", MCPServer.http("x", served.url)), rules=(RULE,)))
        async with (
            watched(folder / "journal", one, governing=Governing(approvals=store), is_fast=True) as running,
            raw(running.address.url("a", "x")) as http,
        ):
            if era == "legacy":
                await http.handshake()
            yield Stage(running, store, http, served.ledger.requests, one, era)
    store.close()


def code_of(result: Mapping[str, Any]) -> str:
    return result["_meta"]["outfitter/outcome"]["code"] if result.get("isError") else ""


def text_of(result: Mapping[str, Any]) -> str:
    return result["content"][0]["text"]


@pytest.mark.promise("APPROVAL-WAIT")
@ERAS
async def test_a_call_waits_for_a_yes_and_the_record_says_whose_it_was(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, era=era) as here:
        result = await here.answered(YES)
        assert "hi" in text_of(result)
        refused = await here.answered(NO)
        assert (code_of(refused), text_of(refused)) == ("denied", "'echo' was refused by bob (API)")
        assert here.calls() == 1
        first, second = here.running.records()
        assert (first["outcome"], first["decision"], first["rule"]) == (
            "done", "ask", "it talks (approved by alice (command line))",
        )  # fmt: skip
        assert (second["outcome"], second["code"]) == ("denied", "denied")
        shown = here.store.list()[-1]
        assert (shown.agent, shown.server, shown.tool, shown.reason, shown.state) == (
            "a", "x", "echo", "it talks", "used",
        )  # fmt: skip
        assert "hunter2" not in shown.arguments
        assert b"hunter2" not in b"".join(file.read_bytes() for file in (tmp_path / "approvals").iterdir())


@pytest.mark.promise("APPROVAL-WAIT")
@ERAS
async def test_nobody_answers_in_time_and_a_later_yes_counts_once(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, era=era, wait=0.1) as here:
        late = await here.call()
        assert code_of(late) == "approval_expired"
        (one,) = here.store.list()
        assert f"outfitter approvals approve {one.id}" in text_of(late)
        assert here.running.records()[0]["outcome"] == "denied"
        here.store.decide(one.id, YES)
        assert "hi" in text_of(await here.call())
        assert code_of(await here.call()) == "approval_expired", "a yes holds for one call"
        assert here.calls() == 1


@pytest.mark.promise("G29")
async def test_other_arguments_another_policy_or_another_definition_need_another_yes(tmp_path: Path) -> None:
    async with stage(tmp_path, wait=0.1) as here:

        async def approved() -> None:
            await here.call()
            for one in here.store.list(["waiting"]):
                here.store.decide(one.id, YES)

        await approved()
        assert code_of(await here.call({**ECHO, "arguments": {"text": "ho"}})) == "approval_expired"
        assert "hi" in text_of(await here.call())
        await approved()
        here.use(replace(here.agent, rules=(RULE, ToolRule(("add",), Effect.DENY))))
        assert code_of(await here.call()) == "approval_expired"
        here.use(here.agent)
        assert "hi" in text_of(await here.call()), "what was approved is asked for again"
        assert here.calls() == 2


@pytest.mark.promise("G29")
async def test_a_policy_that_changes_while_a_call_waits_takes_its_yes_away(tmp_path: Path) -> None:
    async with stage(tmp_path) as here, anyio.create_task_group() as group:

        async def change() -> None:
            (ident,) = await here.waiting()
            here.use(replace(here.agent, rules=(RULE, ToolRule(("add",), Effect.DENY))))
            here.store.decide(ident, YES)

        group.start_soon(change)
        result = await here.call()
        assert code_of(result) == "approval_required"
        assert "have changed meanwhile" in text_of(result)
        assert here.calls() == 0


async def test_few_calls_may_wait_and_a_client_that_goes_leaves_its_wish(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        async with anyio.create_task_group() as group:
            for number in range(2):
                group.start_soon(here.call, {**ECHO, "arguments": {"text": str(number)}})
            await here.waiting(2)
            third = await here.call()
            assert (code_of(third), "nobody can be asked now" in text_of(third)) == ("approval_required", True)
            group.cancel_scope.cancel()
        await here.waiting(0)
        assert [one.state for one in here.store.list()] == ["waiting", "waiting"]
        await until(lambda: here.running.desk.turnstile.under_way == 0)


async def test_a_client_that_asked_for_progress_hears_that_its_call_waits(tmp_path: Path) -> None:
    async with stage(tmp_path) as here, anyio.create_task_group() as group:
        heard: list[tuple[float, str | None]] = []

        async def decide() -> None:
            (ident,) = await here.waiting()
            await until(lambda: bool(heard))
            here.store.decide(ident, YES)

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            del total
            heard.append((progress, message))

        group.start_soon(decide)
        async with Client(here.http.url) as client:
            result = await client.call_tool("echo", {"text": "hi"}, progress_callback=hear)
        assert not result.is_error
        assert heard[0][1] == "waits for a person's approval"


@dataclass(slots=True)
class Person:
    """Somebody at a client, who answers what they are asked."""

    answer: ElicitResult
    asked: list[str] = field(default_factory=list[str])

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        del context
        self.asked.append(params.message)
        return self.answer


@pytest.mark.promise("APPROVAL-CLIENT")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_person_at_the_client_is_asked_where_the_agent_permits_it(tmp_path: Path, mode: str) -> None:
    async with stage(tmp_path, change=lambda one: replace(one, client_approvals=True)) as here:
        yes = Person(ElicitResult(action="accept", content={"approve": True}))
        async with Client(here.http.url, mode=mode, elicitation_callback=yes) as client:
            result = await client.call_tool("echo", {"text": "hi", "token": "hunter2"})
        assert not result.is_error
        assert "'echo' of server 'x': it talks" in yes.asked[0]
        assert "hunter2" not in yes.asked[0]
        assert "(client)" in here.running.records()[0]["rule"]
        assert here.store.list()[0].decided_where == "client"

        no = Person(ElicitResult(action="accept", content={"approve": False}))
        away = Person(ElicitResult(action="cancel"))
        for person, text, code in ((no, "1", "denied"), (away, "2", "approval_required")):
            async with Client(here.http.url, mode=mode, elicitation_callback=person) as client:
                result = await client.call_tool("echo", {"text": text})
            assert person.asked
            assert result.is_error
            assert (result.meta or {})["outfitter/outcome"]["code"] == code
        assert here.calls() == 1


@pytest.mark.promise("APPROVAL-CLIENT")
async def test_the_person_at_the_client_is_not_asked_where_the_agent_does_not_permit_it(tmp_path: Path) -> None:
    async with stage(tmp_path, wait=0.1) as here:
        yes = Person(ElicitResult(action="accept", content={"approve": True}))
        async with Client(here.http.url, elicitation_callback=yes) as client:
            result = await client.call_tool("echo", {"text": "hi"})
        assert (result.is_error, yes.asked) == (True, [])


@pytest.mark.promise("APPROVAL-CLIENT")
async def test_an_answer_elsewhere_comes_before_a_client_that_was_asked_and_comes_back(tmp_path: Path) -> None:
    async with stage(tmp_path, change=lambda one: replace(one, client_approvals=True)) as here:
        meta: dict[str, Any] = {
            f"{META}protocolVersion": "2026-07-28",
            f"{META}clientCapabilities": {"elicitation": {"form": {}}},
        }
        asked = await here.call({**ECHO, "_meta": meta})
        assert asked["resultType"] == "input_required"
        (ident,) = await here.waiting()
        here.store.decide(ident, NO)
        await here.waiting(0)
        answer = {"question": {"action": "accept", "content": {"approve": True}}}
        back = {**ECHO, "_meta": meta, "inputResponses": answer, "requestState": asked["requestState"]}
        refused = await here.call(back)
        assert (code_of(refused), text_of(refused)) == ("denied", "'echo' was refused by bob (API)")
        assert here.calls() == 0


@pytest.mark.promise("G22")
@pytest.mark.parametrize("trusted", [True, False])
async def test_a_tool_that_says_it_only_reads_is_believed_where_its_server_is_trusted(
    tmp_path: Path, trusted: bool
) -> None:
    delete = ScriptedTool("delete_all", "Deletes", kind="echo", extra={"annotations": {"readOnlyHint": True}})
    asks = ToolRule(("*",), Effect.ASK, reason="it may write", unless_read_only=True)

    def change(one: Agent) -> Agent:
        inline = one.servers["x"]
        server = replace(getattr(inline, "server"), trusted=trusted)  # noqa: B009 - one of two kinds
        return replace(one, rules=(asks,), servers={"x": replace(inline, server=server)})

    script = Script("x", tools=(delete, ScriptedTool("plain", "Says nothing", kind="echo")))
    async with stage(tmp_path, wait=0.1, script=script, change=change) as here:
        for _ in range(2):  # the second could take the fast lane
            result = await here.call({"name": "delete_all", "arguments": {}})
            assert code_of(result) == ("" if trusted else "approval_expired")
        assert code_of(await here.call({"name": "plain", "arguments": {}})) == "approval_expired"
        assert here.calls() == (2 if trusted else 0)
