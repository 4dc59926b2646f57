"""A canary secret, put into every level and position, is in nothing that is printed, logged or pickled (H17)."""

from __future__ import annotations

import json
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from io import StringIO
from typing import Any, cast

import pytest

from outfitter.basics import Secret, SecretRef
from outfitter.catalog import (
    Agent,
    Capability,
    Catalog,
    ClientCredentials,
    HeaderSchema,
    HeaderSettings,
    HeaderType,
    MCPServer,
    RunRequest,
    ServerEntry,
    ServerRef,
)
from outfitter.errors import OutfitterError
from outfitter.resolution import RunPlan, Supply, arm, blueprint, explain, resolve, wants_of, why_not

CANARY = "CNRY-7f3a91"
SCHEMA: Mapping[str, HeaderSchema] = {
    "X-Key": HeaderSchema(sensitive=True),
    "X-Key-List": HeaderSchema(sensitive=True, narrows=True),
    "X-Key-Json": HeaderSchema(HeaderType.JSON, sensitive=True),
    "X-Key-Merged": HeaderSchema(HeaderType.JSON, sensitive=True, merges=True),
    "X-Key-Locked": HeaderSchema(sensitive=True, locked=True),
    "X-Key-Number": HeaderSchema(HeaderType.NUMBER, sensitive=True),
}
POSITIONS: Mapping[str, HeaderSettings] = {
    "literal": {"X-Key": CANARY},
    "escaped": {"X-Key": f"{CANARY}$${{x}}"},
    "beside a placeholder": {"X-Key": f"{CANARY}${{VAR}}"},
    "scheme and literal": {"X-Key": f"Bearer {CANARY}${{VAR}}"},
    "default": {"X-Key": f"Bearer ${{UNSET:-{CANARY}}}"},
    "malformed placeholder": {"X-Key": f"${{{CANARY}}}"},
    "half a placeholder": {"X-Key": f"{CANARY}${{"},
    "list": {"X-Key-List": f"A,{CANARY}"},
    "json": {"X-Key-Json": {"token": CANARY}},
    "json with placeholder": {"X-Key-Json": {"token": CANARY, "more": "${VAR}"}},
    "json text": {"X-Key-Json": json.dumps({"token": CANARY})},
    "not json": {"X-Key-Json": f"{{{CANARY}"},
    "merged": {"X-Key-Merged": {"token": CANARY}},
    "locked": {"X-Key-Locked": CANARY},
    "wrong type": {"X-Key-Number": CANARY},
    "undeclared": {"Authorization": f"Bearer {CANARY}"},
    "line break": {"X-Key": f"{CANARY}\n"},
    "not ASCII": {"X-Key": f"{CANARY}é"},
    "too long": {"X-Key": CANARY * 1000},
}


@dataclass(frozen=True)
class _Seen:
    """What one attempt left behind: values and errors."""

    values: tuple[object, ...]
    errors: tuple[BaseException, ...]


def _attempt(level: str, headers: HeaderSettings) -> _Seen:
    """Resolve and arm a parent and a child, with these headers at this level; keep whatever came of it."""
    values: list[object] = []
    errors: list[BaseException] = []

    def keep(make: Callable[[], Any]) -> Any:  # noqa: ANN401 (it keeps anything)
        try:
            values.append(made := make())
        except OutfitterError as error:
            errors.append(error)
            return None
        return made

    at: dict[str, HeaderSettings] = {name: {} for name in ("registry", "capability", "agent", "run", "parent")}
    at[level] = headers
    entry = keep(
        lambda: ServerEntry(MCPServer.http("s", "http://x/mcp"), header_schema=SCHEMA, default_headers=at["registry"])
    )
    capability = keep(lambda: Capability("c", servers={"s": ServerRef("s", at["capability"])}))
    agent = keep(lambda: Agent("a", capabilities=("c",), servers={"s": ServerRef("s", at["agent"])}))
    runs = [keep(lambda level=level: RunRequest("a", mcp_headers={"s": at[level]})) for level in ("parent", "run")]
    if entry and capability and agent and all(runs):
        catalog = keep(lambda: Catalog.of([entry], [capability], [agent]))
        plan: RunPlan | None = None
        for run in runs:
            parent = plan
            plan = cast("RunPlan | None", keep(lambda run=run, parent=parent: resolve("a", catalog, run, parent)))
            if plan is not None:
                _look_at(plan, keep)
    return _Seen(tuple(values), tuple(errors))


def _look_at(plan: RunPlan, keep: Callable[[Callable[[], Any]], Any]) -> None:
    keep(lambda: explain(plan))
    keep(lambda: explain(plan).to_json())
    keep(lambda: blueprint(plan))
    for name in ("X-Key", "X-Key-List", "Authorization", "s", "s/tool", "nothing"):
        keep(lambda name=name: [answer.to_json() for answer in why_not(plan, name)])
    keep(lambda: wants_of(plan))
    keep(lambda: arm(plan, Supply({"VAR": Secret(CANARY)})))
    keep(lambda: arm(plan, Supply({"VAR": Secret(f"{CANARY}\n")})))
    keep(lambda: arm(plan, Supply()))


