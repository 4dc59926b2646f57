"""Any entry, capability, agent and catalog that can be written: what the round trips are tried with."""

from __future__ import annotations

from hypothesis import strategies as st

from outfitter.basics import SecretRef
from outfitter.catalog import (
    NO_AUTH,
    Agent,
    Auth,
    Auth0M2M,
    Budget,
    Budgets,
    Capability,
    ClientCredentials,
    Effect,
    HeaderSchema,
    HeaderSetting,
    HeaderSettings,
    HeaderType,
    InlineServer,
    JsonValue,
    MCPServer,
    Measure,
    Period,
    PinMode,
    RecordRule,
    SearchMode,
    ServerEntry,
    ServerRef,
    ServerUse,
    SseTransport,
    StdioTransport,
    StreamableHttpTransport,
    TimeLimits,
    ToolFilter,
    ToolOverride,
    ToolRule,
    ToolSearch,
)

NAMES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,8}", fullmatch=True).filter(lambda n: n != "wink" and n[:5] != "wink-")
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
_WORDS = st.from_regex(r"[!-~]([ -~]{0,10}[!-~])?", fullmatch=True)
_REFS = st.builds(SecretRef, NAMES, st.sampled_from(["default", "env", "file"]))
_HEADER_NAMES = st.sampled_from(["X-Scope", "X-Key", "authorization", "X-A", "x-b.c"])
_JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
_SETTING: st.SearchStrategy[HeaderSetting] = st.one_of(
    _WORDS, st.integers(-5, 5), st.booleans(), _REFS, st.dictionaries(NAMES, _JSON, max_size=2), st.none()
)
SETTINGS: st.SearchStrategy[HeaderSettings] = st.dictionaries(_HEADER_NAMES, _SETTING, max_size=3)
_PATTERNS = st.lists(st.sampled_from(["get_*", "a", "b c", "[x]", "*"]), max_size=3).map(tuple)
FILTERS = st.builds(ToolFilter, st.none() | _PATTERNS, _PATTERNS).filter(lambda f: not f.is_open or f == ToolFilter())
_LIMITS = st.builds(
    TimeLimits.of,
    st.none() | st.sampled_from([0.5, 30.0, 400.0]),
    st.none() | st.sampled_from([1.0, 30.0]),
    st.none() | st.sampled_from([500.0, 900.0]),
)
_TRANSPORTS = st.one_of(
    st.builds(StdioTransport, st.just("npx"), st.lists(TEXTS, max_size=2).map(tuple), st.none() | st.just("sub dir")),
    st.builds(SseTransport, st.sampled_from(["http://h/sse", "${URL}"])),
    st.builds(StreamableHttpTransport, st.sampled_from(["http://h/mcp", "https://[::1]:1/x?y=1", "http://${H}/m"])),
)
_REMOTES = _TRANSPORTS.filter(lambda transport: not isinstance(transport, StdioTransport))


@st.composite
def servers(draw: st.DrawFn, name: str, *, remote: bool = False) -> MCPServer:
    """Any connectable definition under this name."""
    return MCPServer(
        name,
        draw(_REMOTES if remote else _TRANSPORTS),
        env=draw(st.dictionaries(st.sampled_from(["A", "B_1"]), TEXTS | _REFS, max_size=2)),
        tools=draw(FILTERS),
        limits=draw(_LIMITS),
        tool_prefix=draw(st.none() | st.sampled_from(["", "p"])),
        description=draw(TEXTS),
        required=draw(st.booleans()),
        shareable=draw(st.booleans()),
        fallback=draw(st.sampled_from(["", "use the `gh` CLI", "say ${HOME} as it is"])),
        pins=draw(st.sampled_from(list(PinMode))),
        trusted=draw(st.booleans()),
    )


_SCHEMAS = st.builds(
    HeaderSchema,
    type=st.sampled_from([HeaderType.STRING, HeaderType.NUMBER, HeaderType.BOOLEAN]),
    description=TEXTS,
    required=st.booleans(),
    sensitive=st.booleans(),
    internal=st.booleans(),
    example=TEXTS,
    locked=st.booleans(),
) | st.builds(HeaderSchema, type=st.just(HeaderType.JSON), merges=st.booleans())
_AUTH: st.SearchStrategy[Auth] = st.one_of(
    st.just(NO_AUTH),
    st.builds(Auth0M2M, TEXTS),
    st.builds(ClientCredentials, TEXTS, TEXTS, TEXTS | _REFS, TEXTS, TEXTS),
)


