"""What a change does to what an agent gets: two explanations compared. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from outfitter.dashboard.form_values import shown


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that would be otherwise; None where there is nothing on that side."""

    server: str
    what: str
    before: str | None
    after: str | None


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """What is otherwise, server by server; an explanation that only has problems has no server."""
    old, new = _servers(before), _servers(after)
    return [one for alias in dict.fromkeys([*old, *new]) for one in _compare(alias, old.get(alias), new.get(alias))]


def _servers(explanation: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {one["alias"]: one for one in explanation.get("servers", ())}


def _compare(alias: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Iterator[Difference]:
    if old is None or new is None:
        yield Difference(alias, "server", _target(old), _target(new))
        return
    if _target(old) != _target(new):
        yield Difference(alias, "server", _target(old), _target(new))
    for what, look in (("header", _headers), ("tool", _tools)):
        was, will = look(old), look(new)
        for name in dict.fromkeys([*was, *will]):
            if was.get(name) != will.get(name):
                yield Difference(alias, f"{what} {name}", was.get(name), will.get(name))


def _target(server: Mapping[str, Any] | None) -> str | None:
    return None if server is None else str(server["target"])


def _headers(server: Mapping[str, Any]) -> dict[str, str]:
    return {one["name"]: f"{shown(one['value'])} ({_origin(one['origin'])})" for one in server["headers"]}


def _tools(server: Mapping[str, Any]) -> dict[str, str]:
    return {
        one["name"]: "offered" if one["offered"] else f"not offered: {one['gate']}" for one in server["tools"] or ()
    }


def _origin(origin: Mapping[str, Any]) -> str:
    return f"{origin['level']} {origin['name']}" if origin.get("name") else str(origin["level"])
