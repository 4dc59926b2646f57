"""How does the older HTTP with server-sent events work? One lasting stream on ``/sse``, messages by POST.

Everything a client says on ``/messages`` belongs to the stream whose id it names, like lines on stdio.
"""

from __future__ import annotations

import uuid

from aiohttp import web

from outfitter.testing.conversation import Conversation
from outfitter.testing.exchange import Refusal
from outfitter.testing.faults import RequestFault, Reset
from outfitter.testing.http_front import Front, read_message, refused, surroundings
from outfitter.testing.http_reply import Outbox, open_events, reset, write_event


class ServerSentEvents:
    """The two endpoints. Each stream owns its conversation and closes it when the client goes."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._open: dict[str, tuple[Conversation, Outbox, web.Request]] = {}

    def routes(self) -> list[web.AbstractRouteDef]:
        """Where it answers."""
        return [web.get("/sse", self._get, allow_head=False), web.post("/messages", self._post)]

    async def _get(self, request: web.Request) -> web.StreamResponse:
        self._front.count(request)
        if (response := await self._front.mistreat(request, self._front.strike({"method": "GET"}))) is not None:
            return response
        id_, conversation = uuid.uuid4().hex, Conversation(self._front.host)
        with self._front.outbox() as outbox:
            self._open[id_] = (conversation, outbox, request)
            try:
                return await self._stream(request, id_, outbox)
            finally:
                del self._open[id_]
                await conversation.close()

    async def _stream(self, request: web.Request, id_: str, outbox: Outbox) -> web.StreamResponse:
        response = await open_events(request, {})
        await response.write(f"event: endpoint\ndata: /messages?session_id={id_}\n\n".encode())
        async for utterance in outbox:
            await write_event(response, utterance)
        return response

    async def _post(self, request: web.Request) -> web.StreamResponse:
        self._front.count(request)
        found = self._open.get(request.query.get("session_id", ""))
        if found is None:
            raise web.HTTPNotFound
        try:
            message = await read_message(request)
        except Refusal as refusal:
            return refused(refusal)
        fault: RequestFault | None = self._front.strike(message)
        if (response := await self._front.mistreat(request, fault)) is not None:
            return response
        conversation, outbox, stream = found
        if isinstance(fault, Reset):
            reset(stream)
            return web.Response(status=202)
        await conversation.hear(message, outbox, fault, surroundings(request))
        return web.Response(status=202)
