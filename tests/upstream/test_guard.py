"""Where a connection may go: judged after the name was looked up, whatever the spelling."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.errors import DestinationForbidden, InvalidServer
from outfitter.upstream import Guard, HttpClient, open_http_wire
from tests.upstream.http_peers import CANARY, Notebook, a_request, an_answer, armed, echo, serve

STRICT, USUAL, OPEN = Guard(allow_loopback=False), Guard(), Guard(allow_private=True)
METADATA = ["169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254"]


@pytest.mark.promise("R01")
@pytest.mark.parametrize("address", METADATA)
def test_metadata_services_are_never_reached(address: str) -> None:
    spellings = [ip_address(address)]
    if isinstance(spellings[0], IPv4Address):
        packed = int(spellings[0])
        spellings += [IPv6Address(f"::ffff:{address}"), IPv6Address((0x64FF9B << 96) | packed)]
        spellings += [IPv6Address((0x2002 << 112) | (packed << 80)), IPv6Address(packed)]
    for spelling in spellings:
        for guard in (STRICT, USUAL, OPEN):
            assert guard.fault(spelling) == "a cloud's metadata service"


@pytest.mark.promise("R02")
@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("2130706433", True),
        ("0x7f.1", True),
        ("0x7f000001", True),
        ("017700000001", True),
        ("127.1", True),
        ("127.0.0.1.", True),
        ("[::ffff:127.0.0.1]", True),
        ("[::1]", True),
        ("[64:ff9b::7f00:1]", True),
        ("[2002:7f00:1::]", True),
        ("\uff11\uff12\uff17.0.0.1", True),
        ("0", False),
        ("0.0.0.0", False),  # noqa: S104 - an address to refuse
        ("[::]", False),
    ],
)
def test_an_address_is_judged_by_what_it_means(host: str, *, is_loopback: bool) -> None:
    with pytest.raises(DestinationForbidden) as refused:
        STRICT.admit(f"http://{host}:81/mcp", carries_secrets=False)
    assert "host" in str(refused.value)
    if is_loopback:
        spelled = USUAL.admit(f"http://{host}:81/mcp?a=b", carries_secrets=True)
        assert spelled.endswith(":81/mcp?a=b")
    else:
        with pytest.raises(DestinationForbidden):
            USUAL.admit(f"http://{host}:81/mcp", carries_secrets=False)


def test_an_odd_spelling_is_used_plainly() -> None:
    assert USUAL.admit("http://2130706433/mcp", carries_secrets=True) == "http://127.0.0.1/mcp"
    assert USUAL.admit("https://Example.COM:8443/a?b#c", carries_secrets=True) == "https://example.com:8443/a?b"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("192.168.1.1", "private"),
        ("fd12::1", "private"),
        ("169.254.7.7", "link-local"),
        ("fe80::1", "link-local"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("0.0.0.0", "unspecified"),  # noqa: S104 - an address to refuse
        ("100.64.0.1", "not public"),
        ("255.255.255.255", "private"),
        ("64:ff9b::a00:1", "private"),
    ],
)
def test_addresses_that_are_not_public_need_permission(address: str, reason: str) -> None:
    assert USUAL.fault(ip_address(address)) == reason
    assert OPEN.fault(ip_address(address)) is None


@pytest.mark.parametrize("address", ["93.184.215.14", "1.1.1.1", "2606:4700::1111", "64:ff9b::101:101"])
def test_public_addresses_are_fine(address: str) -> None:
    assert STRICT.fault(ip_address(address)) is None


@given(st.ip_addresses(v=4))
def test_whatever_is_let_through_is_public(address: IPv4Address) -> None:
    if STRICT.fault(address) is None:
        assert address.is_global
        assert not address.is_loopback


@pytest.mark.promise("HTTPS-FOR-SECRETS")
def test_headers_travel_in_clear_text_only_inside_the_machine() -> None:
    for url in ("http://example.com/mcp", "http://93.184.215.14/mcp"):
        with pytest.raises(DestinationForbidden, match="clear text"):
            USUAL.admit(url, carries_secrets=True)
        assert USUAL.admit(url, carries_secrets=False) == url
        assert Guard(allow_plain_secrets=True).admit(url, carries_secrets=True) == url
    for url in ("https://example.com/mcp", "http://127.0.0.1/mcp", "http://localhost:1/mcp", "http://a.localhost/mcp"):
        assert USUAL.admit(url, carries_secrets=True) == url


@pytest.mark.parametrize(
    "url",
    ["ftp://h/", "http://", "http://a b/", "http://h:0/", "http://h:99999/", "http://u:p@h/", "http://[::1/", "x"],
)
def test_a_url_that_two_programs_could_read_differently_is_refused(url: str) -> None:
    with pytest.raises(InvalidServer):
        USUAL.admit(url, carries_secrets=False)


class Names:
    """A resolver that says something else each time it is asked."""

    def __init__(self, *answers: Iterable[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Iterable[str]:
        assert port
        self.asked.append(host)
        if not self.answers:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return self.answers.pop(0)


@pytest.mark.anyio
@pytest.mark.promise("R03")
async def test_a_name_that_turns_to_loopback_is_not_dialled() -> None:
    async with serve(echo) as canary:
        names = Names(["127.0.0.1"], ["10.0.0.1", "::1", "169.254.169.254"])
        async with HttpClient(STRICT, lookup=names) as client:
            server = armed(f"http://tricky.example:{canary.port}/mcp")
            async with open_http_wire(server, Notebook(), client) as wire:
                for _ in range(2):
                    with pytest.raises(DestinationForbidden, match=r"tricky\.example"):
                        await wire.ask(a_request())
        assert names.asked == ["tricky.example", "tricky.example"]
        assert canary.connections == 0


@pytest.mark.anyio
@pytest.mark.promise("R03")
async def test_the_address_that_was_judged_is_the_one_that_is_dialled() -> None:
    async with serve(echo) as peer:
        names = Names(["10.0.0.1", "127.0.0.1"], ["10.0.0.1"])
        async with HttpClient(lookup=names) as client:
            server = armed(f"http://tricky.example:{peer.port}/mcp")
            async with open_http_wire(server, Notebook(), client) as wire:
                assert await wire.ask(a_request(1, x=1)) == an_answer(1, x=1)
                assert await wire.ask(a_request(2)) == an_answer(2)
        assert names.asked == ["tricky.example"]
        assert peer.requests[0].headers["host"] == f"tricky.example:{peer.port}"


@pytest.mark.anyio
async def test_localhost_that_is_not_this_machine_gets_no_header() -> None:
    async with serve(echo) as peer:
        names = Names(["10.0.0.1"], ["127.0.0.1"])
        async with HttpClient(OPEN, lookup=names) as client:
            server = armed(f"http://localhost:{peer.port}/mcp", {"Authorization": f"Bearer {CANARY}"})
            async with open_http_wire(server, Notebook(), client) as wire:
                with pytest.raises(DestinationForbidden, match="not loopback") as refused:
                    await wire.ask(a_request())
                assert CANARY not in str(refused.value)
                assert await wire.ask(a_request(2)) == an_answer(2)


@pytest.mark.anyio
@pytest.mark.promise("R01", "R02")
@pytest.mark.parametrize("host", ["169.254.169.254", "2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "0"])
async def test_a_forbidden_address_in_a_url_is_refused_before_anything_is_sent(host: str) -> None:
    async with serve(echo) as canary, HttpClient(STRICT) as client:
        server = armed(f"http://{host}:{canary.port}/mcp", {"X-Key": CANARY})
        with pytest.raises(DestinationForbidden) as refused:
            async with open_http_wire(server, Notebook(), client):
                pass
        assert canary.connections == 0
        assert CANARY not in str(refused.value)
        assert str(refused.value).startswith("server 's': ")


@pytest.mark.anyio
@pytest.mark.promise("F43")
async def test_localhost_reaches_a_server_that_listens_on_ipv4_alone() -> None:
    async with serve(echo) as peer, HttpClient() as client:
        server = armed(f"http://localhost:{peer.port}/mcp", {"X-Key": CANARY})
        async with open_http_wire(server, Notebook(), client) as wire:
            assert await wire.ask(a_request(1)) == an_answer(1)
