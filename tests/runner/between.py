"""Something between a runner and its coordinator that refuses, changes and counts what goes by."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

_PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True)
class Seen:
    """One request."""

    method: str
    path: str
    body: Any

    def is_to(self, method: str, end: str) -> bool:
        """Whether it is of this method, and to a path that ends so."""
        return self.method == method and self.path.endswith(end)


@dataclass(slots=True)
class Between:
    """A server that hands on to the coordinator. ``refuse`` gives the status of a refusal, None to hand on."""

    upstream: str
    refuse: Callable[[Seen], int | None] = lambda _: None
    change: Callable[[Seen, Any], Any] = lambda _, answer: answer
    """The answer as the runner gets it."""
    seen: list[Seen] = field(default_factory=list[Seen])
    url: str = ""

    def count(self, method: str, end: str) -> int:
        """How many such requests there were."""
        return sum(one.is_to(method, end) for one in self.seen)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Hand one request on, or refuse it."""
        body = await request.read()
        seen = Seen(request.method, request.path.removeprefix(_PREFIX), json.loads(body) if body else None)
        self.seen.append(seen)
        status = self.refuse(seen)
        if status is not None:
            return web.json_response({"detail": f"refused with {status}"}, status=status)
        headers = {name: request.headers[name] for name in ("authorization", "content-type") if name in request.headers}
        async with (
            aiohttp.ClientSession() as http,
            http.request(request.method, f"{self.upstream}{request.path_qs}", data=body, headers=headers) as answer,
        ):
            if answer.content_type == "text/event-stream":
                return await _pass_on(request, answer)
            content = await answer.read()
            if answer.content_type == "application/json":
                content = json.dumps(self.change(seen, json.loads(content))).encode()
            return web.Response(status=answer.status, body=content, content_type=answer.content_type)


async def _pass_on(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    try:
        async for piece in answer.content.iter_any():
            await response.write(piece)
    except (aiohttp.ClientError, ConnectionError):
        pass  # one of both has gone
    return response


@asynccontextmanager
async def between(upstream: str) -> AsyncGenerator[Between]:
    """One that listens."""
    one = Between(upstream)
    application = web.Application(client_max_size=8 * 1024 * 1024)
    application.router.add_route("*", "/{path:.*}", one.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    one.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield one
    finally:
        await runner.cleanup()


def quick_beats(seen: Seen, answer: Any) -> Any:  # noqa: ANN401 - JSON
    """The answer to a heartbeat with another one due at once."""
    return {**answer, "seconds": 0.1} if seen.method == "PUT" else answer