def _reach(value: object, seen: set[int]) -> Iterator[object]:
    """Every object that can be reached from a value through fields, members and items."""
    if id(value) in seen or isinstance(value, str | bytes | int | float | type(None)):
        return
    seen.add(id(value))
    yield value
    inner: list[object] = []
    if is_dataclass(value):
        inner = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, Mapping):
        inner = list(cast("Mapping[str, object]", value).values())
    elif isinstance(value, list | tuple):
        inner = list(cast("list[object]", value))
    for item in inner:
        yield from _reach(item, seen)


_RAW = (dict, list, tuple)


def _texts(value: object) -> Iterator[str]:
    yield repr(value)
    yield str(value)
    yield f"{value}"
    out = StringIO()
    handler = logging.StreamHandler(out)
    handler.emit(logging.LogRecord("canary", logging.WARNING, "", 0, "%s %r", (value, value), None))
    yield out.getvalue()


@pytest.mark.promise("H17", "SECRET-NOT-PRINTED")
@pytest.mark.parametrize("level", ["registry", "capability", "agent", "run", "parent"])
@pytest.mark.parametrize("position", POSITIONS)
def test_nothing_that_can_be_printed_or_logged_holds_the_canary(level: str, position: str) -> None:
    seen = _attempt(level, POSITIONS[position])
    assert seen.values or seen.errors
    for value in seen.values:
        for text in _texts(value):
            assert CANARY not in text
        for item in _reach(value, set()):
            if not isinstance(item, _RAW):  # the mapping that an author handed in is the author's own
                assert CANARY not in repr(item)
    for error in seen.errors:
        assert CANARY not in "".join(traceback.format_exception(error))
        assert CANARY not in repr(error) + str(error) + repr(error.args) + repr(vars(error))


@pytest.mark.promise("H17", "SECRET-NOT-PRINTED")
@pytest.mark.parametrize("level", ["registry", "capability", "agent", "run", "parent"])
@pytest.mark.parametrize("position", POSITIONS)
def test_no_plan_and_no_error_can_be_pickled_with_the_canary(level: str, position: str) -> None:
    seen = _attempt(level, POSITIONS[position])
    plans = [value for value in seen.values if isinstance(value, RunPlan)]
    for value in (*plans, *(server for plan in plans for server in plan.servers.values())):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(value)
    for value in (*seen.values, *seen.errors):
        if not isinstance(value, Catalog | ServerEntry | Capability | Agent | RunRequest | tuple):  # authored texts
            try:
                data = pickle.dumps(value)
            except TypeError:
                continue
            assert CANARY.encode() not in data


@pytest.mark.promise("SECRET-NOT-PRINTED")
def test_environment_credentials_and_client_secrets_are_not_shown_either() -> None:
    auth = ClientCredentials("https://auth.example/token", "id", CANARY)
    remote = ServerEntry(MCPServer.http("r", "http://x/mcp"), header_schema=SCHEMA, auth=auth)
    local = ServerEntry(MCPServer.stdio("l", "prog", env={"TOKEN": CANARY, "KEY": "${VAR}", "S": SecretRef("s")}))
    agent = Agent("a", servers={"r": ServerRef("r"), "l": ServerRef("l")})
    run = RunRequest("a", credentials={"r": {"key": Secret(CANARY)}})
    plan = resolve(agent, Catalog.of([remote, local], [], [agent]), run)
    armed = arm(plan, Supply({"VAR": Secret(CANARY)}, {SecretRef("s"): Secret(CANARY)}))
    values: list[object] = [plan, armed, run, remote, local, agent, explain(plan), explain(plan).to_json()]
    for value in (*values, blueprint(plan)):
        assert all(CANARY not in text for text in _texts(value))
        for item in _reach(value, set()):
            assert isinstance(item, _RAW) or CANARY not in repr(item)


@pytest.mark.promise("SECRET-NOT-PRINTED")
@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("Bearer ${TOKEN}", "Bearer ${TOKEN}"),
        ("${TOKEN}", "${TOKEN}"),
        ("${TOKEN:-hush}", "${TOKEN:-••••••}"),
        ("hush${TOKEN}", "••••••${TOKEN}"),
        (SecretRef("vault-name"), '{"$secret":"vault-name"}'),
    ],
)
def test_references_are_shown_as_references_and_what_stands_beside_them_is_masked(
    written: str | SecretRef, shown: str
) -> None:
    entry = ServerEntry(MCPServer.http("s", "http://x/mcp"), header_schema=SCHEMA, default_headers={"X-Key": written})
    agent = Agent("a", servers={"s": ServerRef("s")})
    (header,) = explain(resolve(agent, Catalog.of([entry], [], [agent]))).servers[0].headers
    assert header.value == shown


@pytest.mark.promise("SECRET-NOT-PRINTED")
def test_a_secret_shows_a_fingerprint_that_tells_two_apart() -> None:
    one, same, other = Secret("one"), Secret("one"), Secret("other")
    assert (one == same, one == other, str(one) == str(same), str(one) == str(other)) == (True, False, True, False)
    assert hash(one) == hash(same)
    assert "one" not in f"{one!s}{one!r}{one:>40}"
    with pytest.raises(TypeError):
        pickle.dumps(one)
    with pytest.raises(AttributeError):
        setattr(one, "_text", "x")  # noqa: B010 (that is the point)
