"""What comes back from a service, good or bad, and what is kept from going there."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from outfitter.cli import error_of, exit_code
from outfitter.coordinator import STATUSES
from outfitter.errors import InUse, OutfitterError, Refused, VersionConflict
from tests.certificates import make_certificate
from tests.cli.registry_kit import Shell, served_shell

TOKEN = "oft_first_CANARY-0123456789012345678901234567890123456"


def every_error() -> dict[str, type[OutfitterError]]:
    found: dict[str, type[OutfitterError]] = {}
    waiting = [OutfitterError]
    while waiting:
        kind = waiting.pop()
        found[kind.code] = kind
        waiting += kind.__subclasses__()
    return found


@pytest.mark.parametrize(("code", "status"), sorted(STATUSES.items()))
def test_a_problem_becomes_an_error_with_the_exit_code_it_has_here(code: str, status: int) -> None:
    problem = {"status": status, "code": code, "detail": "what", "hint": "how", "where": "here"}
    error = error_of(status, json.dumps(problem).encode())
    kind = every_error()[code]
    assert issubclass(kind, type(error))
    assert (error.message, error.where) == ("what", "here")
    known = kind.__new__(kind)
    if not isinstance(error, Refused):
        assert exit_code(error) == exit_code(known)


def test_what_a_problem_carries_comes_back() -> None:
    users = error_of(409, b'{"code": "in_use", "detail": "d", "users": [{"kind": "agents", "id": "a"}]}')
    assert isinstance(users, InUse)
    assert [(user.kind, user.id) for user in users.users] == [("agents", "a")]
    version = error_of(412, b'{"code": "version_conflict", "detail": "d", "current": "\\"7\\""}')
    assert isinstance(version, VersionConflict)
    assert version.current == 7
    several = error_of(
        422,
        json.dumps(
            {
                "code": "refused",
                "detail": "d",
                "problems": [{"code": "locked_header", "detail": "x", "pointer": "/mcp_headers/a~1b/0"}],
            }
        ).encode(),
    )
    assert isinstance(several, Refused)
    assert several.problems[0].code == "locked_header"
    assert several.problems[0].trail == ("mcp_headers", "a/b", 0)


@pytest.mark.parametrize(
    ("status", "code"), [(400, 3), (401, 6), (403, 6), (404, 4), (413, 3), (500, 7), (502, 7), (503, 7)]
)
def test_an_answer_that_is_no_problem_is_told_by_its_status(status: int, code: int) -> None:
    error = error_of(status, b"<html>proxy</html>")
    assert exit_code(error) == code
    assert str(status) in str(error)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Nobody serves here."""
    return Shell(tmp_path, {"OUTFITTER_TOKEN": TOKEN})


@pytest.mark.parametrize(
    ("url", "code", "says"),
    [
        ("http://127.0.0.1:1", 7, "cannot be reached"),
        ("https://127.0.0.1:1", 7, "cannot be reached"),
        ("http://nowhere.invalid", 6, "in clear"),
        ("ftp://127.0.0.1", 3, "no address"),
        ("http://127.0.0.1:99999", 3, "no address"),
        ("127.0.0.1", 3, "no address"),
        ("https://me:CANARY@127.0.0.1", 3, "holds a name or a password"),
    ],
)
def test_a_service_that_cannot_be_asked_is_told(shell: Shell, url: str, code: int, says: str) -> None:
    printed = shell.run("servers", "list", "--server", url)
    assert (printed.code, says in printed.err) == (code, True), printed
    assert "CANARY" not in printed.out + printed.err
    assert "Traceback" not in printed.err


def test_another_host_without_tls_is_asked_only_when_it_is_said(shell: Shell) -> None:
    printed = shell.run("servers", "list", "--server", "http://nowhere.invalid", "--plain-http")
    assert (printed.code, "cannot be reached" in printed.err) == (7, True)


class _Elsewhere(http.server.BaseHTTPRequestHandler):
    """A server that is not the registry."""

    seen: list[str]

    def do_GET(self) -> None:
        type(self).seen.append(f"{self.path} {self.headers.get('authorization')}")
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("location", "/api/v1/other")
        else:
            self.send_response(200)
        self.send_header("content-length", "4")
        self.end_headers()
        self.wfile.write(b"<ht>")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@contextmanager
