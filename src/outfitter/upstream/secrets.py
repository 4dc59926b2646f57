"""Where secrets are fetched: the environment, files, the system's keyring. One port, one class each.

A provider answers with a Secret or None, and raises ``SecretUnavailable`` when it cannot be asked at all. What
Outfitter itself runs on (its database, its tokens) is no secret of a catalog: whoever writes an entry would get it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from outfitter.basics import Secret, SecretRef
from outfitter.errors import OutfitterError, Refused, SecretUnavailable, UnresolvedPlaceholder
from outfitter.resolution import Supply, Variable, Want

_LARGEST = 64 * 1024
_VAULT_SECONDS = 10
_KEPT = re.compile(r"OUTFITTER_.*|VAULT_.*|OTEL_EXPORTER_OTLP_(.*_)?HEADERS", re.IGNORECASE)


def is_kept(name: str) -> bool:
    """Whether a variable is Outfitter's own, and kept from the servers of a catalog."""
    return _KEPT.fullmatch(name) is not None


def _kept_problem(name: str) -> UnresolvedPlaceholder:
    hint = "OUTFITTER_*, VAULT_* and the OTLP headers go to no server: set the value under another name"
    return UnresolvedPlaceholder(f"unresolved: {name} is the service's own variable", hint=hint)


class SecretProvider(Protocol):
    """The port: one method, by name."""

    def fetch(self, name: str) -> Secret | None:
        """The secret of this name; None when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class EnvironmentSecrets:
    """``env:NAME``: a variable of the environment."""

    environment: Mapping[str, str] = field(repr=False)
    keeps_own: bool = True
    """Whether Outfitter's own variables are kept back; a program that names its servers itself has them anyway."""

    def fetch(self, name: str) -> Secret | None:
        """The variable's value; an empty one counts as unset, and UnresolvedPlaceholder when it is kept back."""
        if self.keeps_own and is_kept(name):
            raise _kept_problem(name)
        value = self.environment.get(name)
        return Secret(value) if value else None


