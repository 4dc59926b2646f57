"""``python -m outfitter`` is the command line."""

from outfitter.cli import main

main()
