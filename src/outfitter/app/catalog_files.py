"""Catalogs as they lie on a disk, for those who bring them into a registry or out of it.

A folder, one file of a folder, or a bundle: one JSON file with everything, as ``outfitter export -`` prints it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from outfitter.catalog import Catalog, JsonValue
from outfitter.errors import InvalidDocument, NotFound
from outfitter.formats import (
    MAX_BYTES,
    Syntax,
    read_agent,
    read_capability,
    read_document,
    read_entry,
    render_text,
)
from outfitter.storage import AGENTS, CAPABILITIES, SERVERS, CatalogFolder, read_bytes, write_files

if TYPE_CHECKING:
    from outfitter.coordinator import Exported

_KINDS = (SERVERS, CAPABILITIES, AGENTS)


def read_catalog(path: Path) -> Catalog:
    """The catalog of a folder, of one of its files, or of a bundle."""
    if path.is_dir():
        return CatalogFolder(path).load()
    if not path.is_file():
        raise NotFound("there is no such folder or file", where=str(path))
    kind, name = path.resolve().parent.name, path.stem
    if kind not in _KINDS:
        return _read_bundle(path)
    whole = CatalogFolder(path.resolve().parent.parent).load()
    found = Catalog(
        {id_: one for id_, one in whole.servers.items() if (kind, id_) == (SERVERS, name)},
        {id_: one for id_, one in whole.capabilities.items() if (kind, id_) == (CAPABILITIES, name)},
        {id_: one for id_, one in whole.agents.items() if (kind, id_) == (AGENTS, name)},
    )
    if found == Catalog():
        hint = "a file of a catalog has the name of its entry, and ends in .json, .jsonc, .toml, .yaml or .yml"
        raise InvalidDocument("this is no file of a catalog", source=str(path), hint=hint)
    return found


def _read_bundle(path: Path) -> Catalog:
    def read(value: object) -> Catalog:
        if not isinstance(value, dict) or not set(cast("dict[str, object]", value)) <= set(_KINDS):
            hint = f"its fields are {', '.join(_KINDS)}; a single entry lies in a folder of one of these names"
            raise InvalidDocument("this is no catalog", source=str(path), hint=hint)
        fields = cast("dict[str, dict[str, object]]", value)
        shelves = [_items(fields.get(kind, {})) for kind in _KINDS]
        return Catalog.of(
            [read_entry(document, name, f"{SERVERS}/{name}") for name, document in shelves[0]],
            [read_capability(document, name, f"{CAPABILITIES}/{name}") for name, document in shelves[1]],
            [read_agent(document, name, f"{AGENTS}/{name}") for name, document in shelves[2]],
        )

    return read_document(read_bytes(path, MAX_BYTES), str(path), Syntax.of(path.name), read)


def _items(shelf: object) -> Iterable[tuple[str, object]]:
    if not isinstance(shelf, dict):
        raise InvalidDocument("expected an object of documents by name", source="")
    return cast("dict[str, object]", shelf).items()


def bundle_of(exported: Exported) -> dict[str, dict[str, Mapping[str, JsonValue]]]:
    """Everything in one object."""
    bundle: dict[str, dict[str, Mapping[str, JsonValue]]] = {kind: {} for kind in _KINDS}
    for name, document in exported.documents.items():
        bundle[name.kind][name.id] = document
    return bundle


def write_catalog(exported: Exported, path: Path) -> tuple[Path, ...]:
    """Write a file for every entry that the folder does not have as it is; answers which. Other files stay."""
    folder = CatalogFolder(path)
    changes: dict[Path, str | None] = {}
    for name, document in exported.documents.items():
        if name not in exported.known:
            file = folder.file_of(name.kind, name.id)
            changes[file] = render_text(document, Syntax.of(file.name))
    write_files(changes)
    return tuple(changes)
