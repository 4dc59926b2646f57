"""What can go wrong, sorted by who must act.

Every error has a stable ``code`` (for programs), a message that says what is wrong and where, and a ``hint`` that says
what to do. What a model should hear is an Outcome, not one of these. No message ever holds a secret value.

    OutfitterError
    ├── Invalid                 the author of the input must correct it
    │   ├── InvalidDocument         a file's syntax or shape (source, line, path)
    │   ├── InvalidName             a server, alias, agent or tool name
    │   ├── InvalidServer           a definition that could never be connected
    │   │   └── SsrfBlocked             an address that would be refused when it is connected to
    │   ├── InvalidHeader           a header name, value or schema
    │   ├── InvalidFilter           a tool filter or tool rule
    │   ├── InvalidRun              a run request
    │   ├── InvalidSchema           a JSON Schema that cannot be used
    │   ├── InvalidArguments        a value that does not fit its schema (faults)
    │   ├── InvalidTool             a tool that could never be called
    │   ├── PromptValidationError   a prompt whose sections do not fit together
    │   ├── MissingHeader           a required header has no value after resolution
    │   ├── PreconditionRequired    a change that does not name the version it changes
    │   ├── UnresolvedPlaceholder   a variable or secret has no value when arming
    │   └── Refused                 several of these at once (problems)
    ├── NotFound                the name is not known here
    │   ├── UnknownAgent
    │   ├── UnknownCapability
    │   ├── UnknownServer           also a stale ``ref``
    │   ├── UnknownAlias
    │   ├── UnknownRun
    │   └── UnknownSession
    ├── Conflict                two definitions cannot both hold
    │   ├── AliasConflict
    │   ├── TooManyEvents           a run has told as much as is kept of one
    │   ├── AlreadyExists
    │   ├── InUse                   others refer to it (users)
    │   └── VersionConflict         someone else has changed it meanwhile (current)
    ├── Forbidden               a rule says no
    │   ├── NeedsToken              nobody has said who is asking
    │   ├── LockedHeader
    │   ├── InternalHeader
    │   ├── NarrowedHeader
    │   ├── CallDenied              a filter or rule refuses a tool call
    │   ├── DestinationForbidden    an address that no server may have
    │   └── CommandForbidden        a program or variable that no server may start with
    │       └── NotApproved             a command that no admin has approved
    ├── McpError                an MCP server, as the library's user meets it
    │   ├── McpConnectionError      it could not be connected, or is not connected (server_name, transport)
    │   ├── McpToolError            its tool could not be called (server_name, tool_name, rpc_error)
    │   ├── McpTimeoutError         it took too long (server_name, timeout)
    │   └── McpSchemaError          its tool has a schema that cannot be used (server_name, tool_name, reason)
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

from outfitter.errors.inside import (
    AliasConflict,
    AlreadyExists,
    CallDenied,
    CommandForbidden,
    Conflict,
    DestinationForbidden,
    Forbidden,
    InternalHeader,
    InUse,
    Invalid,
    InvalidArguments,
    InvalidDocument,
    InvalidFilter,
    InvalidHeader,
    InvalidName,
    InvalidRun,
    InvalidSchema,
    InvalidServer,
    InvalidTool,
    LockedHeader,
    MissingHeader,
    NarrowedHeader,
    NeedsToken,
    NotApproved,
    NotFound,
    PreconditionRequired,
    PromptValidationError,
    Refused,
    SsrfBlocked,
    TooManyEvents,
    UnknownAgent,
    UnknownAlias,
    UnknownCapability,
    UnknownRun,
    UnknownServer,
    UnknownSession,
    UnresolvedPlaceholder,
    VersionConflict,
)
from outfitter.errors.outside import (
    McpConnectionError,
    McpError,
    McpSchemaError,
    McpTimeoutError,
    McpToolError,
    NeedsAuth,
    ProtocolViolation,
    SecretUnavailable,
    SpawnFailed,
    StorageUnavailable,
    Unavailable,
    UpstreamDown,
    UpstreamError,
    UpstreamLost,
    UpstreamTimeout,
)
from outfitter.errors.root import (
    OutfitterError,
)

__all__ = [
    "AliasConflict",
    "AlreadyExists",
    "CallDenied",
    "CommandForbidden",
    "Conflict",
    "DestinationForbidden",
    "Forbidden",
    "InUse",
    "InternalHeader",
    "Invalid",
    "InvalidArguments",
    "InvalidDocument",
    "InvalidFilter",
    "InvalidHeader",
    "InvalidName",
    "InvalidRun",
    "InvalidSchema",
    "InvalidServer",
    "InvalidTool",
    "LockedHeader",
    "McpConnectionError",
    "McpError",
    "McpSchemaError",
    "McpTimeoutError",
    "McpToolError",
    "MissingHeader",
    "NarrowedHeader",
    "NeedsAuth",
    "NeedsToken",
    "NotApproved",
    "NotFound",
    "OutfitterError",
    "PreconditionRequired",
    "PromptValidationError",
    "ProtocolViolation",
    "Refused",
    "SecretUnavailable",
    "SpawnFailed",
    "SsrfBlocked",
    "StorageUnavailable",
    "TooManyEvents",
    "Unavailable",
    "UnknownAgent",
    "UnknownAlias",
    "UnknownCapability",
    "UnknownRun",
    "UnknownServer",
    "UnknownSession",
    "UnresolvedPlaceholder",
    "UpstreamDown",
    "UpstreamError",
    "UpstreamLost",
    "UpstreamTimeout",
    "VersionConflict",
]
