"""Overrides as a JSON file: ``{"sections": {path: {"body", "expected_hash"}}, "tools": {name: {…}}}``.

Read with a limit and every key known; written whole or not at all.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict
from pathlib import Path

import msgspec

from outfitter.errors import InvalidDocument, StorageUnavailable
from outfitter.prompt.overrides import PromptOverrides, SectionOverride, ToolOverride

_MOST_BYTES = 4 << 20


class _Section(msgspec.Struct, forbid_unknown_fields=True):
    body: str
    expected_hash: str | None = None


class _Tool(msgspec.Struct, forbid_unknown_fields=True):
    description: str | None = None
    param_descriptions: dict[str, str] = {}
    expected_hash: str | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    sections: dict[str, _Section] = {}
    tools: dict[str, _Tool] = {}


def load_overrides(path: str | Path) -> PromptOverrides:
    """The overrides in the file; InvalidDocument says what cannot be read."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise StorageUnavailable(f"cannot read: {error.strerror or error}", where=str(path)) from error
    if len(data) > _MOST_BYTES:
        raise InvalidDocument(f"more than {_MOST_BYTES} bytes", source=str(path))
    try:
        found = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidDocument(f"not a file of overrides: {error}", source=str(path)) from None
    sections = {name: SectionOverride(item.body, item.expected_hash) for name, item in found.sections.items()}
    tools = {
        name: ToolOverride(item.description, item.param_descriptions, item.expected_hash)
        for name, item in found.tools.items()
    }
    return PromptOverrides(sections, tools)


def save_overrides(path: str | Path, overrides: PromptOverrides) -> None:
    """Write the overrides; what stood there before stays until the new file is complete."""
    plain = {
        "sections": {name: asdict(item) for name, item in overrides.sections.items()},
        "tools": {name: asdict(item) for name, item in overrides.tools.items()},
    }
    data = msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"
    target = Path(path)
    staged = target.with_name(f".{target.name}.{secrets.token_hex(4)}.new")
    try:
        staged.write_bytes(data)
        staged.replace(target)
    except OSError as error:
        raise StorageUnavailable(f"cannot write: {error.strerror or error}", where=str(path)) from error
    finally:
        staged.unlink(missing_ok=True)
