"""Secrets from HashiCorp Vault, asked over its own HTTP API on loopback."""

from __future__ import annotations

import json
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from outfitter.basics import Secret
from outfitter.errors import SecretUnavailable
from outfitter.upstream import VaultSecrets

TOKEN = "vault-token"


class _Vault(BaseHTTPRequestHandler):
    """The part of Vault that reads one secret of a key-value store."""

    def do_GET(self) -> None:
        if self.headers.get("X-Vault-Token") != TOKEN:
            self._say(403, {"errors": ["permission denied"]})
        elif self.path == "/v1/secret/data/team/jira":
            self._say(200, {"data": {"data": {"api_key": "CNRY-9"}, "metadata": {"version": 1}}})
        else:
            self._say(404, {"errors": []})

    def _say(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its signature
        """Say nothing."""


@pytest.fixture
def address() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Vault)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.promise("SECRET-PROVIDERS")
def test_a_field_of_a_secret_is_found_and_a_missing_one_is_not(address: str) -> None:
    vault = VaultSecrets({"VAULT_ADDR": address, "VAULT_TOKEN": TOKEN})
    assert vault.fetch("secret/team/jira/api_key") == Secret("CNRY-9")
    assert vault.fetch("secret/team/jira/other") is None
    assert vault.fetch("secret/team/none/api_key") is None


@pytest.mark.promise("SECRET-PROVIDERS")
def test_a_vault_that_refuses_or_is_gone_is_unavailable_and_shows_nothing(address: str) -> None:
    for environment in ({"VAULT_ADDR": address, "VAULT_TOKEN": "wrong-CNRY"}, {"VAULT_ADDR": "http://127.0.0.1:9"}, {}):
        with pytest.raises(SecretUnavailable) as raised:
            VaultSecrets(environment).fetch("secret/team/jira/api_key")
        assert "CNRY" not in str(raised.value)


def test_a_name_without_a_field_says_how_to_write_it(address: str) -> None:
    with pytest.raises(SecretUnavailable, match="mount/path/field"):
        VaultSecrets({"VAULT_ADDR": address}).fetch("jira")
