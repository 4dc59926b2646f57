"""Tokens of an identity provider: what holds, what never does, and keys that change."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import RSAAlgorithm

from outfitter.coordinator import Identity, JwtRules, JwtVerifier, KeyTimes
from outfitter.errors import Forbidden, Invalid, NeedsToken, Unavailable
from outfitter.upstream import HttpClient
from tests.coordinator.access.kit import (
    AT_ONCE,
    AUDIENCE,
    access_to,
    bearer,
    forge,
    new_rsa,
    provider,
    public_jwk,
    verifier_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.promise("ACCESS-JWT")]


async def test_a_machine_of_auth0_comes_in_with_its_role(sqlite_url: str, tmp_path: Path) -> None:
    async with provider() as made, verifier_of(made) as verifier:
        async with access_to(sqlite_url, tmp_path, verifier=verifier) as access:
            claims = made.claims()
            identity = await access.identify(bearer(made.sign(claims)))
            assert identity == Identity("abc123@clients", "editor", ends=claims["exp"] + 30.0)
            assert access.holds(identity)
            access.need(identity, "registry.write")
            with pytest.raises(Forbidden):
                access.need(identity, "stdio.write")
        assert made.asked == 1


async def test_what_a_token_may_say() -> None:
    now = int(time.time())
    sayings: list[tuple[dict[str, Any], str]] = [
        ({"scope": "outfitter:viewer"}, "viewer"),
        ({"permissions": ["outfitter:runner"], "scope": "outfitter:admin"}, "runner"),
        ({"permissions": ["outfitter:viewer", "outfitter:admin", 7, None]}, "admin"),
        ({"aud": ["https://tenant.example/userinfo", AUDIENCE]}, "editor"),
        ({"nbf": now - 5}, "editor"),
        ({"exp": now - 5}, "editor"),
        ({"iat": now + 10}, "editor"),
    ]
    async with provider() as made, verifier_of(made) as verifier:
        for claims, role in sayings:
            identity = await verifier.verify(made.sign(made.claims(**claims)))
            assert identity is not None
            assert identity.role == role


async def test_claims_that_do_not_hold_are_refused() -> None:
    now = int(time.time())
    wrong: list[dict[str, Any]] = [
        *({"exp": value} for value in (now - 120, None, "soon", float("nan"), float("inf"), True, [now + 60])),
        *({"iat": value} for value in (now + 3600, None, "then")),
        *({"nbf": value} for value in (now + 3600, "later")),
        *({"aud": value} for value in (None, "", "https://other.example", [AUDIENCE + "/more"], {AUDIENCE: True}, [7])),
        *({"iss": value} for value in (None, "http://127.0.0.1:1/", ["http://127.0.0.1:1/"])),
        *({"sub": value} for value in (None, "", "line\nbreak", "x" * 300, 7)),
    ]
    async with provider() as made, verifier_of(made) as verifier:
        for claims in wrong:
            said = json.dumps({name: value for name, value in made.claims(**claims).items() if value is not None})
            token = jwt.PyJWS().encode(said.encode(), made.key, "RS256", {"kid": "one"})
            assert await verifier.verify(token) is None, claims


async def test_forged_tokens_are_refused_all_alike(sqlite_url: str, tmp_path: Path) -> None:
    async with provider() as made, verifier_of(made, AT_ONCE) as verifier:
        claims, stranger, kid = made.claims(scope="outfitter:admin"), new_rsa(), {"kid": "one"}
        good = made.sign(claims)
        head, body, signature = good.split(".")
        forged = [
            forge({"alg": "none", **kid}, claims),
            forge({"alg": "None", **kid}, claims),
            forge({"alg": "", **kid}, claims),
            forge({**kid}, claims),
            forge({"alg": "HS256", **kid}, claims, made.public_pem()),
            forge({"alg": "HS256", **kid}, claims, b""),
            forge({"alg": ["RS256"], **kid}, claims),
            jwt.encode(claims, stranger, "RS256", kid),
            jwt.encode(claims, made.key, "RS384", kid),
            jwt.encode(claims, made.key, "PS256", kid),
            jwt.encode(claims, stranger, "RS256", {**kid, "jwk": public_jwk(stranger, "one")}),
            jwt.encode(claims, stranger, "RS256", {**kid, "jku": f"{made.issuer}.well-known/jwks.json", "x5u": "x"}),
            jwt.encode(claims, stranger, "RS256", {"kid": "../../../../dev/null"}),
            jwt.encode(claims, stranger, "RS256", {"kid": "one' OR '1'='1"}),
            jwt.encode(claims, stranger, "RS256", {"kid": "http://127.0.0.1/keys"}),
            jwt.encode(claims, made.key, "RS256"),
            jwt.encode(claims, made.key, "RS256", {"kid": ""}),
            jwt.encode(claims, made.key, "RS256", {"kid": "x" * 1000}),
            jwt.encode(claims, made.key, "RS256", {**kid, "crit": ["exp"]}),
            f"{head}.{body}.",
            f"{head}.{body}",
            f"{head}..{signature}",
            f".{body}.{signature}",
            f"{head}.{body}.{signature[:-4]}AAAA",
            f"{good}.{signature}",
            "..",
            "a.b.c",
            "x" * 20_000,
        ]
        async with access_to(sqlite_url, tmp_path, verifier=verifier) as access:
            assert (await access.identify(bearer(good))).role == "admin"
            said: set[str] = set()
            for token in [*forged, "oft_x", ""]:
                with pytest.raises(NeedsToken) as refused:
                    await access.identify(bearer(token))
                said.add(f"{refused.value.code} {refused.value} {refused.value.__cause__}")
            assert len(said) == 1
            assert (await access.identify(bearer(good))).role == "admin"


async def test_somebody_without_a_role_is_known_and_may_nothing() -> None:
    without: list[dict[str, Any]] = [{"scope": None}, {"scope": "openid"}, {"permissions": []}, {"scope": {"a": 1}}]
    async with provider() as made, verifier_of(made) as verifier:
        for claims in without:
            with pytest.raises(Forbidden):
                await verifier.verify(made.sign(made.claims(**claims)))


async def test_roles_come_from_the_claim_that_was_chosen() -> None:
    async with provider() as made:
        rules = replace(made.rules(), roles={"ops": "admin"})
        for claim, said in (("https://example.com/roles", {"https://example.com/roles": ["ops"]}),
                            ("/realm_access/roles", {"realm_access": {"roles": ["ops"]}})):  # fmt: skip
            async with verifier_of(made, rules=replace(rules, claims=(claim,))) as verifier:
                identity = await verifier.verify(made.sign(made.claims(**said)))
                assert identity is not None
                assert identity.role == "admin"
                with pytest.raises(Forbidden):
                    await verifier.verify(made.sign(made.claims(permissions=["ops"])))


async def test_rotated_keys_are_found_and_old_ones_end() -> None:
    async with provider() as made, verifier_of(made, AT_ONCE) as verifier:
        old = made.sign()
        assert await verifier.verify(old) is not None
        made.rotate("two")
        assert await verifier.verify(made.sign(kid="two")) is not None
        assert await verifier.verify(old) is None


async def test_strangers_cannot_make_the_coordinator_ask_again_and_again() -> None:
    async with provider() as made, verifier_of(made) as verifier:
        assert await verifier.verify(made.sign()) is not None

        async def knock(number: int) -> None:
            assert await verifier.verify(made.sign(kid=f"unknown-{number}")) is None

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(knock, number)
        assert made.asked == 1
        assert await verifier.verify(made.sign()) is not None


async def test_everyone_who_misses_a_key_waits_for_one_fetch() -> None:
    async with provider() as made, verifier_of(made) as verifier:
        found: list[Identity | None] = []

        async def come() -> None:
            found.append(await verifier.verify(made.sign()))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(come)
        assert None not in found
        assert (len(found), made.asked) == (20, 1)


async def test_known_keys_go_on_while_the_provider_is_away() -> None:
    async with provider() as made:
        async with verifier_of(made, KeyTimes(between=0.0, fresh=0.0)) as verifier:
            assert await verifier.verify(made.sign()) is not None
            made.is_away = True
            assert await verifier.verify(made.sign()) is not None
            assert await verifier.verify(made.sign(kid="two")) is None
            made.is_away, made.body = False, '{"keys": "none"}'
            assert await verifier.verify(made.sign()) is not None
            for body in ("{", "[]", " " * 600_000):
                made.body = body
                assert await verifier.verify(made.sign()) is not None
        async with verifier_of(made) as verifier:
            with pytest.raises(Unavailable):
                await verifier.verify(made.sign())


async def test_keys_that_are_not_for_this_are_not_used() -> None:
    async with provider() as made:
        curve, small = ec.generate_private_key(ec.SECP256R1()), new_rsa(1024)
        shown = public_jwk(made.key, "one")
        private = RSAAlgorithm.to_jwk(made.key, as_dict=True)
        unusable: list[dict[str, Any]] = [
            {**shown, "use": "enc"},
            {**shown, "alg": "RS512"},
            {**shown, "kty": "oct", "k": "c2VjcmV0"},
            {**private, "kid": "one"},
            {**shown, "n": "!"},
            {name: value for name, value in shown.items() if name != "kid"},
            {"kid": "one"},
            public_jwk(curve, "one"),
            public_jwk(small, "one"),
        ]
        for key in unusable:
            made.keys = [key]
            async with verifier_of(made) as verifier:
                assert await verifier.verify(made.sign()) is None
        made.keys = [*unusable, shown]
        async with verifier_of(made) as verifier:
            assert await verifier.verify(made.sign()) is not None


async def test_other_algorithms_hold_when_they_are_pinned() -> None:
    async with provider() as made:
        curve = ec.generate_private_key(ec.SECP256R1())
        made.keys = [public_jwk(made.key, "one"), public_jwk(curve, "two")]
        token = jwt.encode(made.claims(), curve, "ES256", {"kid": "two"})
        async with verifier_of(made, rules=replace(made.rules(), algorithms=("ES256",))) as verifier:
            assert await verifier.verify(token) is not None
            assert await verifier.verify(made.sign()) is None
            assert await verifier.verify(jwt.encode(made.claims(), curve, "ES256", {"kid": "one"})) is None


async def test_keys_are_fetched_only_from_where_a_server_may_be() -> None:
    for url in ("http://169.254.169.254/keys", "http://10.0.0.1/keys", "http://example.com/keys", "file:///etc/passwd"):
        async with HttpClient() as client:
            verifier = JwtVerifier.make(JwtRules("https://issuer.example/", AUDIENCE, url), client)
            with pytest.raises(Unavailable):
                await verifier.verify(jwt.encode({"sub": "x"}, new_rsa(), "RS256", {"kid": "one"}))


@pytest.mark.parametrize("algorithms", [(), ("none",), ("HS256",), ("RS256", "HS512"), ("ES256K",)])
def test_no_algorithm_with_a_shared_secret_can_be_pinned(algorithms: tuple[str, ...]) -> None:
    with pytest.raises(Invalid):
        JwtRules("https://issuer.example/", AUDIENCE, algorithms=algorithms)


def test_rules_without_issuer_or_audience_or_with_agents_are_refused() -> None:
    for issuer, audience in (("", AUDIENCE), ("https://issuer.example/", "")):
        with pytest.raises(Invalid):
            JwtRules(issuer, audience)
    with pytest.raises(Invalid):
        JwtRules("https://issuer.example/", AUDIENCE, roles={"a": "agent"})
    assert JwtRules("https://t.eu.auth0.com/", AUDIENCE).keys_url == "https://t.eu.auth0.com/.well-known/jwks.json"


async def test_nothing_of_a_refused_token_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    async with provider() as made, verifier_of(made, AT_ONCE) as verifier:
        token = made.sign(made.claims(exp=1))
        assert await verifier.verify(token) is None
        said = caplog.text + repr(verifier)
        assert not [part for part in token.split(".") if part in said]
