"""The command line: one file per command group, loaded only when its command is asked for."""

from outfitter.cli.api_problems import error_of
from outfitter.cli.main import exit_code, main

__all__ = ["error_of", "exit_code", "main"]
