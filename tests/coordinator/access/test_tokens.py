"""API tokens on both databases: shown once, kept as digests, narrowed, ended, revoked, and one first admin."""

from __future__ import annotations

import hashlib
import logging
import pickle
import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from outfitter.coordinator import Access, GatewayTokens, Identity, LastUsed, Scope, open_access
from outfitter.errors import Invalid, NeedsToken, NotFound, OutfitterError
from outfitter.storage import ApiTokens, KeyRing, TokenRecord, open_database
from tests.coordinator.access.kit import access_to, bearer, until

pytestmark = pytest.mark.anyio


async def refusal(access: Access, authorization: str | None) -> str:
    with pytest.raises(NeedsToken) as refused:
        await access.identify(authorization)
    return repr((refused.value.code, str(refused.value)))


@pytest.mark.promise("ACCESS-TOKENS")
async def test_a_token_says_who_is_asking(database_url: str, tmp_path: Path) -> None:
    async with access_to(database_url, tmp_path) as access:
        token, record = await access.tokens.issue("runner", by="ann", scope=Scope(agent="tester"), label="ci")
        identity = await access.identify(bearer(token))
        assert identity == Identity(f"ci#{record.id}", "runner", "tester", token_id=record.id)
        assert token.startswith(f"oft_{record.id}_")
        assert await access.identify(f"bearer  {token} ") == identity
        (kept,) = await access.tokens.records()
        assert replace(kept, last_used_at=None) == record


@pytest.mark.promise("ACCESS-TOKENS")
async def test_every_refusal_is_the_same(database_url: str, tmp_path: Path) -> None:
    async with access_to(database_url, tmp_path) as access:
        token, record = await access.tokens.issue("viewer", by="ann")
        revoked, gone = await access.tokens.issue("viewer", by="ann")
        await access.tokens.revoke(gone.id)
        ended, strange = f"oft_ended_{'e' * 43}", f"oft_strange_{'s' * 43}"
        await access.copy.table.add(replace(record, id="ended", digest=_digest(ended), expires_at=_in(-1).isoformat()))
        await access.copy.table.add(replace(record, id="strange", digest=_digest(strange), role="emperor"))
        swapped = f"oft_{gone.id}_{token.split('_', 2)[2]}"
        wrong = [
            None, "", "Bearer", "Bearer ", token, f"Basic {token}", bearer(""), bearer(token[:-1]), bearer(token + "x"),
            bearer(record.digest), bearer(revoked), bearer(ended), bearer(strange), bearer(swapped), bearer("é" * 60),
            bearer("\udcff"), bearer("a.b.c"), bearer("x" * 100_000), f"Bearer {token} {token}",
        ]  # fmt: skip
        assert len({await refusal(access, one) for one in wrong}) == 1
        assert (await access.identify(bearer(token))).token_id == record.id


@pytest.mark.promise("ACCESS-TOKENS")
async def test_a_token_that_could_never_be_used_is_not_issued(sqlite_url: str, tmp_path: Path) -> None:
    async with access_to(sqlite_url, tmp_path) as access:
        for role, scope in (
            ("emperor", Scope()), ("agent", Scope()), ("admin", Scope(agent="a")), ("editor", Scope(agent="a")),
            ("viewer", Scope(server="x")), ("runner", Scope(run_id="r")), ("agent", Scope(agent="*")),
            ("agent", Scope(agent="a/b")), ("agent", Scope(agent="a", server="X Y")),
            ("agent", Scope(agent="a", run_id="r\n")),
        ):  # fmt: skip
            with pytest.raises(Invalid):
                await access.tokens.issue(role, by="ann", scope=scope)
        for label, ends in (("two\nlines", None), ("x" * 101, None), ("", _in(-1)), ("", datetime(2999, 1, 1))):  # noqa: DTZ001 - a time without its zone
            with pytest.raises(Invalid):
                await access.tokens.issue("viewer", by="ann", label=label, expires_at=ends)
        assert await access.tokens.records() == ()


