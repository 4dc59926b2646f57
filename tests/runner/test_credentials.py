"""A runner that signs in with client credentials: a real token endpoint, real JWTs, a real ``outfitter up``."""

from __future__ import annotations

import base64
import ssl
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from aiohttp import web

from outfitter.basics import Secret
from outfitter.catalog import Auth0M2M
from outfitter.errors import NeedsAuth, Refused
from outfitter.runner import ClientCredentials, GivenToken, Orchestrator, OrchestratorOptions, names_client
from outfitter.upstream import HttpClient
from tests.app.kit import Place
from tests.certificates import make_certificate
from tests.coordinator.access.kit import AUDIENCE, Provider, provider
from tests.gateway.kit import Raw
from tests.runner.orchestrator.kit import Present, call

pytestmark = pytest.mark.anyio
CLIENT_SECRET = "canary-of-the-client"


@pytest.fixture
def anyio_backend() -> str:
    """The loop that Outfitter runs on."""
    return "asyncio"


@dataclass(slots=True)
class TokenEndpoint:
    """The identity provider's other half: it gives tokens to a client that knows its secret."""

    keys: Provider
    life: float = 3600
    role: str = "outfitter:runner"
    asked: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    spoilt: int = 0
    """How many tokens hold at nobody's, beginning with the next."""
    domain: str = ""

    async def answer(self, request: web.Request) -> web.Response:
        """A token, or why there is none."""
        form = {name: str(value) for name, value in (await request.post()).items()}
        given = base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode()
        self.asked.append({**form, "basic": given.partition(":")[0]})
        if given != f"the-client:{CLIENT_SECRET}":
            said = {"error": "access_denied", "error_description": f"not {CLIENT_SECRET}"}
            return web.json_response(said, status=403)
        now = int(time.time())
        audience, self.spoilt = "nobody" if self.spoilt else form["audience"], max(0, self.spoilt - 1)
        claims = self.keys.claims(aud=audience, scope=self.role, exp=now + int(self.life), jti=str(len(self.asked)))
        made = {"access_token": self.keys.sign(claims), "token_type": "Bearer", "expires_in": self.life}
        return web.json_response(made)


