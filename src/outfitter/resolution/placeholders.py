"""Which placeholders a text holds, and the text with them filled.

``${VAR}``, ``${VAR:-default}``, ``${runtime.session_id}`` and its kin; ``$${`` writes a literal ``${``. One pass: what
comes out of a variable is never looked at again. Where placeholders may stand is decided by ``chain`` (authored
levels only); where values come from is the caller's affair.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from outfitter.errors import UnresolvedPlaceholder

_TOKEN = re.compile(r"\$\$\{|\$\{(?P<inside>[^{}]*)\}|\$\{")
_SCHEME = re.compile(r"\s*|(?:Bearer|Basic|Token|ApiKey) ", re.IGNORECASE)
_VARIABLE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)

SESSION_ID = "runtime.session_id"
RUN_ID = "runtime.run_id"
ORCHESTRATOR_URL = "runner.orchestrator_mcp_url"
PARENT_SESSION_ID = "parent.session_id"
PARENT_RUN_ID = "parent.run_id"
_RUNTIME = frozenset({SESSION_ID, RUN_ID, ORCHESTRATOR_URL, PARENT_SESSION_ID, PARENT_RUN_ID})
_SYNONYMS = {"AGENT_SESSION_ID": SESSION_ID, "AGENT_ORCHESTRATOR_MCP_URL": ORCHESTRATOR_URL}
_FROM_PARENT = {SESSION_ID: PARENT_SESSION_ID, RUN_ID: PARENT_RUN_ID}


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the environment, with what to use when it is unset or empty."""

    name: str
    default: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class RuntimeValue:
    """A value that Outfitter itself knows when the run starts."""

    name: str


Part: TypeAlias = str | Variable | RuntimeValue


@lru_cache(maxsize=4096)
def parse_template(text: str) -> tuple[Part, ...]:
    """The text cut into literal pieces and placeholders; UnresolvedPlaceholder when one is malformed."""
    parts: list[Part] = []
    end = 0
    for token in _TOKEN.finditer(text):
        if token.start() > end:
            parts.append(text[end : token.start()])
        end = token.end()
        parts.append("${" if token[0] == "$${" else _read_placeholder(token["inside"]))
    if end < len(text):
        parts.append(text[end:])
    return tuple(parts)


def _read_placeholder(inside: str | None) -> Variable | RuntimeValue:
    if inside is not None:
        name = _SYNONYMS.get(inside, inside)
        if name in _RUNTIME:
            return RuntimeValue(name)
        variable = _VARIABLE.fullmatch(inside)
        if variable is not None:
            return Variable(variable["name"], variable["default"])
    hint = "write ${NAME}, ${NAME:-default} or ${runtime.session_id}; write $${ for a literal ${"
    raise UnresolvedPlaceholder("malformed placeholder", hint=hint)  # not quoted: it may be part of a password


def holds_placeholder(text: str) -> bool:
    """Whether anything in the text would be filled."""
    return "${" in text


def bind_to_parent(text: str, session_id: str | None, run_id: str | None) -> str:
    """The text with the parent's own ids written in, so that a child cannot put its own in their place."""
    known = {SESSION_ID: session_id, RUN_ID: run_id}
    bound: list[str] = []
    for part in parse_template(text):
        if isinstance(part, RuntimeValue) and part.name in known:
            bound.append(known[part.name] or "${" + _FROM_PARENT[part.name] + "}")
        else:
            bound.append(write_part(part))
    return "".join(bound)


def mask_literals(text: str, mask: str) -> str | None:
    """The text with all but its placeholders and a scheme such as ``Bearer`` masked; None if it has no placeholder."""
    try:
        parts = parse_template(text)
    except UnresolvedPlaceholder:
        return None
    if all(isinstance(part, str) for part in parts):
        return None
    return "".join(_masked(part, mask) for part in parts)


def _masked(part: Part, mask: str) -> str:
    if isinstance(part, str):
        return part if _SCHEME.fullmatch(part) else mask
    return write_part(Variable(part.name, mask) if isinstance(part, Variable) and part.default else part)


def write_part(part: Part) -> str:
    """The part as it would be written in a file."""
    if isinstance(part, str):
        return part.replace("${", "$${")
    if isinstance(part, RuntimeValue):
        return "${" + part.name + "}"
    return "${" + part.name + ("" if part.default is None else f":-{part.default}") + "}"
