"""Which POST belongs to which conversation? Streamable HTTP of both eras, on ``/mcp``.

In the handshake era a session id names the conversation; a modern request is a conversation of its own. What happens
before is ``http_front``, how an answer is written ``http_reply``.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Final

from aiohttp import web

from outfitter.testing.agreement import check_headers
from outfitter.testing.behaviour import is_modern
from outfitter.testing.conversation import Conversation, Listener
from outfitter.testing.exchange import NO_SESSION, Message, Refusal, Request, part
from outfitter.testing.faults import RequestFault, Reset, SessionLoss
from outfitter.testing.http_front import Front, read_message, refused, surroundings
from outfitter.testing.http_reply import Outbox, open_events, write_answer, write_event, write_half
from outfitter.testing.script import LEGACY_VERSIONS, Script

_SESSION: Final = "Mcp-Session-Id"
_BAD_SESSION: Final = -32000
_LISTENING: Final = "subscriptions/listen"


class StreamableHttp:
    """The endpoint. It owns the conversations of the handshake era; ``close`` ends them."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._conversations: dict[str, Conversation] = {}
        self._notices: dict[str, Outbox] = {}

    @property
    def _script(self) -> Script:
        return self._front.host.script

    def routes(self) -> list[web.AbstractRouteDef]:
        """Where it answers."""
        path = "/mcp"
        return [web.post(path, self._post), web.get(path, self._get, allow_head=False), web.delete(path, self._delete)]

    async def close(self) -> None:
        """End every conversation."""
        for id_ in tuple(self._conversations):
            await self._end(id_)

    async def _end(self, id_: str) -> bool:
        """End one conversation and its stream of notices; false if there is none."""
        conversation, notices = self._conversations.pop(id_, None), self._notices.pop(id_, None)
        if notices is not None:
            notices.end()
        if conversation is not None:
            await conversation.close()
        return conversation is not None

    async def _post(self, request: web.Request) -> web.StreamResponse:
        self._front.count(request)
        try:
            message = await read_message(request)
            fault = self._front.strike(message)
            if (response := await self._front.mistreat(request, fault)) is not None:
                return response
            if isinstance(fault, SessionLoss):
                await self.close()
            if self._is_modern(request, message):
                return await self._post_modern(request, message, fault)
            return await self._post_legacy(request, message, fault)
        except Refusal as refusal:
            return refused(refusal)

    def _is_modern(self, request: web.Request, message: Message) -> bool:
        version = request.headers.get("MCP-Protocol-Version")
        claims = version is not None and version not in LEGACY_VERSIONS
        return "modern" in self._script.eras and (claims or is_modern(message))

    async def _post_modern(
        self, request: web.Request, message: Message, fault: RequestFault | None
    ) -> web.StreamResponse:
        if "id" not in message:
            return web.Response(status=202)
        method, params = str(message.get("method")), part(message, "params")
        asked = Request(message["id"], method, params, modern=True, surroundings=surroundings(request))
        try:
            check_headers(self._script, request.headers, asked)
        except Refusal as refusal:
            return refused(refusal, asked.id)
        conversation = Conversation(self._front.host)
        try:
            return await self._answer(request, conversation, asked, fault)
        except (asyncio.CancelledError, ConnectionError):
            conversation.cancel(asked.id, counted=asked.method != _LISTENING)
            raise
        finally:
            await conversation.close()

    async def _post_legacy(
        self, request: web.Request, message: Message, fault: RequestFault | None
    ) -> web.StreamResponse:
        conversation, headers = self._find(request, message)
        if "method" not in message:
            conversation.hear_response(message)
        elif "id" not in message:
            conversation.hear_notice(message)
        else:
            asked = conversation.read(message, surroundings(request))
            return await self._answer(request, conversation, asked, fault, headers)
        return web.Response(status=202)

    def _find(self, request: web.Request, message: Message) -> tuple[Conversation, dict[str, str]]:
        """The conversation of a request of the handshake era, and what its response says about it."""
        if "legacy" not in self._script.eras:
            return Conversation(self._front.host), {}
        if not self._script.sessions:
            return self._conversations.setdefault("", Conversation(self._front.host)), {}
        if message.get("method") == "initialize":
            id_ = uuid.uuid4().hex
            self._conversations[id_] = Conversation(self._front.host)
            return self._conversations[id_], {_SESSION: id_}
        return self._known(request), {}

    def _known(self, request: web.Request) -> Conversation:
        id_ = request.headers.get(_SESSION)
        if id_ is None:
            raise Refusal(_BAD_SESSION, "Bad Request: Mcp-Session-Id header is required")
        if id_ not in self._conversations:
            raise Refusal(NO_SESSION, "Session not found")
        return self._conversations[id_]

    async def _answer(
        self,
        request: web.Request,
        conversation: Conversation,
        asked: Request,
        fault: RequestFault | None,
        headers: dict[str, str] | None = None,
    ) -> web.StreamResponse:
        with self._front.outbox() as outbox:
            conversation.start(asked, outbox, fault).add_done_callback(lambda _: outbox.end())
            if isinstance(fault, Reset):
                return await write_half(request, outbox, headers_only=fault.at == "headers")
            return await write_answer(
                request, outbox, answers=self._script.answers, modern=asked.modern, headers=headers or {}
            )

    async def _get(self, request: web.Request) -> web.StreamResponse:
        self._front.count(request)
        fault = self._front.strike({"method": "GET"})
        if (response := await self._front.mistreat(request, fault)) is not None:
            return response
        if "legacy" not in self._script.eras or not self._script.sessions:
            raise web.HTTPMethodNotAllowed("GET", ["POST"])
        try:
            conversation = self._known(request)
        except Refusal as refusal:
            return refused(refusal)
        with self._front.outbox() as outbox:
            if isinstance(fault, Reset):
                return await write_half(request, outbox, headers_only=True)
            self._notices[request.headers[_SESSION]] = outbox
            return await self._stream(request, outbox, Listener(outbox, conversation.peer))

    async def _stream(self, request: web.Request, outbox: Outbox, listener: Listener) -> web.StreamResponse:
        response = await open_events(request, {})
        try:
            await self._front.host.welcome(listener)
            async for utterance in outbox:
                await write_event(response, utterance)
        finally:
            self._front.host.dismiss(listener)
        return response

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        self._front.count(request)
        if (response := await self._front.mistreat(request, self._front.strike({"method": "DELETE"}))) is not None:
            return response
        if not await self._end(request.headers.get(_SESSION, "")):
            raise web.HTTPNotFound
        return web.Response(status=204)
