"""What the author of the input, or whoever set the rules, must mend: Invalid, NotFound, Conflict, Forbidden."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from outfitter.errors.root import OutfitterError


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


class SsrfBlocked(InvalidServer):
    """A definition names an address that would be refused when it is connected to."""

    code = "ssrf_blocked"


class InvalidHeader(Invalid):
    """A header name, value or schema breaks the header rules."""

    code = "invalid_header"


class InvalidFilter(Invalid):
    """A tool filter or tool rule is malformed."""

    code = "invalid_filter"


class InvalidRun(Invalid):
    """A run request is malformed."""

    code = "invalid_run"


class InvalidSchema(Invalid):
    """A JSON Schema cannot be used: it is malformed, refers elsewhere, or is too large to be safe."""

    code = "invalid_schema"


class InvalidArguments(Invalid):
    """A value does not fit its schema; ``faults`` are pairs of JSON pointer and message."""

    code = "invalid_arguments"

    def __init__(self, message: str, *, faults: tuple[tuple[str, str], ...] = (), where: str = "") -> None:
        """Keep each fault with the place it was found at."""
        super().__init__(message, where=where)
        self.faults = faults


class InvalidTool(Invalid):
    """A tool's name, description or handler could never be used."""

    code = "invalid_tool"


class PromptValidationError(Invalid):
    """The sections, tools or servers of a prompt do not fit together."""

    code = "invalid_prompt"


class MissingHeader(Invalid):
    """A required header has no value after every level has spoken."""

    code = "missing_header"


class UnresolvedPlaceholder(Invalid):
    """A variable or secret that a definition refers to has no value."""

    code = "unresolved"


class PreconditionRequired(Invalid):
    """A change must name the version that it changes."""

    code = "precondition_required"


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


class UnknownRun(NotFound):
    """No run has this id."""

    code = "unknown_run"


class UnknownSession(NotFound):
    """No session has this id."""

    code = "unknown_session"


class Conflict(OutfitterError):
    """Two definitions cannot both hold."""

    code = "conflict"


class TooManyEvents(Conflict):
    """A run has told as much as is kept of one; it goes on."""

    code = "too_many_events"


class AliasConflict(Conflict):
    """One alias means two different servers."""

    code = "alias_conflict"


class AlreadyExists(Conflict):
    """A definition of this name exists and differs."""

    code = "already_exists"


class NamedEntry(Protocol):
    """An entry of the registry by its kind and id."""

    @property
    def kind(self) -> str:
        """Such as ``agents``."""
        ...

    @property
    def id(self) -> str:
        """Its name among those of its kind."""
        ...


class InUse(Conflict):
    """Others refer to it; ``users`` names them by kind and id."""

    code = "in_use"

    def __init__(self, message: str, *, users: Iterable[NamedEntry], where: str = "", hint: str = "") -> None:
        """Keep who refers to it."""
        super().__init__(message, where=where, hint=hint)
        self.users = tuple(users)


class VersionConflict(Conflict):
    """Someone else has changed it meanwhile; ``current`` is the version it has now, 0 when it does not exist."""

    code = "version_conflict"

    def __init__(self, message: str, *, current: int, where: str = "", hint: str = "") -> None:
        """Say which version stands now."""
        super().__init__(message, where=where, hint=hint)
        self.current = current


class Forbidden(OutfitterError):
    """A rule says no."""

    code = "forbidden"


class NeedsToken(Forbidden):
    """Nobody has said who is asking, or not in a way that holds."""

    code = "needs_token"


class LockedHeader(Forbidden):
    """A later level tried to change or remove a locked header."""

    code = "locked_header"


class InternalHeader(Forbidden):
    """Someone other than the registry tried to set a header that the framework fills."""

    code = "internal_header"


class NarrowedHeader(Forbidden):
    """A later level tried to leave the list that an earlier one allowed."""

    code = "narrowed_header"


class CallDenied(Forbidden):
    """A filter or a rule of the agent refuses this tool call."""

    code = "call_denied"


class DestinationForbidden(Forbidden):
    """The address, after name resolution, is one that no server may have."""

    code = "destination_forbidden"


class CommandForbidden(Forbidden):
    """The program, an argument or a variable is one that no server may be started with."""

    code = "command_forbidden"


class NotApproved(CommandForbidden):
    """The command of a server was not approved by an admin, or has changed since."""

    code = "not_approved"
