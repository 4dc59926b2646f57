"""The sections of a template in the order they are read, each with what rendering needs to know of it.

Everything that does not depend on parameters is found here, once: paths, headings, signatures, hashes, faults.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outfitter.basics import suggest
from outfitter.errors import PromptValidationError
from outfitter.prompt.choices import Choice, read_choice
from outfitter.prompt.params import field_names
from outfitter.prompt.section import Section, SectionVisibility, redefines
from outfitter.prompt.text import Text, read_text

_TOP_LEVEL = 2
_DEEPEST = 6
_DATACLASS_MARK = "__dataclass_fields__"
_HASH_DIGITS = 32


@dataclass(frozen=True, slots=True)
class SectionNode:
    """One section at its place: ``path`` is the keys from the top, ``name`` the same joined by dots."""

    path: tuple[str, ...]
    section: Section[Any] = field(repr=False)
    name: str = field(repr=False)
    end: int = field(repr=False)
    """The index of the first node that is not below it."""
    heading: str = field(repr=False)
    params_type: type | None = field(repr=False)
    default: object = field(repr=False)
    """The parameters when none are given; None when it has no default."""
    enabled: Choice[bool] | None = field(repr=False)
    visibility: Choice[SectionVisibility] | SectionVisibility = field(repr=False)
    summary: Text | None = field(repr=False)
    opens: bool = field(repr=False)
    """Whether it or a section below it has tools or servers."""
    is_plain: bool = field(repr=False)
    """Whether it gives text and nothing else."""
    hash: str = field(repr=False)
    """What an override compares with, to know that the text is still the one it was written for."""


def grow_tree(sections: Sequence[Section[Any]]) -> tuple[SectionNode, ...]:
    """The nodes of these sections and all below them; PromptValidationError when they do not fit together."""
    places = list(_places(sections, ()))
    defaults: dict[type, object] = {}
    given: list[object] = [section.default_params for _, section in places]
    for default in given:
        if default is not None:
            defaults.setdefault(type(default), default)
    nodes: dict[str, SectionNode] = {}
    for index, (path, section) in enumerate(places):
        node = _node(path, section, index, defaults)
        if node.name in nodes:
            raise PromptValidationError(f"two sections have the path '{node.name}'", hint="give one of them a new key")
        nodes[node.name] = node
    return tuple(nodes.values())


def _places(sections: Sequence[Section[Any]], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Section[Any]]]:
    for section in sections:
        if not isinstance(section, Section):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise TypeError("sections must be Section instances.")
        path = (*above, section.key)
        yield path, section
        yield from _places(section.children, path)


def _node(path: tuple[str, ...], section: Section[Any], index: int, defaults: Mapping[type, object]) -> SectionNode:
    name = ".".join(path)
    kind = _params_type(section, name)
    below = list(_places(section.children, path))
    summary = None if section.summary is None else read_text(section.summary.strip())
    source = section.source_text
    for text in (summary, None if source is None else read_text(source)):
        check_fields(text, kind, name)
    visibility = section.visibility
    return SectionNode(
        path=path,
        section=section,
        name=name,
        end=index + 1 + len(below),
        heading=f"{'#' * min(_TOP_LEVEL + len(path) - 1, _DEEPEST)} {section.title}",
        params_type=kind,
        default=defaults.get(kind) if section.default_params is None and kind else section.default_params,
        enabled=None if section.enabled is None else read_choice(section.enabled),
        visibility=SectionVisibility(visibility) if isinstance(visibility, str) else read_choice(visibility),
        summary=summary,
        opens=any(other.brings_tools for other in (section, *(child for _, child in below))),
        is_plain=_is_plain(section),
        hash=hash_text(source or ""),
    )


def _params_type(section: Section[Any], name: str) -> type | None:
    kind: type | None = section.params_type
    default: object = section.default_params
    if kind is not None and not hasattr(kind, _DATACLASS_MARK):
        raise PromptValidationError(f"section '{name}' takes {kind.__name__}, which is no dataclass")
    if default is not None and type(default) is not kind:
        wanted = "no parameters" if kind is None else kind.__name__
        raise PromptValidationError(f"section '{name}' has a default of type {type(default).__name__}, takes {wanted}")
    return kind


def _is_plain(section: Section[Any]) -> bool:
    """Whether nothing but the constructor says what it contributes, and that is nothing."""
    if redefines(section, "tools", "mcps", "policies", "resources"):
        return False
    return not (section.tools() or section.mcps() or section.policies())


def check_fields(text: Text | None, kind: type | None, name: str) -> None:
    """Refuse a text that asks for a field the parameters do not have."""
    known = field_names(kind)
    for wanted in () if text is None else text.fields:
        if wanted not in known:
            owner = "takes no parameters" if kind is None else f"takes {kind.__name__}, which has no such field"
            hint = f"{suggest(wanted, known)}; write $${wanted} for the text itself"
            raise PromptValidationError(f"section '{name}' asks for '${wanted}' and {owner}", hint=hint)


def hash_text(text: str) -> str:
    """A short name of exactly this text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
