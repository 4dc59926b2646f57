"""What a session may do with other agents: list, start, resume, see, read and stop. The use cases behind the tools.

The calling session is a ``Member`` that the server found by its header; nothing an agent writes can name another. What
a child gets is decided by the coordinator, below its parent's plan. Neighbours: ``bounds``, ``family``, ``callbacks``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from outfitter.errors import Invalid, OutfitterError, Unavailable
from outfitter.runner.orchestrator.bounds import Bounds
from outfitter.runner.orchestrator.callbacks import Callbacks
from outfitter.runner.orchestrator.client import CoordinatorClient, Json
from outfitter.runner.orchestrator.family import Family, Member
from outfitter.runner.orchestrator.ledger import Owed
from outfitter.runner.orchestrator.runs import Runs, Waiter, has_ended, new_id, shown_run
from outfitter.runner.texts import harmless

Mode: TypeAlias = Annotated[
    Literal["sync", "poll", "callback"],
    Meta(
        description="sync: wait and answer with the result. poll: answer at once; ask with get_agent_result. "
        "callback: answer at once; when you have ended, you are resumed with the result."
    ),
]
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=3600)]
Prompt: TypeAlias = Annotated[str, Meta(min_length=1, description="What the agent is to do.")]
SessionId: TypeAlias = Annotated[str, Meta(max_length=128, description="The session_id that start_agent answered.")]


class ListAgents(Struct, forbid_unknown_fields=True):
    """Nothing."""


class StartAgent(Struct, forbid_unknown_fields=True):
    """An agent to start."""

    agent: Annotated[str, Meta(max_length=64, description="The name of an agent, as list_agents has it.")]
    prompt: Prompt
    mode: Mode = "sync"
    timeout: (
        Annotated[Seconds, Meta(description="Mode sync: how long to wait. The agent goes on after that.")] | None
    ) = None


class ResumeAgent(Struct, forbid_unknown_fields=True):
    """An agent to go on with."""

    session_id: SessionId
    prompt: Prompt
    mode: Mode = "sync"
    timeout: (
        Annotated[Seconds, Meta(description="Mode sync: how long to wait. The agent goes on after that.")] | None
    ) = None


class GetStatus(Struct, forbid_unknown_fields=True):
    """A session to look at."""

    session_id: Annotated[str, Meta(max_length=128, description="Left out: all that you have started.")] | None = None


class GetResult(Struct, forbid_unknown_fields=True):
    """A result to read."""

    session_id: SessionId
    wait: Annotated[float, Meta(ge=0, le=3600, description="How many seconds to wait for it.")] = 0.0


class StopAgent(Struct, forbid_unknown_fields=True):
    """A session to stop."""

    session_id: SessionId


@dataclass(frozen=True, slots=True)
class Agents:
    """The agents of a coordinator, as sessions see them."""

    client: CoordinatorClient
    family: Family
    runs: Runs
    callbacks: Callbacks
    bounds: Bounds
    _starting: Counter[str] = field(default_factory=Counter[str])

    async def list(self, caller: Member) -> Json:
        """Every agent, and why one may not be started from here."""
        chain = await self.family.chain(caller)
        shown: list[Json] = []
        query = {"limit": "500"}
        while True:
            page = await self.client.get("/agents", query)
            shown += [self._shown_agent(item["document"], chain) for item in page["items"]]
            if page["next_cursor"] is None:
                return {"agents": shown}
            query["cursor"] = page["next_cursor"]

    def _shown_agent(self, document: Json, chain: list[str]) -> Json:
        name = str(document["name"])
        shown: Json = {"name": name, "description": harmless(str(document.get("description", "")))}
        fault = self.bounds.fault(chain, name)
        return shown if fault is None else {**shown, "why_not": fault}

    async def start(self, caller: Member, asked: StartAgent, waiter: Waiter) -> Json:
        """A new session below the caller's, and its result when it is waited for."""
        _check_timeout(asked)
        self.bounds.check(await self.family.chain(caller), asked.agent)
        document = {"type": "start_session", "run_id": new_id("run"), "session_id": new_id("session")}
        document |= {"agent_name": asked.agent, "prompt": asked.prompt, "parent_session_id": caller.id}
        self._starting[caller.id] += 1
        try:
            children = len((await self.family.session(caller.id))["children"]) + self._starting[caller.id] - 1
            self.bounds.check_children(children)
            run = await self._make(caller, document, asked.mode)
        finally:
            self._starting[caller.id] -= 1
            if not self._starting[caller.id]:
                del self._starting[caller.id]
        return await self._answer(run, asked, waiter)

    async def resume(self, caller: Member, asked: ResumeAgent, waiter: Waiter) -> Json:
        """A session below the caller's goes on with another prompt."""
        _check_timeout(asked)
        session = await self.family.below(caller, asked.session_id)
        document = {"type": "resume_session", "run_id": new_id("run"), "session_id": asked.session_id}
        run = await self._make(caller, {**document, "agent_name": session["agent"], "prompt": asked.prompt}, asked.mode)
        return await self._answer(run, asked, waiter)

    async def status(self, caller: Member, asked: GetStatus) -> Json:
        """A session below the caller's, or all that the caller has started."""
        if asked.session_id is not None:
            return _shown_session(await self.family.below(caller, asked.session_id))
        children = (await self.family.session(caller.id))["children"]
        return {"agents": [_shown_session(await self.family.session(child)) for child in children]}

    async def result(self, caller: Member, asked: GetResult, waiter: Waiter) -> Json:
        """What a session below the caller's has come to."""
        session = await self.family.below(caller, asked.session_id)
        return shown_run(await self.runs.wait(session["run_id"], asked.wait, waiter))

    async def stop(self, caller: Member, asked: StopAgent) -> Json:
        """A session below the caller's is stopped, and all that it has started: it first, so that it starts no more."""
        found = [await self.family.below(caller, asked.session_id)]
        stopped: list[str] = []
        while found:
            session = found.pop(0)
            if not has_ended(session):
                await self.runs.stop(session["run_id"])
                stopped.append(session["id"])
            found += [
                await self.family.session(child) for child in (await self.family.session(session["id"]))["children"]
            ]
        return {**_shown_session(await self.family.below(caller, asked.session_id)), "stopped": stopped}

    async def _make(self, caller: Member, document: Json, mode: str) -> Json:
        if mode != "callback":
            return await self.runs.make(document)
        names = (document["run_id"], document["session_id"], document["agent_name"])
        await self.callbacks.expect(Owed(*names, caller.id))
        try:
            return await self.runs.make(document)
        except Unavailable:
            raise  # it may have been made all the same; the ledger finds out
        except OutfitterError:
            await self.callbacks.forget(document["run_id"])
            raise
        finally:
            self.callbacks.started(caller.id)

    async def _answer(self, run: Json, asked: StartAgent | ResumeAgent, waiter: Waiter) -> Json:
        if asked.mode != "sync":
            return shown_run(run)
        run = await self.runs.wait(run["id"], waiter.patience(asked.timeout), waiter)
        if has_ended(run):
            return shown_run(run)
        return {
            **shown_run(run),
            "note": "it goes on: read its result with get_agent_result, or stop it with stop_agent",
        }


def _check_timeout(asked: StartAgent | ResumeAgent) -> None:
    if asked.timeout is not None and asked.mode != "sync":
        raise Invalid(f"'timeout' is for the mode sync, not for {asked.mode}", hint="leave it out")


def _shown_session(session: Json) -> Json:
    names = ("agent", "state", "run_id", "created_at", "ended_at", "children")
    return {"session_id": session["id"], **{name: session[name] for name in names}}
