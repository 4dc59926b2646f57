"""Who is told of changes: listens of the modern era, visits and subscriptions of the handshake era."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated

from outfitter.squad import Caps, serving_team
from tests.squad.server_kit import LIMIT, MEMBERS, LivingTeam, asking, until

pytestmark = pytest.mark.anyio
HISTORY, STATUS = "squad://agents/verbal/history", "squad://agents/verbal/status"
LIST_CHANGED = "notifications/resources/list_changed"


async def take(events: AsyncIterator[Any], count: int) -> list[Any]:
    """The next events."""
    taken: list[Any] = []
    with anyio.fail_after(LIMIT):
        async for event in events:
            taken.append(event)
            if len(taken) == count:
                break
    return taken


@pytest.mark.promise("SQUAD-CHANGES")
async def test_a_listen_hears_what_it_asked_for_and_nothing_else() -> None:
    team = LivingTeam()
    async with (
        asking(team, "verbal", "2026-07-28") as client,
        client.listen(resources_list_changed=True, resource_subscriptions=[HISTORY, "squad://decisions"]) as heard,
    ):
        await team.change("squad://metrics", "squad://agents/keaton/history", STATUS)
        await team.change("squad://decisions", "squad://decisions/latest")
        await team.change(HISTORY)
        team.members = MEMBERS[:3]
        await team.change("squad://roster", "squad://agents")
        events = await take(heard, 3)
    assert events == [ResourceUpdated("squad://decisions"), ResourceUpdated(HISTORY), ResourcesListChanged()]


@pytest.mark.promise("SQUAD-CHANGES")
async def test_a_visit_hears_of_its_subscriptions_and_of_the_list() -> None:
    team = LivingTeam()
    async with asking(team, "verbal", "legacy") as client:
        await client.subscribe(HISTORY)
        await client.subscribe(STATUS)
        await client.unsubscribe(STATUS)
        await team.change("squad://metrics", STATUS)
        await team.change(HISTORY)
        await until(lambda: len(client.heard) == 1)
        team.members = MEMBERS[:3]
        await team.change("squad://roster", "squad://agents")
        await until(lambda: len(client.heard) == 2)
        assert client.told() == [HISTORY, LIST_CHANGED]


async def test_a_roster_that_changes_without_another_list_is_told_as_a_resource_alone() -> None:
    team = LivingTeam()
    async with (
        asking(team, "verbal", "2026-07-28") as client,
        client.listen(resources_list_changed=True, resource_subscriptions=["squad://roster"]) as heard,
    ):
        await team.watched.wait()
        team.members = tuple(replace(member, status="silent") for member in MEMBERS)
        await team.change("squad://roster", "squad://agents")
        assert await take(heard, 1) == [ResourceUpdated("squad://roster")]
        team.members = MEMBERS[:1]
        await team.change("squad://roster", "squad://agents")
        assert await take(heard, 2) == [ResourcesListChanged(), ResourceUpdated("squad://roster")]


@pytest.mark.promise("O02")
async def test_who_may_no_longer_read_is_no_longer_told() -> None:
    team, keaton = LivingTeam(), "squad://agents/keaton/history"
    team.members = (*MEMBERS[:1], replace(MEMBERS[1], role="Lead"))
    async with (
        serving_team(team) as place,
        asking(team, "verbal", "2026-07-28", place) as modern,
        asking(team, "verbal", "legacy", place) as before,
        modern.listen(resource_subscriptions=[keaton, HISTORY]) as heard,
    ):
        await before.subscribe(keaton)
        await before.subscribe(HISTORY)
        team.members = MEMBERS[:2]
        await team.change(keaton)
        await team.change(HISTORY)
        assert await take(heard, 1) == [ResourceUpdated(HISTORY)]
        await until(lambda: len(before.heard) == 1)
        assert before.told() == [HISTORY]


@pytest.mark.promise("O07")
async def test_over_the_cap_the_oldest_subscription_of_a_visit_ends() -> None:
    team = LivingTeam()
    async with (
        serving_team(team, caps=Caps(subscriptions=2)) as place,
        asking(team, "verbal", "legacy", place) as client,
    ):
        for uri in ("squad://roster", "squad://backlog", STATUS, STATUS, "squad://metrics"):
            await client.subscribe(uri)
        await team.change("squad://roster", "squad://backlog")
        await team.change(STATUS, "squad://metrics")
        await until(lambda: len(client.heard) == 2)
        assert sorted(client.told()) == [STATUS, "squad://metrics"]


async def test_a_uri_that_is_no_resource_cannot_be_subscribed_to() -> None:
    async with asking(LivingTeam(), "verbal", "legacy") as client:
        for uri in ("squad://agents/../history", "file:///etc/passwd", "squad://agents/ghost/status"):
            with pytest.raises(MCPError):
                await client.subscribe(uri)


@pytest.mark.promise("SQUAD-CHANGES")
async def test_a_watch_that_fails_does_not_end_the_server() -> None:
    team = LivingTeam(failures=1)
    async with asking(team, "verbal", "2026-07-28") as client:
        await until(lambda: team.failures == 0)
        assert "members" in await client.read_text("squad://roster")
