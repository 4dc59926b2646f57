"""One request to one server, whatever eras the client and the server speak.

A modern server that wants input first is answered in rounds: a modern client sees the question as the server wrote it,
a handshake-era client is asked and its answers go back. The caller's own ``_meta`` goes along, without what belongs to
one leg of the way only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from outfitter.catalog import TimeLimits
from outfitter.errors import ProtocolViolation
from outfitter.gateway.attendants import Forwarder
from outfitter.gateway.lines import Line
from outfitter.gateway.views import as_object
from outfitter.gateway.visitors import Visitor
from outfitter.upstream import BEGUN, Era, Link, Message

_META = "io.modelcontextprotocol/"
_ONE_LEG = frozenset({f"{_META}protocolVersion", f"{_META}clientInfo", f"{_META}subscriptionId", "progressToken"})
_CAPABILITIES = f"{_META}clientCapabilities"
_LOG_LEVEL = f"{_META}logLevel"
MAX_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Forwarding:
    """A request on its way to a server."""

    line: Line
    visitor: Visitor
    method: str
    params: Message
    limits: TimeLimits | None = None

    async def send(self) -> Message:
        """The server's result."""
        attendant = Forwarder(self.visitor, as_object(self.params.get("_meta")).get("progressToken"))
        left = self._left()
        if left is not None:
            return await self._rounds(left, attendant)
        return await self.line.use(lambda link: self._rounds(link, attendant))

    def _left(self) -> Link | None:
        """The lost link on which the fast lane has sent this call: it knows what became of it, a new one does not."""
        begun = BEGUN.get() if self.method == "tools/call" else None
        if begun is None or begun.is_taken:
            return None
        link = cast("Link", begun.link)
        return None if link.is_usable else link

    async def _rounds(self, link: Link, attendant: Forwarder) -> Message:
        asked = self.params_for(link)
        drives = self.visitor.era is Era.LEGACY and link.agreement.era is Era.MODERN
        for _ in range(MAX_ROUNDS):
            result = await link.request(
                self.method,
                asked,
                limits=self.limits,
                on_progress=attendant.progress if attendant.progress_token is not None else None,
                attendant=attendant,
            )
            if not drives or result.get("resultType") != "input_required":
                return result
            asked = {**asked, "inputResponses": await self._answers(result, attendant)}
            if "requestState" in result:
                asked["requestState"] = result["requestState"]
        raise ProtocolViolation(f"the server asked for input more than {MAX_ROUNDS} times")

    @staticmethod
    async def _answers(result: Message, attendant: Forwarder) -> Message:
        answers: Message = {}
        for key, question in as_object(result.get("inputRequests")).items():
            asked = as_object(question)
            answers[key] = await attendant.respond(str(asked.get("method")), as_object(asked.get("params")))
        return answers

    def params_for(self, link: Link) -> Message:
        """The parameters as this server gets them."""
        meta = {key: value for key, value in as_object(self.params.get("_meta")).items() if key not in _ONE_LEG}
        if link.agreement.era is Era.MODERN:
            meta[_CAPABILITIES] = dict(self.visitor.capabilities)
            if self.visitor.log_level is not None:
                meta[_LOG_LEVEL] = self.visitor.log_level
        else:
            meta = {key: value for key, value in meta.items() if not key.startswith(_META)}
        kept = {key: value for key, value in self.params.items() if key != "_meta"}
        return {**kept, "_meta": meta} if meta else kept
