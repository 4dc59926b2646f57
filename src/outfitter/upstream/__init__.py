"""The wire: for now where secrets come from; live connections follow."""

from outfitter.upstream.secrets import (
    DefaultSecrets,
    EnvironmentSecrets,
    FileSecrets,
    KeyringSecrets,
    SecretProvider,
    fetch_supply,
    make_providers,
    provider_of,
)

__all__ = [
    "DefaultSecrets",
    "EnvironmentSecrets",
    "FileSecrets",
    "KeyringSecrets",
    "SecretProvider",
    "fetch_supply",
    "make_providers",
    "provider_of",
]
