"""Small worlds for properties: catalogs, runs and parents with every kind of header schema, filter and rule in play."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from outfitter.catalog import (
    Agent,
    Capability,
    Catalog,
    Effect,
    HeaderSchema,
    HeaderSettings,
    HeaderType,
    JsonValue,
    MCPServer,
    RunRequest,
    ServerEntry,
    ServerRef,
    ToolFilter,
    ToolRule,
)
from outfitter.errors import Refused
from outfitter.resolution import RunPlan, resolve

TOOLS = ("read_file", "write_file", "delete_file", "list_issues", "get_issue", "search")
PATHS = ("tests/a.py", "src/a.py", "tests/../src/a.py", "../tests/a.py", "docs/x.md")
SCHEMAS: Mapping[str, HeaderSchema] = {
    "X-Plain": HeaderSchema(),
    "X-Locked": HeaderSchema(locked=True),
    "X-List": HeaderSchema(narrows=True),
    "X-Json-List": HeaderSchema(HeaderType.JSON, narrows=True),
    "X-Json": HeaderSchema(HeaderType.JSON),
    "X-Merged": HeaderSchema(HeaderType.JSON, merges=True),
    "X-Key": HeaderSchema(sensitive=True),
}
_LETTERS = st.lists(st.sampled_from("ABCD"), min_size=1, max_size=4, unique=True)
_NUMBERS: st.SearchStrategy[JsonValue] = st.sampled_from([1, 2, None, True, "${VAR}"])
_OBJECTS: st.SearchStrategy[dict[str, JsonValue]] = st.dictionaries(st.sampled_from("abc"), _NUMBERS, max_size=2)
_WORDS = st.sampled_from(["one", "two", "${VAR}", "${AGENT_SESSION_ID}"])
_VALUES: Mapping[str, st.SearchStrategy[JsonValue]] = {
    "X-Plain": _WORDS,
    "X-Locked": _WORDS,
    "X-List": _LETTERS.map(",".join),
    "X-Json-List": _LETTERS.map(list[JsonValue]),
    "X-Json": _OBJECTS,
    "X-Merged": _OBJECTS,
    "X-Key": st.sampled_from(["hush", "${KEY}"]),
    "X-Undeclared": st.sampled_from(["u", "v"]),
}


@st.composite
def settings_of(draw: st.DrawFn, *, most: int = 3) -> HeaderSettings:
    """What one level says: a few headers in any case, now and then a removal."""
    names = draw(st.lists(st.sampled_from(sorted(_VALUES)), max_size=most, unique=True))
    spell = st.sampled_from([str.lower, str.upper, str])
    return {draw(spell)(name): None if draw(st.integers(0, 9)) == 0 else draw(_VALUES[name]) for name in names}


_EXCLUDES = st.sampled_from([(), (), ("get_*",), ("delete_file",), ("*_file", "search")])
_INCLUDES = st.sampled_from([None, None, ("*",), (), ("*_file",), ("search", "get_issue"), ("write_file", "get_*")])
FILTERS = st.builds(ToolFilter, _INCLUDES, _EXCLUDES)
RULES = st.builds(
    ToolRule,
    tools=st.sampled_from([("write_file",), ("*_file",), ("search", "get_issue"), ("*",)]),
    effect=st.sampled_from(list(Effect)),
    server=st.sampled_from(["*", "s", "t"]),
    arguments=st.dictionaries(
        st.just("/path"), st.sampled_from([("tests/**",), ("src/**",), ("**/*.py",), ("*",)]), max_size=1
    ),
)


@st.composite
def _uses(draw: st.DrawFn, *, bare: bool) -> ServerRef:
    ref = None if bare and draw(st.booleans()) else "s"
    return ServerRef(ref, draw(settings_of()), draw(FILTERS))


@dataclass(frozen=True)
class World:
    """A catalog with one server under one alias, and three agents with a run each."""

    catalog: Catalog
    runs: tuple[RunRequest, ...]

    def plan(self, number: int = 0, parent: RunPlan | None = None) -> RunPlan | None:
        """The plan of one agent's run, or None when it is refused."""
        run = self.runs[number]
        try:
            return resolve(run.agent_name, self.catalog, run, parent)
        except Refused:
            return None

    def lineage(self) -> list[RunPlan]:
        """The plans of the three runs, each the parent of the next, as far as none is refused."""
        plans: list[RunPlan] = []
        for number in range(len(self.runs)):
            plan = self.plan(number, plans[-1] if plans else None)
            if plan is None:
                break
            plans.append(plan)
        return plans


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Any world."""
    entry = ServerEntry(
        MCPServer.http("s", "http://localhost:1/mcp", tools=draw(FILTERS)),
        header_schema=SCHEMAS,
        default_headers=draw(settings_of(most=5)),
        known_tools=TOOLS,
    )
    capabilities = [Capability(name, servers={"s": draw(_uses(bare=False))}) for name in ("c", "d")]
    agents: list[Agent] = []
    runs: list[RunRequest] = []
    for name in ("root", "child", "grandchild"):
        has = tuple(draw(st.lists(st.sampled_from("cd"), max_size=2, unique=True)))
        use = draw(_uses(bare=bool(has)))
        agents.append(Agent(name, capabilities=has, servers={"s": use}, rules=tuple(draw(st.lists(RULES, max_size=2)))))
        headers = draw(settings_of(most=2))
        runs.append(RunRequest(name, mcp_headers={"s": headers} if headers else {}, session_id=f"session-of-{name}"))
    return World(Catalog.of([entry], capabilities, agents), tuple(runs))
