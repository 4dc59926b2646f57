"""How is a request spoiled on its way? Held up, dropped, answered with a failure, or cut off, as the dice say.

The server behind is real. What happens how often is ``fault_rates``; the way itself is ``passage``.
"""

from __future__ import annotations

from dataclasses import dataclass

import anyio

from outfitter.testing.cassettes.passage import Answer, Hangup
from outfitter.testing.exchange import VERSION_KEY, Message, Refusal, part
from outfitter.testing.fault_rates import Dice

_INJECTED = -32603
_SAID = "a fault that outfitter proxy injected"


@dataclass(frozen=True, slots=True)
class Spoiler:
    """Stands between a client and its server and spoils some of what they say."""

    dice: Dice

    def around(self, answer: Answer) -> Answer:
        """The same answers, but for those that the dice strike."""

        async def spoiled(message: Message) -> Message | None:
            strike = self.dice.throw(str(message["method"]), part(message, "params"))
            await anyio.sleep(strike.seconds)
            match strike.fault:
                case "disconnect":
                    raise Hangup
                case "drop":
                    return None
                case "lose":
                    await answer(message)
                    return None
                case "error":
                    return _error(message)
                case "fail":
                    return _failure(message)
                case _:
                    return await answer(message)

        return spoiled

    def hear(self, message: Message, during: object) -> None:
        """Let what the server says by itself pass."""


def _error(message: Message) -> Message:
    return Refusal(_INJECTED, _SAID, {"injected": True}).reply(message["id"])


def _failure(message: Message) -> Message:
    if message["method"] != "tools/call":
        return _error(message)
    result: Message = {"content": [{"type": "text", "text": _SAID}], "isError": True}
    if VERSION_KEY in part(part(message, "params"), "_meta"):
        result["resultType"] = "complete"
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}
