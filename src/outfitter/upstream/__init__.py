"""The wire: links to MCP servers, their lifecycle, who shares them, and where secrets come from.

The one place where Outfitter talks to servers. Names are loaded from their file when they are first used: looking up a
secret must not load an HTTP client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outfitter.upstream.arming import arm_servers
    from outfitter.upstream.authorizer import Authorizer
    from outfitter.upstream.begun import BEGUN, Begun
    from outfitter.upstream.clock import loop_time
    from outfitter.upstream.commands import inline_code_fault, secret_argument, secret_variables
    from outfitter.upstream.connection import Connection
    from outfitter.upstream.eras import (
        Agreement,
        Era,
        Identity,
        header_text,
        mirrored_parameters,
        parameter_headers,
        routing_headers,
        stamp,
    )
    from outfitter.upstream.events import EventParser, ServerEvent
    from outfitter.upstream.fetching import fetch_document, find_document
    from outfitter.upstream.guard import Guard
    from outfitter.upstream.http import HttpWire, open_http_wire
    from outfitter.upstream.http_client import AuthWanted, HttpClient, HttpLimits, StatusRefused
    from outfitter.upstream.journal import ProcessJournal
    from outfitter.upstream.launch import Launch, SpawnRules, prepare_launch
    from outfitter.upstream.lifecycle import TABLE, Happening, Health, Patience, State
    from outfitter.upstream.link import Link, open_link
    from outfitter.upstream.negotiation import negotiate
    from outfitter.upstream.oauth import ClientCredentialsAuthorizer
    from outfitter.upstream.peers import Attendant, Peer
    from outfitter.upstream.pool import Pool, connect_all, require, share_key
    from outfitter.upstream.portal import SyncPool
    from outfitter.upstream.processes import StopTimes
    from outfitter.upstream.programs import PackageUnpinned, ProgramChanged, ProgramRegister
    from outfitter.upstream.resolver import GuardedResolver
    from outfitter.upstream.secrets import (
        DefaultSecrets,
        EnvironmentSecrets,
        FileSecrets,
        KeyringSecrets,
        SecretProvider,
        VaultSecrets,
        fetch_each,
        fetch_supply,
        is_kept,
        make_providers,
        provider_of,
        secrets_folder,
    )
    from outfitter.upstream.sse import SseWire, open_sse_wire
    from outfitter.upstream.stdio import StdioLimits, StdioWire, open_stdio_wire
    from outfitter.upstream.uptime import Standing, Uptime
    from outfitter.upstream.wire import STREAM_CLOSED, Inbox, Message, SessionLost, Wire

_FILES = {
    "arming": ("arm_servers",),
    "authorizer": ("Authorizer",),
    "begun": ("BEGUN", "Begun"),
    "clock": ("loop_time",),
    "commands": ("inline_code_fault", "secret_argument", "secret_variables"),
    "connection": ("Connection",),
    "eras": (
        "Agreement", "Era", "Identity", "header_text", "mirrored_parameters", "parameter_headers", "routing_headers",
        "stamp",
    ),
    "events": ("EventParser", "ServerEvent"),
    "fetching": ("fetch_document", "find_document"),
    "guard": ("Guard",),
    "http": ("HttpWire", "open_http_wire"),
    "http_client": ("AuthWanted", "HttpClient", "HttpLimits", "StatusRefused"),
    "journal": ("ProcessJournal",),
    "launch": ("Launch", "SpawnRules", "prepare_launch",),
    "processes": ("StopTimes",),
    "stdio": ("StdioLimits", "StdioWire", "open_stdio_wire",),
    "lifecycle": ("TABLE", "Happening", "Health", "Patience", "State"),
    "link": ("Link", "open_link"),
    "negotiation": ("negotiate",),
    "oauth": ("ClientCredentialsAuthorizer",),
    "peers": ("Attendant", "Peer"),
    "pool": ("Pool", "connect_all", "require", "share_key"),
    "portal": ("SyncPool",),
    "programs": ("PackageUnpinned", "ProgramChanged", "ProgramRegister"),
    "resolver": ("GuardedResolver",),
    "secrets": (
        "DefaultSecrets", "EnvironmentSecrets", "FileSecrets", "KeyringSecrets", "SecretProvider",
        "VaultSecrets", "fetch_each", "fetch_supply", "is_kept",
        "make_providers", "provider_of", "secrets_folder",
    ),
    "sse": ("SseWire", "open_sse_wire"),
    "uptime": ("Standing", "Uptime"),
    "wire": ("STREAM_CLOSED", "Inbox", "Message", "SessionLost", "Wire"),
}  # fmt: skip

__all__ = [
    "BEGUN",
    "STREAM_CLOSED",
    "TABLE",
    "Agreement",
    "Attendant",
    "AuthWanted",
    "Authorizer",
    "Begun",
    "ClientCredentialsAuthorizer",
    "Connection",
    "DefaultSecrets",
    "EnvironmentSecrets",
    "Era",
    "EventParser",
    "FileSecrets",
    "Guard",
    "GuardedResolver",
    "Happening",
    "Health",
    "HttpClient",
    "HttpLimits",
    "HttpWire",
    "Identity",
    "Inbox",
    "KeyringSecrets",
    "Launch",
    "Link",
    "Message",
    "PackageUnpinned",
    "Patience",
    "Peer",
    "Pool",
    "ProcessJournal",
    "ProgramChanged",
    "ProgramRegister",
    "SecretProvider",
    "ServerEvent",
    "SessionLost",
    "SpawnRules",
    "SseWire",
    "Standing",
    "State",
    "StatusRefused",
    "StdioLimits",
    "StdioWire",
    "StopTimes",
    "SyncPool",
    "Uptime",
    "VaultSecrets",
    "Wire",
    "arm_servers",
    "connect_all",
    "fetch_document",
    "fetch_each",
    "fetch_supply",
    "find_document",
    "header_text",
    "inline_code_fault",
    "is_kept",
    "loop_time",
    "make_providers",
    "mirrored_parameters",
    "negotiate",
    "open_http_wire",
    "open_link",
    "open_sse_wire",
    "open_stdio_wire",
    "parameter_headers",
    "prepare_launch",
    "provider_of",
    "require",
    "routing_headers",
    "secret_argument",
    "secret_variables",
    "secrets_folder",
    "share_key",
    "stamp",
]


def __getattr__(name: str) -> object:
    """Load a name from its file on first use."""
    from importlib import import_module

    for file, names in _FILES.items():
        if name in names:
            value = getattr(import_module(f"outfitter.upstream.{file}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'outfitter.upstream' has no attribute '{name}'")
