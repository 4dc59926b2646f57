"""A repository's squad file: where it is, and the catalog that it makes.

``.squad/mcp-config.json`` is looked for from a folder up to the root of its repository. Agents that its ``roles`` names
are held to the preset of their role. Reading text is ``formats``, who is of the team is ``squad``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from outfitter.app.settings import Settings
from outfitter.catalog import Catalog
from outfitter.errors import NotFound
from outfitter.formats import MAX_BYTES, SquadFile, Syntax, read_document, read_squad_file
from outfitter.storage import CatalogFolder, read_bytes

SQUAD_FILE = "mcp-config.json"
_FOLDERS = (".squad", ".ai-team")
_HINT = "run 'outfitter squad init' to make one"


@dataclass(frozen=True, slots=True)
class SquadHome:
    """A team's folder, which need not be there yet, and the squad file in it."""

    folder: Path

    @property
    def file(self) -> Path:
        """The squad file."""
        return self.folder / SQUAD_FILE

    @property
    def project(self) -> Path:
        """The folder that the team works in."""
        return self.folder.parent

    def settings(self, settings: Settings) -> Settings:
        """The settings with which this team's servers are connected: what is remembered of them is its own."""
        return replace(settings, catalog=self.folder)

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The variables, and those that a squad file may take for given."""
        place = str(self.project)
        return {"WORKSPACE_ROOT": place, "SQUAD_ROOT": place, **environment}

    def state(self) -> str | None:
        """What stands for the version of the file; None when it cannot be seen now."""
        try:
            stat = self.file.stat()
        except OSError:
            return None
        return f"{stat.st_mtime_ns} {stat.st_size} {stat.st_ino}"

    def read(self) -> SquadFile:
        """What the file says; NotFound without one, InvalidDocument with the place of a fault."""
        if not self.file.is_file():
            raise NotFound("there is no squad file here", where=str(self.file), hint=_HINT)
        name = str(self.file)
        return read_document(
            read_bytes(self.file, MAX_BYTES), name, Syntax.JSONC, lambda value: read_squad_file(value, name)
        )

    def load(self) -> Catalog:
        """The catalog of the file, its agents held to their roles."""
        return catalog_of(self.read())


def catalog_of(file: SquadFile) -> Catalog:
    """The catalog that counts; Invalid for a role that there is no preset for."""
    if not file.roles:
        return file.catalog
    from outfitter.squad import NO_PRESET, apply_presets

    return apply_presets(file.catalog, {name: file.roles.get(name, NO_PRESET) for name in file.catalog.agents})


def find_home(start: Path) -> SquadHome:
    """The team's folder for a folder in its repository; where it would be, when there is none."""
    if start.name in _FOLDERS or (start / SQUAD_FILE).is_file():
        return SquadHome(start)
    place = start.resolve()
    for folder in (place, *place.parents):
        found = next((folder / name for name in _FOLDERS if (folder / name).is_dir()), None)
        if found is not None:
            return SquadHome(found)
        if (folder / ".git").exists():
            break
    return SquadHome(start / _FOLDERS[0])


def home_at(catalog: Path) -> SquadHome | None:
    """The team whose folder was given in the place of a catalog folder; None when it is one."""
    is_squad = (catalog / SQUAD_FILE).is_file() and not CatalogFolder(catalog).exists()
    return SquadHome(catalog) if is_squad else None