@pytest.mark.promise("ACCESS-TOKENS")
async def test_a_revoked_token_ends_at_every_coordinator_within_a_second(database_url: str, tmp_path: Path) -> None:
    async with access_to(database_url, tmp_path) as one, access_to(database_url, tmp_path) as other:
        token, record = await one.tokens.issue("viewer", by="ann")
        identity = await other.identify(bearer(token))
        assert other.holds(identity)
        await one.tokens.revoke(record.id)
        assert not one.holds(identity)
        await until(lambda: not other.holds(identity), seconds=1.0)
        assert await refusal(one, bearer(token)) == await refusal(other, bearer(token))
        assert (await other.tokens.revoke(record.id)).revoked_at is not None
        with pytest.raises(NotFound):
            await one.tokens.revoke("nobody")


@pytest.mark.promise("ACCESS-TOKENS")
async def test_the_tokens_of_a_run_end_with_it(sqlite_url: str, tmp_path: Path) -> None:
    async with access_to(sqlite_url, tmp_path) as access:
        ours, _ = await access.tokens.issue("agent", by="ann", scope=Scope("a", run_id="r1"))
        theirs, _ = await access.tokens.issue("agent", by="ann", scope=Scope("a", run_id="r2"))
        await access.tokens.end_run("r1")
        assert access.gateway.find(ours) is None
        assert access.gateway.find(theirs) is not None


@pytest.mark.promise("ACCESS-FIRST")
async def test_coordinators_that_start_together_get_one_admin_token(database_url: str, tmp_path: Path) -> None:
    got: list[str | None] = []

    async def start() -> None:
        async with access_to(database_url, tmp_path) as access:
            got.append(await access.tokens.first_admin())

    async with access_to(database_url, tmp_path) as access:
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(start)
        (token,) = [one for one in got if one is not None]
        assert len(got) == 4
        identity = await access.identify(bearer(token))
        assert (identity.role, identity.ends) == ("admin", float("inf"))
        await access.tokens.revoke(identity.token_id)
        assert await access.tokens.first_admin() is None


@pytest.mark.promise("ACCESS-FIRST")
async def test_two_databases_have_two_first_tokens(tmp_path: Path) -> None:
    tokens: set[str | None] = set()
    for name in ("a", "b"):
        async with access_to(f"sqlite:///{tmp_path}/{name}.db", tmp_path) as access:
            tokens.add(await access.tokens.first_admin())
    assert None not in tokens
    assert len(tokens) == 2


@pytest.mark.promise("ACCESS-TOKENS")
async def test_the_last_use_is_written_once_a_minute_at_most(database_url: str, tmp_path: Path) -> None:
    keys = KeyRing(tmp_path / "registry.keys")
    async with open_database(database_url, keys) as first, open_database(database_url, keys) as second:
        async with access_to(database_url, tmp_path) as access:
            _, record = await access.tokens.issue("viewer", by="ann")
        now = time.time()
        uses = LastUsed(first.tokens), LastUsed(second.tokens)

        async def use(book: LastUsed, shift: float) -> None:
            for step in range(50):
                book.note(record.id, now + shift + step / 10)
                await book.flush()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use, uses[0], 0.0)
            tasks.start_soon(use, uses[1], 20.0)
        assert await _last_use(first.tokens.all()) == pytest.approx(now + 20.0, abs=0.001)
        uses[0].note(record.id, now + 59.0)
        await uses[0].flush()
        assert await _last_use(first.tokens.all()) == pytest.approx(now + 20.0, abs=0.001)
        uses[0].note(record.id, now + 61.0)
        await uses[0].flush()
        assert await _last_use(second.tokens.all()) == pytest.approx(now + 61.0, abs=0.001)


