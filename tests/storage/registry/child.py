"""Another process at a test's database: ``python -m tests.storage.registry.child ACTION URL FOLDER ...``.

It answers on its standard output, one JSON value a line, and does things when a line comes in.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from sqlalchemy import Engine, event, make_url

from outfitter.storage import Put
from tests.storage.registry.places import Place, put, server

_NEEDED = ("alembic.command", "aiosqlite", "sqlalchemy.dialects.sqlite", "sqlalchemy.dialects.postgresql", "psycopg")


def answer(value: object) -> None:
    sys.stdout.write(f"{json.dumps(value)}\n")
    sys.stdout.flush()


async def write_together(place: Place, name: str) -> None:
    """Two writers put the same entry, each its own document, when told to."""
    async with place.open(wait=30) as base:
        answer("ready")
        await asyncio.to_thread(sys.stdin.readline)
        documents = [{"name": f"{name}{number}", "text": f"{name}{number}" * 500} for number in range(2)]
        entries = await asyncio.gather(*(put(base.registry, Put("agents", "one", each)) for each in documents))
        answer([entry.version for entry in entries])


async def write_until_killed(place: Place, name: str) -> None:
    """Put entry after entry; each number is said once it was acknowledged."""
    async with place.open() as base:
        for number in range(1_000_000):
            async with base.registry.changing("child") as writing:
                await writing.put(server(f"{name}-{number:06}", text="x" * 3000))
                await writing.put(Put("agents", f"{name}-{number:06}", {"name": "a"}))
            answer(number)


async def write_when_told(place: Place, name: str) -> None:
    """Put an entry for every line that comes in."""
    async with place.open() as base:
        answer("ready")
        while await asyncio.to_thread(sys.stdin.readline):
            entry = await put(base.registry, server(name))
            answer(entry.version)


def kill_at(target: int) -> Callable[[], int]:
    """Make this process die at its n-th step: before a statement that writes, and before a commit."""
    steps = 0

    def step(*_: object) -> None:
        nonlocal steps
        steps += 1
        if steps == target:
            os.kill(os.getpid(), signal.SIGKILL)

    def executing(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.split(maxsplit=1)[0] in {"ALTER", "CREATE", "INSERT", "UPDATE", "DELETE"}:
            step()

    event.listen(Engine, "before_cursor_execute", executing)
    event.listen(Engine, "commit", step)
    return lambda: steps


def migrate_killed(place: Place, old: str) -> None:
    """Open a copy of an old database, dying one step later each time; then open it undisturbed and look at it."""
    for name in _NEEDED:
        import_module(name)  # once, before the forks
    for target in range(1, 1000):
        copy = _copied(place, old, target)
        status = _in_fork(lambda copy=copy, target=target: _open(copy, kill=target))
        if status == 0:
            answer(target - 1)
            return
        if status != signal.SIGKILL or _in_fork(lambda copy=copy: _open(copy)) != 0:
            answer(f"at step {target}: not opened again")
            return


def _in_fork(work: Callable[[], None]) -> int:
    """Do something in a process of its own; a fork, because starting Python anew for each step takes minutes."""
    if (child := os.fork()) == 0:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the end of this process
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _open(place: Place, kill: int = 0) -> None:
    async def opened() -> None:
        async with place.open() as base:
            if not kill:
                found = await base.registry.entries()
                assert [entry.id for entry in found] == ["kept"], found
                await put(base.registry, server("kept", description="again"))
                assert await base.events.append("k", "s", {}) == 1

    if kill:
        kill_at(kill)
    asyncio.run(opened())


def _copied(place: Place, old: str, target: int) -> Place:
    """A copy of the old database, with nothing of it open."""
    if place.is_file:
        folder = place.folder / f"copy{target}"
        folder.mkdir()
        shutil.copy(old, folder / "registry.db")
        return Place(f"sqlite:///{folder / 'registry.db'}", folder)
    import psycopg

    name = f"{make_url(old).database}_{target}"
    with psycopg.connect(make_url(old).set(database="postgres").render_as_string(False), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {make_url(old).database}".encode())
    return Place(make_url(old).set(database=name).render_as_string(False), place.folder / f"copy{target}")


def main() -> None:
    action, url, folder, *arguments = sys.argv[1:]
    place = Place(url, Path(folder))
    if action == "migrate_killed":
        migrate_killed(place, *arguments)
        return
    actions = {
        "write_together": write_together,
        "write_until_killed": write_until_killed,
        "write_when_told": write_when_told,
    }
    asyncio.run(actions[action](place, *arguments))


if __name__ == "__main__":
    main()
