"""What can go wrong, sorted by who must act.

Every error has a stable ``code`` (for programs), a message that says what is wrong and where, and a ``hint`` that says
what to do. What a model should hear is an Outcome, not one of these. No message ever holds a secret value.

    OutfitterError
    ├── Invalid                 the author of the input must correct it
    │   ├── InvalidDocument         a file's syntax or shape (source, line, path)
    │   ├── InvalidName             a server, alias, agent or tool name
    │   ├── InvalidServer           a definition that could never be connected
    │   ├── InvalidHeader           a header name, value or schema
    │   ├── InvalidFilter           a tool filter or tool rule
    │   ├── InvalidRun              a run request
    │   ├── MissingHeader           a required header has no value after resolution
    │   ├── UnresolvedPlaceholder   a variable or secret has no value when arming
    │   └── Refused                 several of these at once (problems)
    ├── NotFound                the name is not known here
    │   ├── UnknownAgent
    │   ├── UnknownCapability
    │   ├── UnknownServer           also a stale ``ref``
    │   └── UnknownAlias
    ├── Conflict                two definitions cannot both hold
    │   ├── AliasConflict
    │   └── AlreadyExists
    ├── Forbidden               a rule says no
    │   ├── LockedHeader
    │   ├── InternalHeader
    │   ├── NarrowedHeader
    │   ├── CallDenied              a filter or rule refuses a tool call
    │   ├── DestinationForbidden    an address that no server may have
    │   └── CommandForbidden        a program or variable that no server may start with
    └── Unavailable             something outside did not answer
        ├── SecretUnavailable
        ├── StorageUnavailable
        ├── SpawnFailed             the program of a stdio server could not be started
        ├── UpstreamLost            the connection or process is gone (may_have_run)
        ├── UpstreamTimeout         no answer within a time limit
        ├── UpstreamError           the server answered with a JSON-RPC error (rpc_code, data)
        ├── ProtocolViolation       the server said something that is not MCP
        ├── NeedsAuth               the server wants other credentials
        └── UpstreamDown            not tried again yet (retry_after)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Self


class OutfitterError(Exception):
    """The root: catch this to catch everything Outfitter raises on purpose."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        """Keep the parts apart, so that each door can lay them out its own way."""
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.trail: tuple[str | int, ...] = ()

    def under(self, *keys: str | int) -> Self:
        """The same error, found deeper: readers add the keys they came through while it rises."""
        self.trail = (*keys, *self.trail)
        return self

    def locate(self, source: str, line: int | None, path: str) -> None:
        """Say in which file, at which line and JSON pointer it was found."""
        place = source if line is None else f"{source}:{line}"
        self.where = f"{place} at {path}" if path else place

    def __str__(self) -> str:
        """Say where, what, and what to do, on one line."""
        start = f"{self.where}: " if self.where else ""
        end = f" ({self.hint})" if self.hint else ""
        return f"{start}{self.message}{end}"


class Invalid(OutfitterError, ValueError):
    """The author of the input must correct it; a ValueError too."""

    code = "invalid"


class InvalidDocument(Invalid):
    """A file cannot be read as what it should be."""

    code = "invalid_document"

    def __init__(self, message: str, *, source: str, line: int | None = None, path: str = "", hint: str = "") -> None:
        """Point at the file, the line where it is known, and the JSON pointer inside it."""
        super().__init__(message, hint=hint)
        self.locate(source, line, path)

    def locate(self, source: str, line: int | None, path: str) -> None:
        """Keep the parts of the place for programs too."""
        self.source = source
        self.line = line
        self.path = path
        super().locate(source, line, path)


class InvalidName(Invalid):
    """A name does not follow the rules for names."""

    code = "invalid_name"


class InvalidServer(Invalid):
    """A server definition could never be connected."""

    code = "invalid_server"


class InvalidHeader(Invalid):
    """A header name, value or schema breaks the header rules."""

    code = "invalid_header"


class InvalidFilter(Invalid):
    """A tool filter or tool rule is malformed."""

    code = "invalid_filter"


class InvalidRun(Invalid):
    """A run request is malformed."""

    code = "invalid_run"


class MissingHeader(Invalid):
    """A required header has no value after every level has spoken."""

    code = "missing_header"


class UnresolvedPlaceholder(Invalid):
    """A variable or secret that a definition refers to has no value."""

    code = "unresolved"


class Refused(Invalid):
    """Several problems, told together so that they can be mended together."""

    code = "refused"

    def __init__(self, message: str, problems: Iterable[OutfitterError], *, where: str = "") -> None:
        """Keep every problem as the error it is."""
        self.problems: tuple[OutfitterError, ...] = tuple(problems)
        super().__init__(message, where=where)

    def __str__(self) -> str:
        """Say each problem on a line of its own."""
        return "\n".join([super().__str__(), *(f"  - [{problem.code}] {problem}" for problem in self.problems)])


class NotFound(OutfitterError, LookupError):
    """The name is not known here; a LookupError too."""

    code = "not_found"


class UnknownAgent(NotFound):
    """No agent has this name."""

    code = "unknown_agent"


class UnknownCapability(NotFound):
    """No capability has this name."""

    code = "unknown_capability"


class UnknownServer(NotFound):
    """No registry entry has this id; a ``ref`` to it is stale."""

    code = "missing_ref"


class UnknownAlias(NotFound):
    """The agent has no server under this alias."""

    code = "unknown_alias"


class Conflict(OutfitterError):
    """Two definitions cannot both hold."""

    code = "conflict"


class AliasConflict(Conflict):
    """One alias means two different servers."""

    code = "alias_conflict"


class AlreadyExists(Conflict):
    """A definition of this name exists and differs."""

    code = "already_exists"


class Forbidden(OutfitterError):
    """A rule says no."""

    code = "forbidden"


class LockedHeader(Forbidden):
    """A later level tried to change or remove a locked header."""

    code = "locked_header"


class InternalHeader(Forbidden):
    """Someone other than the registry tried to set a header that the framework fills."""

    code = "internal_header"


class NarrowedHeader(Forbidden):
    """A later level tried to leave the list that an earlier one allowed."""

    code = "narrowed_header"


class Unavailable(OutfitterError):
    """Something outside Outfitter did not answer."""

    code = "unavailable"


class SecretUnavailable(Unavailable):
    """A secret provider cannot be used here."""

    code = "secret_unavailable"


class StorageUnavailable(Unavailable):
    """The catalog folder cannot be read or written."""

    code = "storage_unavailable"


class CallDenied(Forbidden):
    """A filter or a rule of the agent refuses this tool call."""

    code = "call_denied"


class DestinationForbidden(Forbidden):
    """The address, after name resolution, is one that no server may have."""

    code = "destination_forbidden"


class CommandForbidden(Forbidden):
    """The program, an argument or a variable is one that no server may be started with."""

    code = "command_forbidden"


class SpawnFailed(Unavailable):
    """The program of a stdio server could not be started."""

    code = "spawn_failed"


class UpstreamLost(Unavailable):
    """The connection or process is gone; ``may_have_run`` says whether the server may have carried the request out."""

    code = "upstream_lost"

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


class UpstreamDown(Unavailable):
    """The server failed and is not tried again yet; ``retry_after`` says in how many seconds it will be."""

    code = "upstream_down"

    def __init__(self, message: str, *, retry_after: float, where: str = "") -> None:
        """Say when it makes sense to ask again."""
        super().__init__(message, where=where)
        self.retry_after = retry_after
