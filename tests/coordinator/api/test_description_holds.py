"""Schemathesis asks everything that the description allows, and much that it forbids: no failure, nothing undescribed.

The number of tries is bounded; a run takes tens of seconds at most. Tries begin from entries that exist, so that what
stands behind a good name is reached too.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import requests
import schemathesis
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis import checks as known_checks

from outfitter.catalog import PinMode
from outfitter.coordinator import ROUTES
from outfitter.policy import Definition, Wish
from outfitter.storage import Approval, ApprovalStore, PinBook, PinDesk
from tests.coordinator.api.kit import Served, service
from tests.coordinator.document4 import CONTEXT_STORE

BOUNDED = settings(
    max_examples=5,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.generate],
)
NOT_ASKED = {"/events", "/openapi.json"}
"""The one has an answer without an end; the other is where Schemathesis got the description from."""
WANTED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
)


async def _fill(served: Served, store: ApprovalStore) -> dict[str, str]:
    """Give it something to be asked about; answers one good name for each resource."""
    await served.must("/mcp-servers", CONTEXT_STORE)
    await served.must("/capabilities", {"name": "c"})
    uses = {"mcpServers": {"s": {"ref": "context-store"}}}
    await served.must("/agents", {"name": "a", "capabilities": ["c"]} | uses)
    run = (await served.must("/runs", {"agent_name": "a"})).json
    token = (await served.must("/tokens", {"role": "viewer"})).json["id"]
    good = {"mcp-servers": "context-store", "capabilities": "c", "agents": "a", "tokens": token}
    good |= {"serverName": "local.outfitter/context-store", "version": "latest"}
    good["approvals"] = cast("Approval", store.ask(Wish("a", "s", "t", "d"), 60.0)).id
    return good | {"runs": run["id"], "sessions": run["session_id"]}


@contextmanager
def _filled(folder: Path) -> Generator[tuple[Served, dict[str, str]]]:
    store, pins = ApprovalStore(folder / "approvals"), PinDesk(PinBook.at(folder / "pins.db"))
    tool = Definition.of_tool({"name": "t", "inputSchema": {"type": "object"}})
    pins.book.look("context-store", PinMode.FIRST_USE, [tool])
    with (
        closing(store),
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(service(folder, approvals=store, pins=pins)) as served,
    ):
        yield served, portal.call(_fill, served, store) | {"pins": str(pins.rows()[0]["id"])}


def _tries(operation: Any, good: dict[str, str]) -> Iterator[Any]:  # noqa: ANN401 - Schemathesis' generic types
    """What is tried: what is described, with any name and with one that exists; and what is not described."""
    name = good.get(operation.path.split("/")[1], "")
    named = {parameter.name: good.get(parameter.name, name) for parameter in operation.path_parameters}
    yield operation.as_strategy(GenerationMode.POSITIVE)
    if named:
        yield operation.as_strategy(GenerationMode.POSITIVE, path_parameters=named)
    if operation.body or operation.query:
        yield operation.as_strategy(GenerationMode.NEGATIVE, path_parameters=named)


@pytest.mark.promise("API-DESCRIBED")
def test_whatever_is_asked_the_answer_is_described_and_no_failure(tmp_path: Path) -> None:
    with _filled(tmp_path) as (served, good), requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {served.token}"
        session.trust_env = False
        schema = cast("Any", schemathesis.openapi.from_url(f"{served.url}/openapi.json"))
        registry = cast("Any", known_checks).CHECKS
        checks = [registry.get_one(name) for name in WANTED]
        statuses: dict[str, set[int]] = {}

        def ask(case: Any) -> None:  # noqa: ANN401 - same
            reply = case.call_and_validate(base_url=served.url, session=session, checks=checks)
            statuses.setdefault(case.operation.label, set()).add(reply.status_code)

        operations = [found.ok() for found in schema.get_all_operations()]
        for operation in sorted(operations, key=lambda operation: operation.method == "delete"):
            if operation.path not in NOT_ASKED:
                for tries in _tries(operation, good):
                    BOUNDED(given(tries)(ask))()
        asked = {f"{route.method} {route.path}" for route in ROUTES if route.path not in NOT_ASKED}
        assert asked == set(statuses)
        assert not {label for label in asked if label.startswith("GET") and 200 not in statuses[label]}
