"""What a request of the modern era must carry, and what its answers carry.

The body is the truth: headers that repeat it must agree. Pure; nothing here is sent.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence

from outfitter.gateway.faults import HEADER_MISMATCH, INVALID_PARAMS, VERSION_UNSUPPORTED, Rejected
from outfitter.gateway.views import as_object
from outfitter.gateway.visitors import Channel, Principal, Visitor
from outfitter.upstream import Era, Message, mirrored_parameters, parameter_headers

VERSIONS = ("2026-07-28",)
META = "io.modelcontextprotocol/"
LONGEST_DECLARED = 16 * 1024
SERVER_INFO = {"name": "outfitter", "version": "0.1.0"}
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_ROUTING = ("mcp-protocol-version", "mcp-method", "mcp-name")
_SENTINEL = re.compile(r"=\?base64\?(?P<payload>.*)\?=", re.DOTALL)
_CACHED = {
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "resources/read",
}


def is_modern(message: Message) -> bool:
    """Whether a request says itself that it is of the modern era, where no header does."""
    return f"{META}protocolVersion" in as_object(as_object(message.get("params")).get("_meta"))


def check(message: Message, headers: Sequence[tuple[str, str]] | None) -> str:
    """The version of a well-formed request; Rejected by the first rule it breaks. None where there are no headers."""
    meta = as_object(as_object(message.get("params")).get("_meta"))
    missing = [key for key in (f"{META}protocolVersion", f"{META}clientCapabilities") if key not in meta]
    if missing:
        raise Rejected(f"params._meta is missing {', '.join(missing)}", rpc_code=INVALID_PARAMS, status=400)
    check_capabilities(meta[f"{META}clientCapabilities"])
    version = meta[f"{META}protocolVersion"]
    if headers is not None:
        _agree(message, version, headers)
    if not isinstance(version, str):
        raise Rejected("the protocol version must be a text", rpc_code=INVALID_PARAMS, status=400)
    check_version(version)
    return version


def check_capabilities(declared: object) -> None:
    """Refuse a client that says more of itself than could ever be meant: it would be kept for as long as it comes."""
    if len(json.dumps(declared)) > LONGEST_DECLARED:
        told = f"the capabilities are longer than {LONGEST_DECLARED} characters"
        raise Rejected(told, rpc_code=INVALID_PARAMS, status=400)


def check_version(version: str) -> None:
    """Refuse a version that is not spoken here, and say which are."""
    if version not in VERSIONS:
        data = {"supported": list(VERSIONS), "requested": version}
        raise Rejected("Unsupported protocol version", rpc_code=VERSION_UNSUPPORTED, status=400, data=data)


def _agree(message: Message, version: object, headers: Sequence[tuple[str, str]]) -> None:
    for name in _ROUTING:
        if sum(key == name for key, _ in headers) > 1:
            raise _mismatch(f"the {name} header appears more than once")
    given = dict(headers)
    method = message.get("method")
    if given.get("mcp-protocol-version") != version:
        raise _mismatch("the mcp-protocol-version header does not match the body's version")
    if given.get("mcp-method") != method:
        raise _mismatch("the mcp-method header does not match the body's method")
    key = _NAMED_BY.get(str(method))
    named = as_object(message.get("params")).get(key) if key else None
    if named is not None and decode(given.get("mcp-name")) != named:
        raise _mismatch(f"the mcp-name header does not match the body's {key}")


def check_parameters(schema: object, arguments: Message, headers: Sequence[tuple[str, str]]) -> None:
    """Refuse a call whose ``Mcp-Param-…`` headers say something else than its arguments."""
    try:
        mirrored = mirrored_parameters(schema)
    except ValueError:
        return
    expected = {name.lower(): decode(value) for name, value in parameter_headers(mirrored, arguments).items()}
    known = {f"mcp-param-{token.lower()}" for token in mirrored.values()}
    found: dict[str, str | None] = {}
    for name, value in headers:
        if name in known:
            if name in found:
                raise _mismatch(f"the {name} header appears more than once")
            found[name] = decode(value)
    if found != expected:
        wrong = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
        raise _mismatch(f"the {wrong[0]} header does not match the arguments")


def _mismatch(text: str) -> Rejected:
    return Rejected(f"Header mismatch: {text}", rpc_code=HEADER_MISMATCH, status=400)


def decode(value: str | None) -> str | None:
    """The text that a header carries; None for a malformed one, so that it never agrees by accident."""
    if value is None:
        return None
    wrapped = _SENTINEL.fullmatch(value)
    if wrapped is None:
        return value
    try:
        decoded = base64.b64decode(wrapped["payload"], validate=True)
        is_canonical = base64.b64encode(decoded).decode() == wrapped["payload"]
        return decoded.decode() if is_canonical else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def visitor_of(message: Message, version: str, principal: Principal, channel: Channel) -> Visitor:
    """The client, as this one request describes it."""
    meta = as_object(as_object(message.get("params")).get("_meta"))
    capabilities = as_object(meta.get(f"{META}clientCapabilities"))
    level = meta.get(f"{META}logLevel")
    return Visitor(
        principal, Era.MODERN, version, channel, capabilities, level if isinstance(level, str) else None,
        "modern " + json.dumps(capabilities, sort_keys=True),
    )  # fmt: skip


def dress(method: str, result: Message) -> Message:
    """A result with what the era wants on every one of them; lists are private to the agent and not kept."""
    meta = {f"{META}serverInfo": SERVER_INFO, **as_object(result.get("_meta"))}
    dressed: Message = {"resultType": "complete", **result, "_meta": meta}
    if method in _CACHED and dressed["resultType"] == "complete":
        dressed.setdefault("ttlMs", 0)
        dressed["cacheScope"] = "private"
    return dressed


def discovery(capabilities: Mapping[str, object], instructions: str) -> Message:
    """The answer to ``server/discover``."""
    result: Message = {"supportedVersions": list(VERSIONS), "capabilities": dict(capabilities)}
    return {**result, "instructions": instructions} if instructions else result
