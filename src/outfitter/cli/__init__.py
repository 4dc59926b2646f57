"""The command line: one file per command group, loaded only when its command is asked for."""

from outfitter.cli.main import exit_code, main

__all__ = ["exit_code", "main"]
