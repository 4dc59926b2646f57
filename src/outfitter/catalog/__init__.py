"""WHAT EXISTS: servers, headers, tools, agents, runs. Values that cannot be wrong, no I/O.

Neighbours: ``formats`` reads files into these, ``resolution`` decides what a run gets of them.
"""

from outfitter.catalog.agents import (
    NOTHING_KEPT,
    Agent,
    Capability,
    InlineServer,
    RecordRule,
    ServerRef,
    ServerUse,
    ServerUses,
)
from outfitter.catalog.budgets import NO_BUDGETS, Budget, Budgets, Measure, Period
from outfitter.catalog.catalog import Catalog
from outfitter.catalog.entries import NO_AUTH, Auth, Auth0M2M, ClientCredentials, NoAuth, ServerEntry
from outfitter.catalog.executors import EXECUTORS, Executor, ExecutorType
from outfitter.catalog.headers import (
    MAX_TOTAL_BYTES,
    MAX_VALUE_BYTES,
    HeaderSchema,
    HeaderSetting,
    HeaderSettings,
    HeaderType,
    JsonValue,
    json_text,
    name_fault,
    text_fault,
    type_fault,
)
from outfitter.catalog.limits import TimeLimits
from outfitter.catalog.naming import NameMap, ToolKey, build_name_map
from outfitter.catalog.overrides import ToolOverride
from outfitter.catalog.overriding import apply_override, complete_arguments, hidden_given, rewrites
from outfitter.catalog.presence import LISTED, PinMode, SearchMode, ToolSearch
from outfitter.catalog.runs import RunRequest
from outfitter.catalog.servers import EnvValue, MCPServer
from outfitter.catalog.tools import ALL_TOOLS, Effect, ToolFilter, ToolRule
from outfitter.catalog.transports import (
    RemoteTransport,
    SseTransport,
    StdioTransport,
    StreamableHttpTransport,
    Transport,
    url_fault,
)

__all__ = [
    "ALL_TOOLS",
    "EXECUTORS",
    "LISTED",
    "MAX_TOTAL_BYTES",
    "MAX_VALUE_BYTES",
    "NOTHING_KEPT",
    "NO_AUTH",
    "NO_BUDGETS",
    "Agent",
    "Auth",
    "Auth0M2M",
    "Budget",
    "Budgets",
    "Capability",
    "Catalog",
    "ClientCredentials",
    "Effect",
    "EnvValue",
    "Executor",
    "ExecutorType",
    "HeaderSchema",
    "HeaderSetting",
    "HeaderSettings",
    "HeaderType",
    "InlineServer",
    "JsonValue",
    "MCPServer",
    "Measure",
    "NameMap",
    "NoAuth",
    "Period",
    "PinMode",
    "RecordRule",
    "RemoteTransport",
    "RunRequest",
    "SearchMode",
    "ServerEntry",
    "ServerRef",
    "ServerUse",
    "ServerUses",
    "SseTransport",
    "StdioTransport",
    "StreamableHttpTransport",
    "TimeLimits",
    "ToolFilter",
    "ToolKey",
    "ToolOverride",
    "ToolRule",
    "ToolSearch",
    "Transport",
    "apply_override",
    "build_name_map",
    "complete_arguments",
    "hidden_given",
    "json_text",
    "name_fault",
    "rewrites",
    "text_fault",
    "type_fault",
    "url_fault",
]
