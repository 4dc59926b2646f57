"""Runs as they may be seen and as they are told: sensitive header values masked, credentials nowhere."""

from __future__ import annotations

from outfitter.coordinator.sensitive import masked
from outfitter.coordinator.values import ShownRun
from outfitter.storage import RunRecord, TellRun


def show_run(run: RunRecord) -> ShownRun:
    """The run as it may be seen."""
    return ShownRun(
        id=run.id,
        type=run.type,
        agent_name=run.agent_name,
        prompt=run.prompt,
        session_id=run.session_id,
        parent_session_id=run.parent_session_id,
        state=run.state,
        created_at=run.created_at,
        created_by=run.created_by,
        started_at=run.started_at,
        ended_at=run.ended_at,
        mcp_headers=masked(run.mcp_headers, run.sealed),
        result=run.result,
        error=run.error,
        owner=run.owner,
        attempt=run.attempt,
    )


def tell_run(who: str, what: str | None = None) -> TellRun:
    """What is told of a run that somebody has made or moved: ``run.`` and its state, or what is said here."""
    return lambda run: (
        f"run.{what or run.state}",
        f"runs/{run.id}",
        {"agent": run.agent_name, "session_id": run.session_id, "state": run.state, "who": who},
    )