def _elsewhere(context: ssl.SSLContext | None = None) -> Generator[tuple[str, list[str]]]:
    seen: list[str] = []
    handler = type("Handler", (_Elsewhere,), {"seen": seen})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}", seen
        finally:
            server.shutdown()
            thread.join()


def test_something_else_that_answers_is_told(shell: Shell) -> None:
    with _elsewhere() as (place, _):
        printed = shell.run("servers", "list", "--server", f"http://{place}")
    assert (printed.code, "is not JSON" in printed.err) == (7, True)


def test_a_redirect_is_not_followed(shell: Shell) -> None:
    with _elsewhere() as (place, seen):
        printed = shell.run("servers", "list", "--server", f"http://{place}/moved")
    assert printed.code != 0
    assert [line.split()[0] for line in seen] == ["/moved/api/v1/mcp-servers?limit=100"]


def test_a_certificate_is_checked_before_the_token_is_sent(shell: Shell, tmp_path: Path) -> None:
    file = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with _elsewhere(context) as (place, seen):
        url = f"https://{place.replace('127.0.0.1', 'localhost')}"
        refused = shell.run("servers", "list", "--server", url)
        assert (refused.code, "its certificate is not trusted" in refused.err, seen) == (7, True, [])
        trusted = shell.run("servers", "list", "--server", url, SSL_CERT_FILE=str(file))
        assert "is not JSON" in trusted.err
    assert len(seen) == 1


@pytest.mark.promise("CLI-TOKEN-SECRET")
def test_the_token_is_in_no_output_and_no_log_and_only_a_private_file_is_read(tmp_path: Path) -> None:
    with served_shell(tmp_path) as served:
        token = served.variables["OUTFITTER_TOKEN"]
        file = served.write("token.txt", f"{token}\n")
        other = served.with_token(None)
        printed = [served.run("tokens", "list"), served.run("tokens", "list", "--json")]
        refused = other.run("servers", "list", OUTFITTER_TOKEN_FILE=str(file))
        assert (refused.code, "chmod 600" in refused.err) == (6, True)
        file.chmod(0o600)
        assert other.run("tokens", "list", OUTFITTER_TOKEN_FILE=str(file)).code == 0
        nobody = other.run("servers", "list")
        assert (nobody.code, "OUTFITTER_TOKEN" in nobody.err) == (6, True)
        wrong = served.with_token(token[:-1] + ("A" if token[-1] != "A" else "B")).run("servers", "list")
        assert wrong.err == nobody.err
        printed += [refused, nobody, wrong]
        broken = served.with_token("two words").run("servers", "list")
        assert (broken.code, "two words" in broken.err) == (3, False)
    assert all(token not in one.out + one.err for one in printed)
    assert token not in (tmp_path / "service.log").read_text()


def test_a_role_that_may_not_is_refused_with_who_may(tmp_path: Path) -> None:
    with served_shell(tmp_path) as served:
        viewer = served.with_token(served.done("tokens", "issue", "viewer").strip())
        printed = viewer.run("servers", "add", "x", "--url", "http://localhost:1/mcp")
        assert (printed.code, "roles that may: admin, editor" in printed.err) == (6, True)
        assert viewer.run("servers", "list").code == 0


@pytest.mark.promise("CLI-SECRETS")
def test_credentials_reach_the_service_and_are_kept_nowhere(tmp_path: Path) -> None:
    secret = "CANARY-c0ffee"
    with served_shell(tmp_path) as served:
        served.done("servers", "add", "jira", "--url", "http://localhost:9000/mcp", "--required-header", "X-API-Key")
        served.done("agents", "add", "a", "--use", "jira")
        lacking = served.run("runs", "start", "a", "--prompt", "Go")
        assert (lacking.code, "X-API-Key" in lacking.err) == (3, True)
        start = ("runs", "start", "a", "--prompt", "-", "--credential", "jira:X-API-Key=env:KEY", "--json")
        run = served.run(*start, stdin="Do it\n", KEY=secret)
        assert (run.code, run.json()["prompt"]) == (0, "Do it\n"), run
        typed = served.run("runs", "start", "a", "--prompt", "x", "--credential", "jira:X-API-Key", stdin=f"{secret}\n")
        assert typed.code == 0, typed
        shown = [run, typed, served.run("runs", "show", run.json()["id"]), served.run("events", "--no-follow")]
        shown.append(served.run("sessions", "show", run.json()["session_id"], "--json"))
    assert all(secret not in one.out + one.err for one in shown)
    assert not any(secret.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
