"""The catalog folder: ``mcp-servers/``, ``capabilities/`` and ``agents/``, one file each, read and written.

Every bad file is reported, not only the first. Nothing is written before the whole change has been checked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from outfitter.catalog import Agent, Catalog
from outfitter.errors import AlreadyExists, InvalidDocument, NotFound, OutfitterError, Refused, StorageUnavailable
from outfitter.formats import (
    MAX_BYTES,
    Syntax,
    prompt_file_of,
    read_agent,
    read_capability,
    read_document,
    read_entry,
    render_text,
    write_agent,
    write_capability,
    write_entry,
)
from outfitter.storage.files import read_bytes, write_files

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

SERVERS, CAPABILITIES, AGENTS = "mcp-servers", "capabilities", "agents"
_SUFFIXES = (".json", ".jsonc", ".toml", ".yaml", ".yml")


class _Read(Protocol[T_co]):
    """A reader of one kind of file."""

    def __call__(self, value: object, stem: str, source: str) -> T_co: ...


@dataclass(frozen=True, slots=True)
class CatalogFolder:
    """A folder on disk that holds a catalog."""

    path: Path

    def exists(self) -> bool:
        """Whether any of the three folders is there."""
        return any((self.path / name).is_dir() for name in (SERVERS, CAPABILITIES, AGENTS))

    def load(self) -> Catalog:
        """The catalog; the one error of a bad file, or Refused with those of several."""
        if not self.exists():
            hint = "run 'outfitter init' to make one, or name another with --catalog"
            raise NotFound("there is no catalog here", where=str(self.path), hint=hint)
        problems: list[OutfitterError] = []
        servers = self._load_all(SERVERS, read_entry, problems)
        capabilities = self._load_all(CAPABILITIES, read_capability, problems)
        agents = self._load_all(AGENTS, self._read_agent, problems)
        if len(problems) == 1:
            raise problems[0]
        if problems:
            raise Refused(f"{len(problems)} files of the catalog are not valid", problems, where=str(self.path))
        return Catalog.of(servers, capabilities, agents)

    def _load_all(self, kind: str, read: _Read[T], problems: list[OutfitterError]) -> list[T]:
        found: list[T] = []
        stems: dict[str, str] = {}
        for name in self._names(kind):
            stem = name.rpartition(".")[0]
            source = f"{self.path}/{kind}/{name}"
            if stem in stems:
                problems.append(
                    AlreadyExists(f"'{stem}' is also defined in {stems[stem]}", where=source, hint="keep one")
                )
                continue
            stems[stem] = name
            try:
                bound = partial(read, stem=stem, source=source)
                found.append(read_document(read_bytes(source, MAX_BYTES), source, Syntax.of(name), bound))
            except OutfitterError as error:
                problems.append(error)
        return found

    def _names(self, kind: str) -> list[str]:
        try:
            with os.scandir(self.path / kind) as entries:
                return sorted(
                    e.name for e in entries if e.name.endswith(_SUFFIXES) and not e.name.startswith(".") and e.is_file()
                )
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageUnavailable(f"cannot list: {error.strerror}", where=f"{self.path}/{kind}") from error

    def _read_agent(self, value: object, stem: str, source: str) -> Agent:
        named = prompt_file_of(value)
        return read_agent(value, stem, source, None if named is None else self._read_prompt(named))

    def _read_prompt(self, named: str) -> str:
        """The text of a prompt file, which must lie inside the catalog folder."""
        root = self.path.resolve()
        path = (root / AGENTS / named).resolve()
        if not path.is_relative_to(root):
            raise InvalidDocument("the prompt file lies outside the catalog folder", source="").under(
                "system_prompt_file"
            )
        try:
            data = read_bytes(path, MAX_BYTES)
            if len(data) <= MAX_BYTES:
                return data.decode()
            message = f"the prompt file has more than {MAX_BYTES // 1024 // 1024} MiB"
        except (StorageUnavailable, UnicodeDecodeError) as error:
            message = "the prompt file cannot be read as UTF-8 text" if isinstance(error, ValueError) else error.message
        raise InvalidDocument(message, source="").under("system_prompt_file")

    def file_of(self, kind: str, name: str) -> Path:
        """The file that defines this name, or the one that would."""
        for suffix in _SUFFIXES:
            path = self.path / kind / f"{name}{suffix}"
            if path.is_file():
                return path
        return self.path / kind / f"{name}.json"

    def save(self, new: Catalog, old: Catalog | None = None) -> tuple[Path, ...]:
        """Write what differs from the old catalog, all or nothing; the files that changed."""
        changes = dict(self._changes(new, old or Catalog()))
        write_files(changes)
        return tuple(changes)

    def _changes(self, new: Catalog, old: Catalog) -> Iterator[tuple[Path, str]]:
        yield from self._changed(SERVERS, new.servers, old.servers, write_entry)
        yield from self._changed(CAPABILITIES, new.capabilities, old.capabilities, write_capability)
        yield from self._changed(AGENTS, new.agents, old.agents, write_agent)

    def _changed(
        self, kind: str, new: Mapping[str, T], old: Mapping[str, T], write: Callable[[T], Mapping[str, object]]
    ) -> Iterator[tuple[Path, str]]:
        for name, item in new.items():
            if old.get(name) != item:
                path = self.file_of(kind, name)
                yield path, render_text(write(item), Syntax.of(path.name))


def load_catalog(path: str | Path = "outfitter") -> Catalog:
    """The catalog in a folder."""
    return CatalogFolder(Path(path)).load()
