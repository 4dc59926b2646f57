"""What the rules of an agent say about one call.

A pure function of rules and arguments. Deny beats ask beats allow; a tool no rule speaks of is left to the filters,
which have already let it through. Whose rules apply is ``resolution``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from outfitter.catalog import Effect, JsonValue, ToolRule, json_text
from outfitter.policy.decisions import Allow, Ask, Decision, Deny
from outfitter.policy.globs import INCOMPARABLE, is_comparable, matches


def judge(
    rules: Iterable[ToolRule],
    server: str,
    tool: str,
    arguments: Mapping[str, JsonValue],
    *,
    read_only: bool = False,
) -> Decision:
    """The answer of these rules to a call of this tool with these arguments.

    ``read_only`` says that the tool only reads, by the word of a server that is trusted.
    """
    spoken = [rule for rule in rules if rule.speaks_of(server, tool) and not (read_only and rule.unless_read_only)]
    met = [rule for rule in spoken if _conditions_hold(rule, arguments)]
    for rule in met:
        if rule.effect is Effect.DENY:
            return Deny(rule.reason or f"a rule denies '{tool}'", rule)
    allowing = [rule for rule in spoken if rule.effect is Effect.ALLOW]
    granted = [rule for rule in met if rule.effect is Effect.ALLOW]
    if allowing and not granted:
        return Deny(_unmet(allowing[0], tool), allowing[0])
    for rule in met:
        if rule.effect is Effect.ASK:
            return Ask(rule.reason or f"'{tool}' needs approval", rule)
    return Allow(granted[0].reason, granted[0]) if granted else Allow()


def _unmet(rule: ToolRule, tool: str) -> str:
    wanted = "; ".join(f"{pointer} must match {' or '.join(globs)}" for pointer, globs in rule.arguments.items())
    return f"{rule.reason} ({wanted})" if rule.reason else f"'{tool}': {wanted}"


def _conditions_hold(rule: ToolRule, arguments: Mapping[str, JsonValue]) -> bool:
    holds = _all_match if rule.effect is Effect.ALLOW else _any_matches
    return all(
        holds(globs, tuple(_values_at(pointer.split("/")[1:], dict(arguments))))
        for pointer, globs in rule.arguments.items()
    )


def _all_match(globs: Sequence[str], found: Sequence[str | None]) -> bool:
    """For a rule that opens: every value must match, and there must be one."""
    return bool(found) and all(text is not None and any(matches(glob, text) for glob in globs) for text in found)


def _any_matches(globs: Sequence[str], found: Sequence[str | None]) -> bool:
    """For a rule that closes: one value that matches is enough, and so is one that cannot be compared."""
    return any(
        text is not None and (not is_comparable(text) or any(matches(glob, text, climbs=True) for glob in globs))
        for text in found
    )


def _values_at(steps: Sequence[str], value: JsonValue) -> Iterator[str | None]:
    """The texts at the end of the pointer, None where nothing is; an object or list is a text nothing compares with."""
    if not steps:
        yield INCOMPARABLE if isinstance(value, dict | list) else value if isinstance(value, str) else json_text(value)
        return
    step = steps[0].replace("~1", "/").replace("~0", "~")
    if step == "*" and isinstance(value, list):
        for item in value:
            yield from _values_at(steps[1:], item)
    elif isinstance(value, dict) and step in value:
        yield from _values_at(steps[1:], value[step])
    elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        yield from _values_at(steps[1:], value[int(step)])
    else:
        yield None
