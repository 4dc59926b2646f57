"""From blank to armed: which values a plan still wants, and the plan with them filled in.

Pure: ``wants_of`` says what is needed, the caller fetches it (``upstream`` has the providers), ``arm`` fills it in,
once, and checks the result again. An armed plan is another type; everything filled in it is a Secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from outfitter.basics import Origin, Secret, SecretRef
from outfitter.catalog import (
    MAX_TOTAL_BYTES,
    NO_AUTH,
    Auth0M2M,
    ClientCredentials,
    HeaderSchema,
    NoAuth,
    SseTransport,
    StdioTransport,
    text_fault,
    type_fault,
    url_fault,
)
from outfitter.errors import (
    InvalidHeader,
    InvalidServer,
    NotApproved,
    OutfitterError,
    Refused,
    UnresolvedPlaceholder,
)
from outfitter.resolution.chain import missing_problem
from outfitter.resolution.filling import Need, Supply, fill_value, needs_of
from outfitter.resolution.placeholders import ORCHESTRATOR_URL, RuntimeValue, parse_template
from outfitter.resolution.plan import PlannedServer, RunPlan
from outfitter.resolution.values import HeaderValue, Plain

_AUTH_FIELDS = ("token_url", "client_id", "client_secret", "scope", "audience")


@dataclass(frozen=True, slots=True)
class Want:
    """One value that is not known yet: what, for which server, where in its definition, written by whom."""

    need: Need
    server: str
    place: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class ArmedStdio:
    """A program to start, its environment as secrets."""

    command: Secret
    args: tuple[Secret, ...]
    cwd: Secret | None
    env: Mapping[str, Secret]


@dataclass(frozen=True, slots=True)
class ArmedRemote:
    """An endpoint to connect to, its headers as secrets."""

    url: Secret
    headers: Mapping[str, Secret]
    is_sse: bool


@dataclass(frozen=True, slots=True)
class ArmedCredentials:
    """What is needed to fetch a token."""

    token_url: Secret
    client_id: Secret
    client_secret: Secret
    scope: Secret
    audience: Secret


@dataclass(frozen=True, slots=True)
class ArmedServer:
    """A server that can be connected: the only thing that opens a connection takes one of these."""

    planned: PlannedServer
    transport: ArmedStdio | ArmedRemote
    auth: ArmedCredentials | NoAuth


@dataclass(frozen=True, slots=True)
class ArmedPlan:
    """A run's servers with every secret filled in."""

    plan: RunPlan
    servers: Mapping[str, ArmedServer]


@dataclass(frozen=True, slots=True)
class _Slot:
    """One place of a server's definition that may hold something to fill."""

    place: str
    origin: Origin
    value: HeaderValue


def _slots(server: PlannedServer) -> Iterator[_Slot]:
    definition, origin = server.definition.value, server.definition.origin
    if isinstance(definition.transport, StdioTransport):
        transport = definition.transport
        yield _Slot("command", origin, Plain(transport.command, authored=True))
        for index, arg in enumerate(transport.args):
            yield _Slot(f"args/{index}", origin, Plain(arg, authored=True))
        if transport.cwd is not None:
            yield _Slot("cwd", origin, Plain(transport.cwd, authored=True))
    else:
        yield _Slot("url", origin, Plain(definition.transport.url, authored=True))
    for name, value in definition.env.items():
        yield _Slot(f"env/{name}", origin, Plain(value, authored=True))
    for name, header in server.headers.items():
        yield _Slot(f"headers/{name}", header.origin, header.value)
    auth = _sign_in(server)
    if isinstance(auth, ClientCredentials):
        for name in _AUTH_FIELDS:
            yield _Slot(f"auth/{name}", origin, Plain(getattr(auth, name), authored=True))


def _sign_in(server: PlannedServer) -> ClientCredentials | NoAuth:
    """How whoever connects signs in. The runner's own server lets in whoever knows its URL: it signs in elsewhere."""
    if not isinstance(server.auth, Auth0M2M):
        return server.auth
    remote = server.definition.value.remote
    is_own = remote is not None and RuntimeValue(ORCHESTRATOR_URL) in parse_template(remote.url)
    return NO_AUTH if is_own else server.auth.as_credentials()


def wants_of(plan: RunPlan) -> tuple[Want, ...]:
    """Everything the plan's placeholders and references ask for, in a stable order."""
    return tuple(want for server in plan.servers.values() for want in server_wants(server))


def server_wants(server: PlannedServer) -> tuple[Want, ...]:
    """What one server's definition asks for; UnresolvedPlaceholder says where one is malformed."""
    return tuple(
        Want(need, server.alias, slot.place, origin) for slot in _slots(server) for need, origin in _needs(server, slot)
    )


def _needs(server: PlannedServer, slot: _Slot) -> tuple[tuple[Need, Origin], ...]:
    try:
        return tuple(needs_of(slot.value, slot.origin))
    except UnresolvedPlaceholder as error:
        error.where = f"server '{server.alias}', {slot.place}, from {slot.origin}"
        raise


