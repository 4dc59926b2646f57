"""Where secrets are fetched: the environment, files, the system's keyring. One port, one class each.

A provider answers with a Secret or None, and raises ``SecretUnavailable`` when it cannot be asked at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from outfitter.basics import Secret, SecretRef
from outfitter.errors import SecretUnavailable
from outfitter.resolution import Supply, Variable, Want

_LARGEST = 64 * 1024
_VAULT_SECONDS = 10


class SecretProvider(Protocol):
    """The port: one method, by name."""

    def fetch(self, name: str) -> Secret | None:
        """The secret of this name; None when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class EnvironmentSecrets:
    """``env:NAME``: a variable of the environment."""

    environment: Mapping[str, str] = field(repr=False)

    def fetch(self, name: str) -> Secret | None:
        """The variable's value; an empty one counts as unset."""
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


def make_providers(environment: Mapping[str, str], folder: Path) -> dict[str, SecretProvider]:
    """The providers by the name that refs use."""
    env, files = EnvironmentSecrets(environment), FileSecrets(folder)
    return {
        "env": env,
        "file": files,
        "keyring": KeyringSecrets(),
        "vault": VaultSecrets(environment),
        "default": DefaultSecrets(files, env),
    }


def fetch_supply(
    wants: Iterable[Want],
    environment: Mapping[str, str],
    providers: Mapping[str, SecretProvider],
    runtime: Mapping[str, str] | None = None,
) -> Supply:
    """What can be found for these wants; each secret is fetched once. What is missing is for ``arm`` to report."""
    variables: dict[str, Secret] = {}
    secrets: dict[SecretRef, Secret] = {}
    for want in wants:
        need = want.need
        if isinstance(need, Variable) and need.name in environment:
            variables[need.name] = Secret(environment[need.name])
        elif isinstance(need, SecretRef) and need not in secrets:
            found = provider_of(need, providers).fetch(need.name)
            if found is not None:
                secrets[need] = found
    return Supply(variables, secrets, dict(runtime or {}))


def provider_of(ref: SecretRef, providers: Mapping[str, SecretProvider]) -> SecretProvider:
    """The provider that a reference names."""
    provider = providers.get(ref.provider)
    if provider is None:
        known = ", ".join(sorted(set(providers) - {"default"}))
        raise SecretUnavailable(f"no secret provider '{ref.provider}'", hint=f"known: {known}")
    return provider
