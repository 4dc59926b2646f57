"""What did not answer, or not as it should: Unavailable, and McpError for the library's users."""

from __future__ import annotations

from collections.abc import Mapping

from outfitter.errors.root import OutfitterError


class McpError(OutfitterError):
    """What went wrong with an MCP server, for code that uses the library."""

    code = "mcp_error"


class McpConnectionError(McpError):
    """A server could not be connected, or is not connected yet."""

    code = "mcp_connection"

    def __init__(self, message: str, *, server_name: str = "", transport: object = None, hint: str = "") -> None:
        """Say which server, and how it would be reached."""
        super().__init__(message, where=f"server '{server_name}'" if server_name else "", hint=hint)
        self.server_name = server_name
        self.transport = transport


class McpToolError(McpError):
    """A tool could not be called; ``rpc_error`` is what the server said, if it said something."""

    code = "mcp_tool"

    def __init__(
        self, message: str, *, server_name: str, tool_name: str, rpc_error: Mapping[str, object] | None = None
    ) -> None:
        """Say which tool of which server."""
        super().__init__(message, where=f"server '{server_name}', tool '{tool_name}'")
        self.server_name = server_name
        self.tool_name = tool_name
        self.rpc_error = rpc_error


class McpTimeoutError(McpError):
    """An operation took longer than ``timeout`` seconds."""

    code = "mcp_timeout"

    def __init__(self, message: str, *, server_name: str, timeout: float) -> None:
        """Say which server, and how long it had."""
        super().__init__(message, where=f"server '{server_name}'")
        self.server_name = server_name
        self.timeout = timeout


class McpSchemaError(McpError):
    """A tool's schema is invalid or not supported; only that tool is left out."""

    code = "mcp_schema"

    def __init__(self, message: str, *, server_name: str, tool_name: str, reason: str = "") -> None:
        """Say which tool of which server, and what is wrong with its schema."""
        super().__init__(message, where=f"server '{server_name}', tool '{tool_name}'")
        self.server_name = server_name
        self.tool_name = tool_name
        self.reason = reason or message


class Unavailable(OutfitterError):
    """Something outside Outfitter did not answer."""

    code = "unavailable"


class SecretUnavailable(Unavailable):
    """A secret provider cannot be used here."""

    code = "secret_unavailable"


class StorageUnavailable(Unavailable):
    """The catalog folder cannot be read or written."""

    code = "storage_unavailable"


class SpawnFailed(Unavailable):
    """The program of a stdio server could not be started."""

    code = "spawn_failed"


class UpstreamLost(Unavailable):
    """The connection or process is gone; ``may_have_run`` says whether the server may have carried the request out."""

    code = "upstream_lost"
    retry_after: float = 0.0
    """In how many seconds the server is tried again; 0 where the next request tries it."""

    def __init__(self, message: str, *, may_have_run: bool = False, where: str = "", hint: str = "") -> None:
        """Keep apart what certainly was not executed: only that may be repeated."""
        super().__init__(message, where=where, hint=hint)
        self.may_have_run = may_have_run


class UpstreamTimeout(Unavailable):
    """The server did not answer within a time limit."""

    code = "upstream_timeout"


class UpstreamError(Unavailable):
    """The server answered a request with a JSON-RPC error."""

    code = "upstream_error"

    def __init__(self, message: str, *, rpc_code: int, data: object = None, where: str = "") -> None:
        """Keep the error as the server gave it."""
        super().__init__(message, where=where)
        self.rpc_code = rpc_code
        self.data = data


class ProtocolViolation(Unavailable):
    """The server said something that is not MCP; the message quotes its beginning."""

    code = "protocol_violation"


class NeedsAuth(Unavailable):
    """The server wants other credentials than it was given."""

    code = "needs_auth"
    retry_after: float = 0.0
    """In how many seconds the server is tried again; 0 where the next request tries it."""


class UpstreamDown(Unavailable):
    """The server failed and is not tried again yet; ``retry_after`` says in how many seconds it will be."""

    code = "upstream_down"

    def __init__(self, message: str, *, retry_after: float, where: str = "", reason: str = "") -> None:
        """Say when it makes sense to ask again; ``reason`` is why it failed, where the message says more than that."""
        super().__init__(message, where=where)
        self.retry_after = retry_after
        self.reason = reason or message