@dataclass(frozen=True, slots=True)
class FileSecrets:
    """``file:name``: a file of the secrets folder, its content without the last line break."""

    folder: Path

    def fetch(self, name: str) -> Secret | None:
        """The file's content; SecretUnavailable when it lies elsewhere, is too large or cannot be read."""
        root = self.folder.resolve()
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise SecretUnavailable(f"secret file '{name}' lies outside the secrets folder", where=str(self.folder))
        if path.exists() and not path.is_file():
            raise SecretUnavailable(f"secret file '{name}' cannot be read: it is no file", where=str(self.folder))
        try:
            with path.open("rb") as file:
                data = file.read(_LARGEST + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SecretUnavailable(f"secret file '{name}' cannot be read: {error.strerror}", where=str(root)) from None
        return self._decode(name, data)

    def _decode(self, name: str, data: bytes) -> Secret:
        if len(data) > _LARGEST:
            raise SecretUnavailable(f"secret file '{name}' is larger than {_LARGEST} bytes", where=str(self.folder))
        try:
            return Secret(data.decode().removesuffix("\n").removesuffix("\r"))
        except UnicodeDecodeError:
            raise SecretUnavailable(f"secret file '{name}' is not UTF-8 text", where=str(self.folder)) from None


@dataclass(frozen=True, slots=True)
class KeyringSecrets:
    """``keyring:service/name``: the system's keyring, if the ``keyring`` extra is installed and has a backend."""

    def fetch(self, name: str) -> Secret | None:
        """The password kept under this service and name; a bare name is kept under the service ``outfitter``."""
        try:
            import keyring
            import keyring.errors
        except ImportError:
            hint = "pip install 'outfitter[keyring]', or use env: or file:"
            raise SecretUnavailable("the keyring provider is not installed", hint=hint) from None
        service, slash, user = name.partition("/")
        try:
            found = keyring.get_password(service, user) if slash else keyring.get_password("outfitter", name)
        except keyring.errors.KeyringError as error:
            hint = "on a machine without a desktop use env: or file:"
            raise SecretUnavailable(f"the keyring cannot be used: {type(error).__name__}", hint=hint) from None
        return None if found is None else Secret(found)


@dataclass(frozen=True, slots=True)
class VaultSecrets:
    """``vault:mount/path/field``: HashiCorp Vault's key-value store, if the ``vault`` extra is installed.

    Address, token and namespace come from VAULT_ADDR, VAULT_TOKEN and VAULT_NAMESPACE, as for Vault's own tools.
    """

    environment: Mapping[str, str] = field(repr=False)

    def fetch(self, name: str) -> Secret | None:
        """The field of the newest version of the secret; None when there is no such secret or field."""
        mount, _, rest = name.partition("/")
        path, _, key = rest.rpartition("/")
        address = self.environment.get("VAULT_ADDR")
        if not path or not address:
            hint = "write vault:mount/path/field, and set VAULT_ADDR and VAULT_TOKEN"
            raise SecretUnavailable(f"vault secret '{name}' cannot be looked up", hint=hint)
        return self._read(address, mount, path, key)

    def _read(self, address: str, mount: str, path: str, key: str) -> Secret | None:
        try:
            import hvac
            from hvac.exceptions import InvalidPath, VaultError
            from requests import RequestException
        except ImportError:
            hint = "pip install 'outfitter[vault]', or use env: or file:"
            raise SecretUnavailable("the vault provider is not installed", hint=hint) from None
        get = self.environment.get
        client: Any = hvac.Client(
            address, token=get("VAULT_TOKEN"), namespace=get("VAULT_NAMESPACE"), timeout=_VAULT_SECONDS
        )
        try:
            store: Any = client.secrets.kv.v2
            found: Any = store.read_secret_version(path=path, mount_point=mount, raise_on_deleted_version=True)
        except InvalidPath:
            return None
        except (VaultError, RequestException) as error:
            raise SecretUnavailable(
                f"vault does not answer: {type(error).__name__}", hint="check VAULT_ADDR and VAULT_TOKEN"
            ) from None
        value: object = found["data"]["data"].get(key)
        return Secret(value) if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class DefaultSecrets:
    """A bare name: the secrets folder first, then the variable that the name spells in capitals."""

    files: FileSecrets
    environment: EnvironmentSecrets

    def fetch(self, name: str) -> Secret | None:
        """The first that has it."""
        found = self.files.fetch(name)
        return self.environment.fetch(_variable_name(name)) if found is None else found


def _variable_name(name: str) -> str:
    return "".join(ch if ch.isalnum() else "_" for ch in name).upper()


def secrets_folder(environment: Mapping[str, str], catalog: Path | None = None) -> Path:
    """Where ``file:`` secrets are read from: where the environment says, else inside the catalog folder."""
    given = environment.get("OUTFITTER_SECRETS")
    folder = catalog or Path(environment.get("OUTFITTER_CATALOG") or "outfitter")
    return Path(given) if given else folder / "secrets"


def make_providers(
    environment: Mapping[str, str], folder: Path, *, keeps_own: bool = True
) -> dict[str, SecretProvider]:
    """The providers by the name that refs use."""
    env, files = EnvironmentSecrets(environment, keeps_own), FileSecrets(folder)
    return {
        "env": env,
        "file": files,
        "keyring": KeyringSecrets(),
        "vault": VaultSecrets(environment),
        "default": DefaultSecrets(files, env),
    }


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was found, and for each server that something could not be asked for, the first reason."""

    supply: Supply
    faults: Mapping[str, OutfitterError]


def fetch_each(
    wants: Iterable[Want],
    environment: Mapping[str, str],
    providers: Mapping[str, SecretProvider],
    runtime: Mapping[str, str] | None = None,
    *,
    keeps_own: bool = True,
) -> Fetched:
    """What can be found; each secret is asked for once. One that cannot be is a fault of the servers that want it."""
    variables: dict[str, Secret] = {}
    asked: dict[SecretRef, Secret | OutfitterError | None] = {}
    faults: dict[str, OutfitterError] = {}
    for want in wants:
        need, found = want.need, None
        if isinstance(need, SecretRef):
            found = asked[need] = asked[need] if need in asked else _ask(need, providers)
        elif isinstance(need, Variable) and keeps_own and is_kept(need.name):
            found = _kept_problem(need.name)
        elif isinstance(need, Variable) and need.name in environment:
            variables[need.name] = Secret(environment[need.name])
        if isinstance(found, OutfitterError):
            faults.setdefault(want.server, found)
    secrets = {ref: found for ref, found in asked.items() if isinstance(found, Secret)}
    return Fetched(Supply(variables, secrets, dict(runtime or {})), faults)


def _ask(ref: SecretRef, providers: Mapping[str, SecretProvider]) -> Secret | OutfitterError | None:
    try:
        return provider_of(ref, providers).fetch(ref.name)
    except OutfitterError as error:
        return error


def fetch_supply(
    wants: Iterable[Want],
    environment: Mapping[str, str],
    providers: Mapping[str, SecretProvider],
    runtime: Mapping[str, str] | None = None,
    *,
    keeps_own: bool = True,
) -> Supply:
    """What can be found for these wants, or the faults of all. What is missing is for ``arm`` to report."""
    found = fetch_each(wants, environment, providers, runtime, keeps_own=keeps_own)
    faults = tuple(dict.fromkeys(found.faults.values()))
    if faults:
        raise faults[0] if len(faults) == 1 else Refused("secrets cannot be fetched", faults)
    return found.supply


def provider_of(ref: SecretRef, providers: Mapping[str, SecretProvider]) -> SecretProvider:
    """The provider that a reference names."""
    provider = providers.get(ref.provider)
    if provider is None:
        known = ", ".join(sorted(set(providers) - {"default"}))
        raise SecretUnavailable(f"no secret provider '{ref.provider}'", hint=f"known: {known}")
    return provider
