"""What time it is on the loop, in its callbacks too.

``anyio.current_time`` asks which library runs the current task, and where ``sniffio`` is installed it finds none in a
callback of the loop. Everything here runs on asyncio, whose loop always knows.
"""

from __future__ import annotations

import asyncio


def loop_time() -> float:
    """Seconds by the clock of the running loop: the one that deadlines are counted in."""
    return asyncio.get_running_loop().time()
