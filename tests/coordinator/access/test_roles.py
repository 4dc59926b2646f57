"""Who may do what: the table, tokens bound to an agent, and where one may listen without tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from outfitter.coordinator import ACTIONS, LOCAL, ROLES, Action, Identity, Role
from outfitter.errors import Forbidden, NeedsToken
from outfitter.gateway import Address, holding
from tests.coordinator.access.kit import access_to, bearer

pytestmark = pytest.mark.anyio

VIEWER: tuple[Action, ...] = (
    "registry.read",
    "registry.preview",
    "runs.read",
    "runners.read",
    "calls.read",
    "approvals.read",
    "events.read",
    "metrics.read",
)
MAY: dict[Role, set[Action]] = {
    "admin": {action for action in ACTIONS if action != "gateway.use"},
    "editor": {*VIEWER, "registry.write", "runs.start", "runs.stop"},
    "viewer": {*VIEWER},
    "runner": {"registry.read", "runs.start", "runs.stop", "runs.read", "runs.execute", "runners.read", "events.read"},
    "agent": {"gateway.use"},
}


@pytest.mark.promise("ACCESS-ROLES")
async def test_every_role_may_do_what_the_table_says_and_nothing_else(sqlite_url: str, tmp_path: Path) -> None:
    async with access_to(sqlite_url, tmp_path) as access:
        for role in ROLES:
            identity = Identity("someone", role)
            for action in ACTIONS:
                if action in MAY[role]:
                    access.need(identity, action)
                else:
                    with pytest.raises(Forbidden):
                        access.need(identity, action)


@pytest.mark.promise("ACCESS-ROLES")
async def test_a_token_bound_to_an_agent_is_for_that_agent_alone(sqlite_url: str, tmp_path: Path) -> None:
    async with access_to(sqlite_url, tmp_path) as access:
        bound = Identity("someone", "runner", agent="tester")
        access.need(bound, "runs.start", agent="tester")
        refusals: set[str] = set()
        wanted: list[tuple[Action, str | None]]
        wanted = [("runs.start", "other"), ("runs.start", "no-such-agent"), ("runs.read", None)]
        for action, agent in wanted:
            with pytest.raises(Forbidden) as refused:
                access.need(bound, action, agent=agent)
            refusals.add(str(refused.value))
        with pytest.raises(Forbidden) as refused:
            access.need(bound, "events.read", agent="tester")
        assert len({*refusals, str(refused.value)}) == 1


@pytest.mark.promise("ACCESS-ROLES")
async def test_an_agent_starts_no_runs_not_even_of_itself(sqlite_url: str, tmp_path: Path) -> None:
    async with access_to(sqlite_url, tmp_path) as access:
        with pytest.raises(Forbidden):
            access.need(Identity("a", "agent", agent="tester"), "runs.start", agent="tester")


@pytest.mark.promise("ACCESS-BINDING")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.5", "example.com", "localhost.example.com", "127.1"])  # noqa: S104 - refused
def test_without_tokens_nobody_listens_beyond_loopback(host: str) -> None:
    with pytest.raises(Forbidden), holding(Address(host, port=0), is_open=True):
        pass


@pytest.mark.promise("ACCESS-BINDING")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.8.9.1"])
def test_without_tokens_loopback_is_fine(host: str) -> None:
    with holding(Address(host, port=0), is_open=True) as address:
        assert address.port


@pytest.mark.promise("ACCESS-BINDING")
async def test_without_tokens_what_needs_an_admin_still_needs_a_token(sqlite_url: str, tmp_path: Path) -> None:
    async with access_to(sqlite_url, tmp_path, is_open=True) as access:
        assert await access.identify(None) == LOCAL
        for action in ("stdio.write", "stdio.approve", "tokens.manage"):
            with pytest.raises(Forbidden):
                access.need(LOCAL, action)
        token, _ = await access.tokens.issue("admin", by="test")
        access.need(await access.identify(bearer(token)), "stdio.write")
        with pytest.raises(NeedsToken):
            await access.identify("Bearer wrong")
