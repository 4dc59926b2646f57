"""What one value still needs, and its text once that is there. Pure, one pass, and the text stays a Secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from outfitter.basics import Origin, Secret, SecretRef
from outfitter.catalog import JsonValue, json_text
from outfitter.resolution.placeholders import RuntimeValue, Variable, parse_template
from outfitter.resolution.values import HeaderValue, Merged, Plain

Need: TypeAlias = Variable | RuntimeValue | SecretRef


@dataclass(frozen=True, slots=True)
class Supply:
    """The values that were found for a plan's wants."""

    variables: Mapping[str, Secret] = field(default_factory=dict[str, Secret])
    secrets: Mapping[SecretRef, Secret] = field(default_factory=dict[SecretRef, Secret])
    runtime: Mapping[str, str] = field(default_factory=dict[str, str])

    def find(self, need: Need) -> str | Secret | None:
        """The value for a need, its default included; None when there is none. An empty one counts as unset."""
        if isinstance(need, RuntimeValue):
            return self.runtime.get(need.name) or None
        found = self.secrets.get(need) if isinstance(need, SecretRef) else self.variables.get(need.name)
        default = need.default if isinstance(need, Variable) else None
        return found if found is not None and found != Secret("") else default


def needs_of(value: HeaderValue, origin: Origin) -> Iterator[tuple[Need, Origin]]:
    """What a value still asks for, each with whoever wrote it."""
    if isinstance(value, Merged):
        for member in value.members.values():
            yield from needs_of(member.value, member.origin)
    elif isinstance(value.value, SecretRef):
        yield value.value, origin
    elif value.authored and not isinstance(value.value, Secret):
        for text in _texts(value.value):
            yield from ((part, origin) for part in parse_template(text) if not isinstance(part, str))


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def fill_value(value: HeaderValue, supply: Supply) -> Secret:
    """The value as the text that is sent; what the supply lacks is empty, so ask ``needs_of`` first."""
    if isinstance(value, Merged):
        members = {key: _fill_json(member.value, supply) for key, member in value.members.items()}
        return Secret.compose(_as_object(tuple(members)), *members.values())
    if isinstance(value.value, str) and value.authored:
        return _fill_text(value.value, supply)
    if isinstance(value.value, str):
        return Secret(value.value)
    if isinstance(value.value, Secret):
        return value.value
    return _fill_reference(value.value, supply) if isinstance(value.value, SecretRef) else _fill_json(value, supply)


def _fill_reference(ref: SecretRef, supply: Supply) -> Secret:
    found = supply.find(ref)
    return found if isinstance(found, Secret) else Secret(found or "")


def _fill_text(text: str, supply: Supply) -> Secret:
    parts = [part if isinstance(part, str) else supply.find(part) or "" for part in parse_template(text)]
    return Secret.compose("".join, *parts)


def _fill_json(plain: Plain, supply: Supply) -> Secret:
    """The value as JSON text; each text inside is filled before it is written, so that nothing can break out of it."""
    value = plain.value
    if isinstance(value, Secret | SecretRef):
        filled = value if isinstance(value, Secret) else _fill_reference(value, supply)
        return Secret.compose(lambda parts: json_text(parts[0]), filled)
    if isinstance(value, str):
        filled = _fill_text(value, supply) if plain.authored else Secret(value)
        return Secret.compose(lambda parts: json_text(parts[0]), filled)
    if isinstance(value, dict):
        items = [_fill_json(Plain(item, plain.authored), supply) for item in value.values()]
        return Secret.compose(_as_object(tuple(value)), *items)
    if isinstance(value, list):
        items = [_fill_json(Plain(item, plain.authored), supply) for item in value]
        return Secret.compose(lambda parts: "[" + ",".join(parts) + "]", *items)
    return Secret(json_text(value))


def _as_object(keys: tuple[str, ...]) -> Callable[[tuple[str, ...]], str]:
    def render(parts: tuple[str, ...]) -> str:
        return "{" + ",".join(f"{json_text(key)}:{part}" for key, part in zip(keys, parts, strict=True)) + "}"

    return render
