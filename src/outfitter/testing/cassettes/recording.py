"""How does what passes become a cassette? Each answered request is masked and written before its client hears it.

What the server says meanwhile belongs to the request it names, or to the only one that is under way; else it is a
line of its own. A request that gets no answer leaves no line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from outfitter.formats import Announced, Exchange
from outfitter.testing.cassettes.masking import Masker
from outfitter.testing.cassettes.passage import STANDING, Answer
from outfitter.testing.cassettes.writing import CassetteFile
from outfitter.testing.exchange import VERSION_KEY, Message, part


@dataclass(slots=True)
class _Open:
    """A request under way, and what was said during it."""

    token: object
    notices: list[Message] = field(default_factory=list[Message])
    questions: list[Message] = field(default_factory=list[Message])


@dataclass(slots=True)
class Recorder:
    """Stands between a client and its server and keeps what they say."""

    file: CassetteFile
    masker: Masker
    _open: dict[object, _Open] = field(default_factory=dict[object, _Open])
    _era: str = ""

    def around(self, answer: Answer) -> Answer:
        """The same answers, each written first."""

        async def recorded(message: Message) -> Message | None:
            under_way = _Open(part(part(message, "params"), "_meta").get("progressToken"))
            is_kept = message["method"] not in STANDING
            if is_kept:
                self._open[message["id"]] = under_way
            try:
                response = await answer(message)
            finally:
                self._open.pop(message["id"], None)
            if response is not None and is_kept:
                self._keep(message, response, under_way)
            return response

        return recorded

    def hear(self, message: Message, during: object) -> None:
        """Keep a notice or a question with the request it belongs to."""
        owner = self._owner(message, during)
        if owner is None:
            if "id" not in message and self._era:
                self.file.write(Announced(self.masker.notice(message)), self._era)
        elif "id" in message:
            owner.questions.append(message)
        else:
            owner.notices.append(message)

    def _owner(self, message: Message, during: object) -> _Open | None:
        if during in self._open:
            return self._open[during]
        if message.get("method") == "notifications/progress":
            token = part(message, "params").get("progressToken")
            return next((one for one in self._open.values() if one.token == token and token is not None), None)
        return next(iter(self._open.values())) if len(self._open) == 1 else None

    def _keep(self, message: Message, response: Message, under_way: _Open) -> None:
        self._era = self._era or _era_of(message, response)
        result, error = response.get("result"), response.get("error")
        exchange = Exchange(
            str(message["method"]),
            part(message, "params"),
            cast("dict[str, Any]", result) if isinstance(result, dict) else None,
            cast("dict[str, Any]", error) if isinstance(error, dict) else None,
            tuple(under_way.notices),
            tuple(under_way.questions),
        )
        self.file.write(self.masker.exchange(exchange), self._era)


def _era_of(message: Message, response: Message) -> str:
    """The era by the first answer: one that carries a version and is no error is modern."""
    is_modern = VERSION_KEY in part(part(message, "params"), "_meta")
    return "modern" if is_modern and ("error" not in response or message["method"] != "server/discover") else "legacy"