@asynccontextmanager
async def token_endpoint(keys: Provider, folder: Path) -> AsyncGenerator[tuple[TokenEndpoint, HttpClient]]:
    """A token endpoint with TLS, as Auth0's is, and a client that trusts it."""
    certificate = make_certificate(folder)
    made, app = TokenEndpoint(keys), web.Application()
    app.router.add_post("/oauth/token", made.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        made.domain = f"localhost:{runner.addresses[0][1]}"
        async with HttpClient(tls=ssl.create_default_context(cafile=str(certificate))) as client:
            yield made, client
    finally:
        await runner.cleanup()


def variables(made: TokenEndpoint, **changed: str) -> dict[str, str]:
    """What the environment of a runner names."""
    found = {
        "AUTH0_DOMAIN": made.domain,
        "AUTH0_CLIENT_ID": "the-client",
        "AUTH0_CLIENT_SECRET": CLIENT_SECRET,
        "AUTH0_AUDIENCE": AUDIENCE,
    }
    return found | changed


@pytest.mark.promise("RUNNER-CREDENTIALS")
async def test_a_token_is_fetched_once_kept_and_fetched_again_when_it_was_refused(tmp_path: Path) -> None:
    async with provider() as keys, token_endpoint(keys, tmp_path) as (made, client):
        credentials = ClientCredentials.read(variables(made), client)
        found: list[Secret] = []

        async def ask() -> None:
            found.append(await credentials.token())

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(ask)
        assert len(set(found)) == 1
        assert made.asked == [{"grant_type": "client_credentials", "audience": AUDIENCE, "basic": "the-client"}]

        async def renew() -> None:
            assert await credentials.renew(found[0])

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(renew)
        assert len(made.asked) == 2, "one refresh for all who were refused"
        newer = await credentials.token()
        assert newer != found[0]
        await renew()
        assert len(made.asked) == 2, "somebody has renewed it since"


async def test_a_token_is_renewed_shortly_before_it_ends(tmp_path: Path) -> None:
    async with provider() as keys, token_endpoint(keys, tmp_path) as (made, client):
        made.life = 0
        credentials = ClientCredentials.read(variables(made), client)
        first, second = await credentials.token(), await credentials.token()
        assert first != second
        made.life = 3600
        third = await credentials.token()
        assert await credentials.token() == third
        assert len(made.asked) == 3


async def test_what_is_missing_or_refused_is_told_without_the_secret(tmp_path: Path) -> None:
    async with provider() as keys, token_endpoint(keys, tmp_path) as (made, client):
        with pytest.raises(Refused) as missing:
            ClientCredentials.read({"AUTH0_DOMAIN": made.domain, "AUTH0_CLIENT_ID": ""}, client)
        told = [str(problem) for problem in missing.value.problems]
        assert told == [f"AUTH0_{name} is not set" for name in ("CLIENT_ID", "CLIENT_SECRET", "AUDIENCE")]
        own = ClientCredentials.read({**variables(made), "AUTH0_AUDIENCE": ""}, client, auth=Auth0M2M("https://own"))
        await own.token()
        assert made.asked[-1]["audience"] == "https://own"
        wrong = ClientCredentials.read(variables(made, AUTH0_CLIENT_ID="somebody"), client)
        with pytest.raises(NeedsAuth) as refused:
            await wrong.token()
        assert CLIENT_SECRET not in f"{refused.value} {refused.value!r} {wrong!r}"
        assert names_client(variables(made))
        assert not names_client({})


async def test_a_token_that_was_given_is_the_only_one_there_is() -> None:
    given = GivenToken(Secret("oft_x"))
    assert await given.token() == Secret("oft_x")
    assert not await given.renew(Secret("oft_x"))
    assert "oft_x" not in repr(given)


@pytest.mark.promise("RUNNER-JWT")
async def test_outfitter_up_takes_the_tokens_of_the_identity_provider_that_it_was_told_of(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    place.write_catalog("http://127.0.0.1:9/mcp", "lead", "worker")
    async with provider() as keys, token_endpoint(keys, tmp_path) as (made, client):
        options = ("--jwt-issuer", keys.issuer, "--jwt-audience", AUDIENCE)
        async with place.up(*options, "--jwt-keys", f"{keys.issuer}.well-known/jwks.json") as up:
            credentials = ClientCredentials.read(variables(made), client)

            async def ask(path: str, token: Secret) -> int:
                headers = {"authorization": Secret.compose(lambda parts: f"Bearer {parts[0]}", token).reveal()}
                async with up.http.get(f"{up.url}{path}", headers=headers) as answer:
                    return answer.status

            token = await credentials.token()
            assert [await ask(path, token) for path in ("/runs", "/agents", "/tokens")] == [200, 200, 403]
            assert await ask("/runs", Secret(keys.sign(keys.claims(aud="https://elsewhere")))) == 401
            assert await ask("/runs", Secret(keys.sign(keys.claims(exp=1)))) == 401
            assert await ask("/runs", Secret(keys.sign(keys.claims(scope="read:other")))) == 403
            run = (await up.api("POST", "/runs", {"agent_name": "lead", "prompt": "x"}))[1]
            made.spoilt = 1
            assert await credentials.renew(token)
            before = len(made.asked)
            options = OrchestratorOptions(up.url, tmp_path / "state")
            async with Orchestrator(options, credentials, Present()) as orchestrator:
                session = {"x-agent-session-id": run["session_id"]}
                raw = Raw(orchestrator.url_for(run["session_id"], run["id"]), up.http, session)
                said = await call(raw, "start_agent", {"agent": "worker", "prompt": "x", "mode": "poll"})
                child = (await up.api("GET", f"/runs/{said['run_id']}"))[1]
                assert (child["created_by"], child["parent_session_id"]) == ("abc123@clients", run["session_id"])
            assert CLIENT_SECRET not in up.log()
            assert len(made.asked) == before + 1, "a token that was answered 401 is renewed"


async def test_a_runner_signs_in_with_the_variables_of_its_environment(tmp_path: Path) -> None:
    program = "import json; print(json.dumps({'type': 'result', 'result': 'executed'}))"
    (tmp_path / "program.py").write_text(program)
    executor = {"type": "command", "command": sys.executable, "args": [str(tmp_path / "program.py")]}
    async with provider() as keys, token_endpoint(keys, tmp_path) as (made, _):
        trusted = {"SSL_CERT_FILE": str(tmp_path / "cert.pem")}
        place = Place(tmp_path / "place", {**variables(made), **trusted, "OUTFITTER_TOKEN": ""})
        place.write("agents/lead.json", {"name": "lead", "executor": executor})
        async with place.up("--jwt-issuer", keys.issuer, "--jwt-audience", AUDIENCE) as up:
            run = (await up.api("POST", "/runs", {"agent_name": "lead", "prompt": "x"}))[1]
            done = await anyio.to_thread.run_sync(place.command, "runner", "--once", "--server", up.url)
            assert done.returncode == 0, done.stderr
            ended = (await up.api("GET", f"/runs/{run['id']}"))[1]
            assert (ended["state"], ended["result"]) == ("done", "executed")
        assert made.asked
        assert CLIENT_SECRET not in done.stdout + done.stderr