@st.composite
def entries(draw: st.DrawFn) -> ServerEntry:
    """Any registry entry."""
    server = draw(servers(draw(NAMES), remote=draw(st.booleans())))
    has_headers = server.remote is not None
    return ServerEntry(
        server,
        title=draw(TEXTS),
        header_schema=draw(st.dictionaries(_HEADER_NAMES, _SCHEMAS, max_size=2)) if has_headers else {},
        default_headers=draw(SETTINGS) if has_headers else {},
        auth=draw(_AUTH),
        known_tools=draw(st.none() | st.lists(TEXTS, max_size=2).map(tuple)),
    )


TOOLS = st.sampled_from(["a", "get_x"])
OVERRIDES = st.dictionaries(
    TOOLS,
    st.builds(
        ToolOverride,
        st.none() | TEXTS,
        st.none() | TEXTS,
        st.dictionaries(TEXTS, st.sampled_from([1, "x", [True]]), max_size=2),
        st.lists(TEXTS, max_size=2).map(tuple),
    ),
    max_size=2,
)


@st.composite
def uses(draw: st.DrawFn) -> dict[str, ServerUse]:
    """Any pointers to servers, refs and inline definitions, by alias."""
    found: dict[str, ServerUse] = {}
    for alias in draw(st.lists(NAMES, max_size=3, unique=True)):
        if draw(st.booleans()):
            found[alias] = ServerRef(draw(st.none() | NAMES), draw(SETTINGS), draw(FILTERS), draw(OVERRIDES))
        else:
            server = draw(servers(alias))
            found[alias] = InlineServer(server, draw(SETTINGS) if server.remote else {}, draw(OVERRIDES))
    return found


CAPABILITIES = st.builds(Capability, NAMES, description=TEXTS, text=TEXTS, servers=uses())
RULES = st.builds(
    ToolRule,
    tools=st.just(("a", "get_*")),
    effect=st.sampled_from(list(Effect)),
    server=st.sampled_from(["*", "s"]),
    arguments=st.dictionaries(st.sampled_from(["/path", "/a/*/b"]), st.just(("tests/**", "x")), max_size=2),
    reason=TEXTS,
) | st.builds(
    ToolRule,
    tools=st.just(("a",)),
    effect=st.sampled_from([Effect.ASK, Effect.DENY]),
    unless_read_only=st.just(True),
)
_BUDGETS = st.builds(
    Budget, st.sampled_from(list(Measure)), st.integers(0, 9), st.sampled_from(list(Period)), st.just("s"), TOOLS
) | st.builds(
    Budget,
    st.sampled_from(list(Measure)),
    st.integers(0, 9),
    st.sampled_from(list(Period)),
    st.sampled_from(["", "s"]),
)


def _in_order(limits: list[Budget]) -> tuple[Budget, ...]:
    """As they are read: those of everything first, then of servers, then of tools."""
    names = [f"{measure}_per_{period}" for measure in Measure for period in Period]
    scopes = list(dict.fromkeys(one.scope for one in limits))
    by_scope = sorted(scopes, key=lambda scope: (bool(scope), "/" in scope))
    return tuple(sorted(limits, key=lambda one: (by_scope.index(one.scope), names.index(one.name))))


AGENTS = st.builds(
    Agent,
    NAMES,
    description=TEXTS,
    role=TEXTS,
    system_prompt=TEXTS,
    capabilities=st.lists(NAMES, max_size=2).map(tuple),
    servers=uses(),
    rules=st.lists(RULES, max_size=2).map(tuple),
    budgets=st.builds(
        Budgets,
        st.none() | st.integers(0, 9),
        st.sampled_from([None, 0.5, 100.0]),
        st.none() | st.integers(1, 9),
        st.lists(_BUDGETS, max_size=3, unique_by=lambda one: (one.name, one.scope)).map(_in_order),
    ),
    tool_search=st.builds(ToolSearch, st.sampled_from(list(SearchMode)), st.sampled_from([20_000, 7])),
    result_limit=st.none() | st.integers(1024, 9999),
    records=st.builds(RecordRule, st.booleans(), st.booleans()),
    client_approvals=st.booleans(),
)
