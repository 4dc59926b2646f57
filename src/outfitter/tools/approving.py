"""How a call in our own process waits for a person: an ``Approver``, or any function that takes the wish.

Bounded in both faces. What an approver says that is no answer, and one that fails, is no yes.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import cast

from outfitter.policy import Approve, Approver, Verdict, Wish

_log = logging.getLogger(__name__)
_GRACE_SECONDS = 1.0
"""How long an approver that keeps the time itself may take to say so."""


def ask_sync(approve: Approve, wish: Wish, seconds: float) -> Verdict | None:
    """What a person says, from code that blocks. The question is put in a thread, which may outlast the wait."""
    answers: queue.SimpleQueue[object] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put(_asked(approve, wish, seconds))
        except Exception:  # noqa: BLE001 - an approver is foreign code
            _log.warning("the approver failed on '%s'", wish.shown, exc_info=True)
            answers.put(None)

    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(work,), name=f"approval of {wish.shown}", daemon=True).start()
    try:
        return _verdict(answers.get(timeout=seconds + (_GRACE_SECONDS if isinstance(approve, Approver) else 0.0)))
    except queue.Empty:
        return None


def _asked(approve: Approve, wish: Wish, seconds: float) -> object:
    said = approve.approve(wish, seconds) if isinstance(approve, Approver) else approve(wish)
    return asyncio.run(_awaited(said)) if inspect.isawaitable(said) else said


async def _awaited(said: Awaitable[object]) -> object:
    return await said


async def ask_async(approve: Approve, wish: Wish, seconds: float) -> Verdict | None:
    """The same, awaited; a function that blocks is asked in a thread."""
    import anyio

    said: object = None
    with anyio.move_on_after(seconds + (_GRACE_SECONDS if isinstance(approve, Approver) else 0.0)):
        try:
            said = await _aasked(approve, wish, seconds)
        except Exception:  # noqa: BLE001 - an approver is foreign code
            _log.warning("the approver failed on '%s'", wish.shown, exc_info=True)
    return _verdict(said)


async def _aasked(approve: Approve, wish: Wish, seconds: float) -> object:
    import anyio.to_thread

    if isinstance(approve, Approver):
        return await approve.aapprove(wish, seconds)
    if _is_async(approve):
        return await cast("Awaitable[object]", approve(wish))
    return await anyio.to_thread.run_sync(approve, wish, abandon_on_cancel=True)


def _is_async(function: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _verdict(said: object) -> Verdict | None:
    if isinstance(said, bool):
        return Verdict(is_yes=said)
    return said if isinstance(said, Verdict) else None
