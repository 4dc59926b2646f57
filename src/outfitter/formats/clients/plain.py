"""Entries with nothing but templates in them, on their way out: references are variables, literal secrets are gone.

``{"$secret": "env:X"}`` is the variable X. A secret kept elsewhere gets a variable named after it, and a note; the same
secret gets the same variable wherever it is used, and no other value gets that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from outfitter.basics import Secret, SecretRef
from outfitter.catalog import HeaderSetting, ServerEntry, json_text
from outfitter.formats.clients.conceal import conceal_entry
from outfitter.formats.clients.naming import Vault
from outfitter.formats.clients.values import variables_of


@dataclass(frozen=True, slots=True)
class PlainEntry:
    """An entry whose environment and headers are texts, the variables in it that hold secrets, and what was changed."""

    entry: ServerEntry
    secrets: frozenset[str]
    notes: tuple[str, ...]


def plain_entries(entries: Sequence[ServerEntry]) -> list[PlainEntry]:
    """The entries as texts without secrets."""
    settings = [value for entry in entries for value in (*entry.server.env.values(), *entry.default_headers.values())]
    named = {value.name for value in settings if isinstance(value, SecretRef) and value.provider == "env"}
    vault, names = Vault(variables_of(entries) | named), dict[SecretRef, str]()
    return [_Texts(entry, vault, names).plain() for entry in entries]


@dataclass(frozen=True, slots=True)
class _Texts:
    """Makes one entry plain; ``names`` are the variables that secrets have got so far, in all entries."""

    entry: ServerEntry
    vault: Vault
    names: dict[SecretRef, str]
    secrets: set[str] = field(default_factory=set[str])
    notes: list[str] = field(default_factory=list[str])

    def plain(self) -> PlainEntry:
        server = replace(self.entry.server, env=self._texts(self.entry.server.env))
        written = replace(self.entry, server=server, default_headers=self._texts(self.entry.default_headers))
        concealed, told = conceal_entry(written, self.vault, "the catalog")
        return PlainEntry(concealed, frozenset(self.secrets), (*self.notes, *told))

    def _texts(self, settings: Mapping[str, HeaderSetting]) -> dict[str, str]:
        """The settings as texts; one that removes a header says nothing to a client."""
        return {name: self._text(name, value) for name, value in settings.items() if value is not None}

    def _text(self, name: str, value: HeaderSetting) -> str:
        if not isinstance(value, SecretRef | Secret):
            return value if isinstance(value, str) else json_text(value)
        if isinstance(value, SecretRef):
            variable = self._variable(value)
            told = f"the secret '{value}'" if value.provider != "env" else ""
        else:
            variable, told = self.vault.take(self.entry.id, name), "a secret held in memory"
        if told:
            self.notes.append(f"{name}: {told} cannot be written; set {variable} to it")
        self.secrets.add(variable)
        return f"${{{variable}}}"

    def _variable(self, ref: SecretRef) -> str:
        if ref not in self.names:
            self.names[ref] = ref.name if ref.provider == "env" else self.vault.take("", ref.name)
        return self.names[ref]
