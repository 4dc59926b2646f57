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
    "MAX_TOTAL_BYTES",
    "MAX_VALUE_BYTES",
    "NOTHING_KEPT",
    "NO_AUTH",
    "Agent",
    "Auth",
    "Auth0M2M",
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
    "NameMap",
    "NoAuth",
    "RecordRule",
    "RemoteTransport",
    "RunRequest",
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
    "ToolRule",
    "Transport",
    "build_name_map",
    "json_text",
    "name_fault",
    "text_fault",
    "type_fault",
    "url_fault",
]
