"""What a request to execute an agent says. All of it is data: nothing in it is ever expanded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from outfitter.basics import Secret, SecretRef, quote
from outfitter.catalog.headers import HeaderSettings, check_settings, text_fault
from outfitter.errors import InvalidHeader, InvalidRun

_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One request: the agent, the prompt, headers and credentials by alias, and the ids of this run."""

    agent_name: str
    prompt: str = ""
    mcp_headers: Mapping[str, HeaderSettings] = field(default_factory=dict[str, HeaderSettings], repr=False)
    credentials: Mapping[str, Mapping[str, Secret]] = field(default_factory=dict[str, Mapping[str, Secret]], repr=False)
    session_id: str | None = None
    run_id: str | None = None
    source: str = field(default="run request", compare=False)

    def __post_init__(self) -> None:
        """Refuse headers that could never be sent and ids that are not plain tokens."""
        for alias, settings in self.mcp_headers.items():
            check_settings(settings, "mcp_headers", alias, where=self.source)
            if any(isinstance(value, SecretRef) for value in settings.values()):
                hint = "a run gives values; references belong to the registry, a capability or the agent"
                raise InvalidRun(f"the run gives a secret reference for {quote(alias)}", where=self.source, hint=hint)
        for alias, credentials in self.credentials.items():
            for name, secret in credentials.items():
                fault = secret.fault(text_fault)
                if fault is not None:
                    message = f"credential {quote(name)} for {quote(alias)}: {fault}"
                    raise InvalidHeader(message, where=self.source).under("credentials", alias, name)
        for what, value in (("session_id", self.session_id), ("run_id", self.run_id)):
            if value is not None and _IDENTIFIER.fullmatch(value) is None:
                raise InvalidRun(f"{what} {quote(value)} is not a plain identifier", where=self.source).under(what)
