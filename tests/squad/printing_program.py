"""A squad server whose handlers print: what they say must not get between the messages."""

from __future__ import annotations

import os
import subprocess
import sys

import anyio

from outfitter.squad import PERSON, Member, Told, serve_stdio
from tests.squad.server_kit import LivingTeam


class PrintingTeam(LivingTeam):
    """A team that talks while it is asked."""

    async def roster(self) -> Told[tuple[Member, ...]]:
        print("printed by a handler")  # noqa: T201 - that is the point
        sys.stdout.flush()
        os.write(1, b"written to the descriptor\n")
        await anyio.run_process(
            [sys.executable, "-c", "print('said by a child')"], stdout=None, stderr=subprocess.DEVNULL
        )
        return await super().roster()


if __name__ == "__main__":
    anyio.run(serve_stdio, PrintingTeam(), PERSON, "It prints.")