def arm_each(plan: RunPlan, supply: Supply) -> dict[str, ArmedServer | OutfitterError]:
    """Every server that can be armed, and the error of each that cannot: one missing secret stops one server."""
    armed: dict[str, ArmedServer | OutfitterError] = {}
    for alias, server in plan.servers.items():
        try:
            missing = [unresolved(want) for want in server_wants(server) if supply.find(want.need) is None]
            if missing:
                raise missing[0] if len(missing) == 1 else Refused(f"server '{alias}' cannot be armed", missing)
            armed[alias] = _arm_server(server, supply)
        except OutfitterError as error:
            armed[alias] = error
    return armed


def arm(plan: RunPlan, supply: Supply) -> ArmedPlan:
    """The plan with everything filled in; Refused, naming each value that is missing or unfit, otherwise."""
    problems = [problem for server in plan.servers.values() for problem in _unfilled(server, supply)]
    servers: dict[str, ArmedServer] = {}
    if not problems:
        for alias, server in plan.servers.items():
            try:
                servers[alias] = _arm_server(server, supply)
            except OutfitterError as problem:
                problems.append(problem)
    if problems:
        raise Refused(f"agent '{plan.agent.name}' cannot be armed", problems, where=plan.agent.source)
    return ArmedPlan(plan, servers)


def _unfilled(server: PlannedServer, supply: Supply) -> list[OutfitterError]:
    try:
        return [unresolved(want) for want in server_wants(server) if supply.find(want.need) is None]
    except UnresolvedPlaceholder as malformed:
        return [malformed]


def unresolved(want: Want) -> UnresolvedPlaceholder:
    """The error for a want that nothing fills: it names the variable or secret, the server and the level."""
    at = f"server '{want.server}', {want.place}, from {want.origin}"
    if isinstance(want.need, SecretRef):
        return UnresolvedPlaceholder(
            f"unresolved: secret '{want.need}' ({at})", hint="store it where the provider looks"
        )
    if isinstance(want.need, RuntimeValue):
        return UnresolvedPlaceholder(f"unresolved: {want.need.name} ({at})", hint="it is known only inside a run")
    hint = f"set it in the environment, or write ${{{want.need.name}:-default}}"
    return UnresolvedPlaceholder(f"unresolved: {want.need.name} ({at})", hint=hint)


def _arm_server(server: PlannedServer, supply: Supply) -> ArmedServer:
    if not server.is_approved:
        hint = f"an admin has to approve the command of server '{server.entry_id}'"
        raise NotApproved(f"server '{server.alias}': its command is not approved", hint=hint)
    if server.missing:
        name = server.missing[0]
        raise missing_problem(server.alias, name, server.header_schema.get(name))
    filled = {slot.place: fill_value(slot.value, supply) for slot in _slots(server)}
    transport = _arm_stdio(server, filled) if "command" in filled else _arm_remote(server, filled)
    return ArmedServer(server, transport, _arm_auth(filled))


def _arm_stdio(server: PlannedServer, filled: Mapping[str, Secret]) -> ArmedStdio:
    definition = server.definition.value
    args = tuple(filled[f"args/{index}"] for index in range(len(definition.args)))
    env = {name: filled[f"env/{name}"] for name in definition.env}
    return ArmedStdio(filled["command"], args, filled.get("cwd"), env)


def _arm_remote(server: PlannedServer, filled: Mapping[str, Secret]) -> ArmedRemote:
    url = filled["url"]
    fault = url.fault(url_fault)
    if fault is not None:
        raise InvalidServer(f"server '{server.alias}': the URL is invalid once filled: {fault}")
    headers = {name: filled[f"headers/{name}"] for name in server.headers}
    _check_headers(server, headers)
    return ArmedRemote(url, headers, is_sse=isinstance(server.definition.value.transport, SseTransport))


def _arm_auth(filled: Mapping[str, Secret]) -> ArmedCredentials | NoAuth:
    if "auth/token_url" not in filled:
        return NO_AUTH
    return ArmedCredentials(**{name: filled[f"auth/{name}"] for name in _AUTH_FIELDS})


def _check_headers(server: PlannedServer, headers: Mapping[str, Secret]) -> None:
    """Judge what the variables brought in by the same rules as what was written."""
    sizes: list[int] = []
    for name, secret in headers.items():
        fault = secret.fault(lambda text: sizes.append(len(text)) or text_fault(text))
        fault = fault or secret.fault(_typed(server.header_schema.get(name)))
        if fault is not None:
            raise InvalidHeader(f"server '{server.alias}': header '{name}' once filled: {fault}")
    if sum(sizes) + sum(map(len, headers)) > MAX_TOTAL_BYTES:
        raise InvalidHeader(f"server '{server.alias}': the headers are more than {MAX_TOTAL_BYTES} bytes together")


def _typed(schema: HeaderSchema | None) -> Callable[[str], str | None]:
    return lambda text: None if schema is None else type_fault(text, schema.type)