@pytest.mark.promise("ACCESS-TOKENS")
async def test_a_use_is_written_before_the_coordinator_ends(database_url: str, tmp_path: Path) -> None:
    async with access_to(database_url, tmp_path) as access:
        token, _ = await access.tokens.issue("viewer", by="ann")
        await access.identify(bearer(token))
    async with access_to(database_url, tmp_path) as access:
        (record,) = await access.tokens.records()
        assert record.last_used_at is not None


@pytest.mark.promise("ACCESS-CANARY")
async def test_no_token_is_ever_written(sqlite_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    async with access_to(sqlite_url, tmp_path) as access:
        first = await access.tokens.first_admin()
        token, record = await access.tokens.issue("agent", by="ann", scope=Scope("a", "x"), label="one")
        assert first is not None
        for shown in (first, token):
            identity = await access.identify(bearer(shown))
            said += [
                repr(identity),
                repr(access.gateway.find(shown)),
                repr(access),
                pickle.dumps(identity).decode("latin-1"),
            ]
        said += [repr(record), repr(await access.tokens.records()), repr(GatewayTokens(access.copy, access.last_used))]
        await access.tokens.revoke(record.id)
        for wrong in (token, first + "x", "x" + first):
            with pytest.raises(OutfitterError) as refused:
                await access.identify(bearer(wrong))
            said += [repr(refused.value), str(vars(refused.value))]
    said += [caplog.text, *_files(tmp_path)]
    for secret in (first.split("_", 2)[2], token.split("_", 2)[2]):
        parts = {secret, secret[:12], secret[-12:]}
        assert not [text for text in said if any(part in text for part in parts)]
    with sqlite3.connect(tmp_path / "registry.db") as database:
        digests = [str(row[0]) for row in database.execute("SELECT digest FROM api_tokens")]
    database.close()
    assert {len(one) for one in digests} == {64}


async def _last_use(reading: Awaitable[tuple[TokenRecord, ...]]) -> float:
    (record,) = await reading
    assert record.last_used_at is not None
    return datetime.fromisoformat(record.last_used_at).timestamp()


def _files(folder: Path) -> list[str]:
    return [path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _in(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


@pytest.mark.promise("ACCESS-TOKENS")
async def test_a_token_issued_elsewhere_holds_at_once_for_everyone_who_brings_it(
    database_url: str, tmp_path: Path
) -> None:
    async with access_to(database_url, tmp_path) as one, access_to(database_url, tmp_path) as other:
        token, record = await one.tokens.issue("viewer", by="ann")
        found: list[str] = []

        async def come() -> None:
            found.append((await other.identify(bearer(token))).token_id)

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(come)
        assert found == [record.id] * 10


@pytest.mark.promise("ACCESS-TOKENS")
async def test_strangers_cause_few_readings(sqlite_url: str, tmp_path: Path) -> None:
    async with open_database(sqlite_url, KeyRing(tmp_path / "registry.keys")) as database:
        table = Counted(database.tokens)
        async with open_access(table) as access:
            begun = time.monotonic()
            for number in range(100):
                await refusal(access, bearer(f"oft_{number}_{'x' * 43}"))
            allowed = 2 * (time.monotonic() - begun) + 1
            assert table.readings <= 2 + allowed


@dataclass(slots=True)
class Counted:
    """A real table that counts how often it is read."""

    table: ApiTokens
    readings: int = 0

    async def all(self) -> tuple[TokenRecord, ...]:
        self.readings += 1
        return await self.table.all()

    async def known(self) -> tuple[TokenRecord, ...]:
        self.readings += 1
        return await self.table.known()

    async def add(self, record: TokenRecord) -> None:
        await self.table.add(record)

    async def revoke(self, token_id: str) -> bool:
        return await self.table.revoke(token_id)

    async def touch(self, token_id: str, at: str) -> None:
        await self.table.touch(token_id, at)

    def follow(self) -> AsyncGenerator[int]:
        return self.table.follow()
