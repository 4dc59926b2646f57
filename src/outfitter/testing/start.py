"""What do both server programs share? Reading a script from the command line, and dying on demand."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from outfitter.testing.faults import Crash
from outfitter.testing.script import Script


def read_script(text: str) -> Script:
    """The script given on a command line: JSON, or the name of a file that holds it."""
    return Script.from_json(text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8"))


def die(fault: Crash) -> NoReturn:
    """End this process as the fault wants it, without any clean-up."""
    sys.stderr.write(fault.stderr)
    sys.stderr.flush()
    if fault.code is None:
        os.kill(os.getpid(), fault.signal)
    os._exit(fault.code if fault.code is not None else 1)
