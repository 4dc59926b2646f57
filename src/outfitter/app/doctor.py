"""What stands between a catalog and a working agent on this machine: checked without starting or calling anything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from outfitter.app.settings import Settings
from outfitter.basics import Secret, SecretRef
from outfitter.catalog import Catalog, ServerEntry, StdioTransport
from outfitter.errors import OutfitterError
from outfitter.policy import unpinned_package
from outfitter.resolution import (
    PlannedServer,
    RunPlan,
    RuntimeValue,
    Want,
    check_catalog,
    resolve,
    server_wants,
    unresolved,
)
from outfitter.upstream import SecretProvider, is_kept, make_providers, provider_of, secret_variables


class Verdict(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was looked at, how it came out, and what to do."""

    check: str
    subject: str
    verdict: Verdict
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the checks may look at: the environment and the secret providers."""

    environment: Mapping[str, str]
    providers: Mapping[str, SecretProvider]

    @classmethod
    def of(cls, environment: Mapping[str, str], settings: Settings) -> Surroundings:
        """The surroundings of this process."""
        return cls(environment, make_providers(environment, settings.secrets))


def examine(catalog: Catalog, surroundings: Surroundings) -> tuple[Finding, ...]:
    """Every finding about a catalog on this machine, in a stable order, each once."""
    findings = [*_catalog_findings(catalog)]
    for entry in catalog.servers.values():
        findings += _entry_findings(entry, surroundings)
    for agent in catalog.agents.values():
        try:
            plan = resolve(agent, catalog)
        except OutfitterError:
            continue
        findings += _plan_findings(plan, surroundings)
    return tuple(dict.fromkeys(findings))


def _catalog_findings(catalog: Catalog) -> Iterator[Finding]:
    check = check_catalog(catalog)
    for problem in check.problems:
        yield Finding(
            "catalog", problem.where or "catalog", Verdict.FAIL, f"[{problem.code}] {problem.message}", problem.hint
        )
    for notice in check.notices:
        yield Finding("catalog", notice.where or "catalog", Verdict.WARN, f"[{notice.code}] {notice.message}")
    if not check.problems:
        counts = (
            f"{len(catalog.servers)} servers, {len(catalog.capabilities)} capabilities, {len(catalog.agents)} agents"
        )
        yield Finding("catalog", "refs", Verdict.OK, f"every agent resolves ({counts})")


def _entry_findings(entry: ServerEntry, surroundings: Surroundings) -> Iterator[Finding]:
    transport = entry.server.transport
    if not isinstance(transport, StdioTransport):
        where = "a placeholder gives it" if "${" in transport.url else "well formed"
        yield Finding("url", entry.id, Verdict.OK, f"{transport.url}: {where}")
        return
    yield _command_finding(entry.id, transport, surroundings)
    yield from _package_findings(entry.id, transport)
    for arg in transport.args:
        yield from _argument_findings(entry.id, arg)


def _command_finding(id_: str, transport: StdioTransport, surroundings: Surroundings) -> Finding:
    if "${" in transport.command:
        return Finding("command", id_, Verdict.OK, f"{transport.command}: a placeholder gives it")
    found = shutil.which(transport.command, path=surroundings.environment.get("PATH"))
    if found is None:
        remedy = "install it, or write its full path"
        return Finding("command", id_, Verdict.FAIL, f"'{transport.command}' is not on PATH", remedy)
    return Finding("command", id_, Verdict.OK, f"{transport.command} is {found}")


def _package_findings(id_: str, transport: StdioTransport) -> Iterator[Finding]:
    package = unpinned_package(transport.command, transport.args)
    if package is not None:
        remedy = f"pin a version, for example {package.removesuffix('@latest')}@1.2.3"
        yield Finding(
            "package", id_, Verdict.WARN, f"'{package}' is not pinned: its code can change at any start", remedy
        )


def _argument_findings(id_: str, arg: str) -> Iterator[Finding]:
    try:
        names = secret_variables(arg)
    except OutfitterError as error:
        yield Finding("placeholder", id_, Verdict.FAIL, error.message, error.hint)
        return
    for name in names:
        message = f"${{{name}}} in args would show in process listings"
        yield Finding("secret", id_, Verdict.FAIL, message, "pass it in env instead")


def _plan_findings(plan: RunPlan, surroundings: Surroundings) -> Iterator[Finding]:
    for server in plan.servers.values():
        yield from _server_findings(plan, server, surroundings)


def _server_findings(plan: RunPlan, server: PlannedServer, surroundings: Surroundings) -> Iterator[Finding]:
    subject = f"{plan.agent.name}/{server.alias}"
    try:
        wants = server_wants(server)
    except OutfitterError as error:
        yield Finding("placeholder", subject, Verdict.FAIL, error.message, error.hint)
        return
    for want in wants:
        finding = _want_finding(want, surroundings)
        if finding is not None:
            yield finding


def _want_finding(want: Want, surroundings: Surroundings) -> Finding | None:
    need = want.need
    if isinstance(need, RuntimeValue):
        return None
    if isinstance(need, SecretRef):
        return _secret_finding(want, need, surroundings)
    subject = f"${{{need.name}}}"
    if is_kept(need.name):
        message = f"the service's own, given to no server; '{want.origin.name}' wants it ({want.place})"
        return Finding("variable", subject, Verdict.FAIL, message, "set the value under another name")
    if surroundings.environment.get(need.name):
        return Finding("variable", subject, Verdict.OK, "set")
    if need.default is not None:
        return Finding("variable", subject, Verdict.OK, "unset, its default is used")
    remedy = unresolved(want).hint
    return Finding(
        "variable", subject, Verdict.FAIL, f"not set; server '{want.origin.name}' needs it ({want.place})", remedy
    )


def _secret_finding(want: Want, ref: SecretRef, surroundings: Surroundings) -> Finding:
    try:
        found: Secret | None = provider_of(ref, surroundings.providers).fetch(ref.name)
    except OutfitterError as error:
        return Finding("secret", str(ref), Verdict.FAIL, error.message, error.hint)
    if found is None:
        message = f"not found; server '{want.origin.name}' needs it ({want.place})"
        return Finding("secret", str(ref), Verdict.FAIL, message, "store it where the provider looks")
    return Finding("secret", str(ref), Verdict.OK, "found")
