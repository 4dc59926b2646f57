"""What an agent gets, resolved: document 4's blueprint, its explanation, and what a change would do to it.

Nothing is stored here and no placeholder is filled. The blueprint is kept as bytes until the registry changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import anyio.to_thread

from outfitter.catalog import Catalog, HeaderType, RunRequest
from outfitter.coordinator.drafts import read_draft
from outfitter.coordinator.keeping import check_kept
from outfitter.coordinator.live import LiveCatalog
from outfitter.coordinator.starting import read_asked
from outfitter.coordinator.values import Draft
from outfitter.coordinator.view import Change, View, unknown
from outfitter.errors import InvalidRun, OutfitterError, Refused
from outfitter.formats import pointer
from outfitter.policy import Held
from outfitter.resolution import PlannedServer, RunPlan, blueprint, explain, resolve, with_waiting
from outfitter.storage import User
from outfitter.upstream import Guard

Waiting: TypeAlias = Callable[[RunPlan], Mapping[str, Mapping[str, Held]]]


class Blueprints:
    """Resolved answers, kept by agent until the registry changes."""

    def __init__(self, live: LiveCatalog, guard: Guard) -> None:
        """Resolve from ``live``; ``guard`` judges unsaved changes as it would when they are stored."""
        self._live = live
        self._guard = guard
        self._revision = -1
        self._kept: dict[str, bytes] = {}

    async def of(self, agent: str) -> bytes:
        """The resolved blueprint as JSON: placeholders unfilled, sensitive literals masked; UnknownAgent, Refused."""
        view = self._live.view
        if view.revision != self._revision:
            self._kept, self._revision = {}, view.revision
        found = self._kept.get(agent)
        if found is None:
            found = self._kept[agent] = write_blueprint(_resolve(view.catalog, agent, None))
        return found

    async def explain(
        self, agent: str, run: Mapping[str, Any] | None = None, waiting: Waiting | None = None
    ) -> dict[str, Any]:
        """Where every value comes from; with a run request, what that run would get (nothing is stored).

        ``waiting`` knows the tools of a plan that are held back until somebody approves them; it may read files.
        """
        plan = _resolve(self._live.catalog, agent, _read_run(agent, run))
        if waiting is not None:
            plan = with_waiting(plan, await anyio.to_thread.run_sync(waiting, plan))
        return dict(explain(plan).to_json())

    async def what_if(
        self,
        agent: str,
        *,
        puts: Sequence[Draft] = (),
        deletes: Sequence[User] = (),
        run: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """``{"before": …, "after": …}``: each an explanation, or ``{"problems": […]}``. Nothing is stored.

        Refused when a sealed value would become readable by it.
        """
        view, asked = self._live.view, _read_run(agent, run)
        reads = [read_draft(view, draft.kind, draft.document, draft.id, self._guard) for draft in puts]
        changes = [*(read.as_change() for read in reads), *(Change(name) for name in deletes)]
        after = view.changed(changes, view.revision)
        if not any(agent in known.catalog.agents for known in (view, after)):
            raise unknown("agents", agent)
        check_kept(view, after, reads)
        return {"before": _told(view, agent, asked), "after": _told(after, agent, asked)}


def write_blueprint(plan: RunPlan) -> bytes:
    """The blueprint as document 4 prints it: headers in the order of their schema, JSON values as text with spaces."""
    shown = blueprint(plan)
    servers = cast("dict[str, dict[str, Any]]", shown["mcp_servers"])
    for alias, server in servers.items():
        if "headers" in server:
            server["headers"] = _ordered(server["headers"], plan.servers[alias])
    return json.dumps(shown, indent=2).encode()


def _ordered(headers: Mapping[str, str], server: PlannedServer) -> dict[str, str]:
    names = [name for name in server.header_schema if name in headers]
    names += [name for name in headers if name not in server.header_schema]
    return {name: _spaced(headers[name], server, name) for name in names}


def _spaced(text: str, server: PlannedServer, name: str) -> str:
    schema = server.header_schema.get(name)
    if schema is None or schema.type is not HeaderType.JSON:
        return text
    try:
        return json.dumps(json.loads(text))
    except ValueError:
        return text


def _resolve(catalog: Catalog, agent: str, run: RunRequest | None) -> RunPlan:
    found = catalog.agents.get(agent)
    if found is None:
        raise unknown("agents", agent)
    return resolve(found, catalog, run)


def _read_run(agent: str, document: Mapping[str, Any] | None) -> RunRequest | None:
    """The run request, for this agent whether it says so or not."""
    if document is None:
        return None
    given = {"agent_name": agent, **document}
    if given["agent_name"] != agent:
        raise InvalidRun(f"the run is for another agent than '{agent}'").under("agent_name")
    return read_asked(given).run


def _told(view: View, agent: str, run: RunRequest | None) -> dict[str, Any]:
    try:
        return dict(explain(_resolve(view.catalog, agent, run)).to_json())
    except Refused as refused:
        return {"problems": [_problem(problem) for problem in refused.problems]}
    except OutfitterError as error:
        return {"problems": [_problem(error)]}


def _problem(error: OutfitterError) -> dict[str, Any]:
    return {
        "code": error.code,
        "message": error.message,
        "where": error.where,
        "hint": error.hint,
        "pointer": pointer(error.trail),
    }
