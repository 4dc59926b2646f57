"""The demo catalog: a small team's servers, capabilities and agents, shipped with the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from outfitter.storage import AGENTS, CAPABILITIES, SERVERS, CatalogFolder, write_files

GITIGNORE = "# Secrets are kept beside the catalog, never in it.\nsecrets/\n"


def write_demo(folder: CatalogFolder) -> bool:
    """Write the demo catalog unless the folder already holds a catalog; whether it was written."""
    if folder.exists():
        return False
    changes: dict[Path, str | None] = {folder.path / ".gitignore": GITIGNORE}
    demo = resources.files("outfitter.app") / "demo_catalog"
    for kind in (SERVERS, CAPABILITIES, AGENTS):
        for file in (demo / kind).iterdir():
            changes[folder.path / kind / file.name] = file.read_text(encoding="utf-8")
    write_files(changes)
    return True
