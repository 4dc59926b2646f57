"""What the official registry API says about its answers, as far as readers lean on it: a JSON Schema of our own."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_MOMENT = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"}
_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "description": _TEXT,
        "value": _TEXT,
        "default": _TEXT,
        **{name: {"type": "boolean"} for name in ("isRequired", "isSecret", "isRepeated")},
        "variables": {"type": "object", "additionalProperties": {"$ref": "#/$defs/input"}},
    },
}
_ARGUMENT = {
    "allOf": [{"$ref": "#/$defs/input"}],
    "required": ["type"],
    "anyOf": [
        {
            "properties": {"type": {"const": "positional"}},
            "anyOf": [{"required": ["value"]}, {"required": ["valueHint"]}],
        },
        {"properties": {"type": {"const": "named"}}, "required": ["name"]},
    ],
}
_NAMED = {"allOf": [{"$ref": "#/$defs/input"}], "required": ["name"], "properties": {"name": _TEXT}}
_PACKAGE = {
    "type": "object",
    "required": ["registryType", "identifier", "transport"],
    "properties": {
        "registryType": _TEXT,
        "identifier": _TEXT,
        "version": {"type": "string", "minLength": 1, "maxLength": 255, "not": {"const": "latest"}},
        "runtimeHint": _TEXT,
        "transport": {"type": "object", "required": ["type"]},
        "runtimeArguments": {"type": "array", "items": _ARGUMENT},
        "packageArguments": {"type": "array", "items": _ARGUMENT},
        "environmentVariables": {"type": "array", "items": _NAMED},
    },
}
_REMOTE = {
    "type": "object",
    "required": ["type", "url"],
    "properties": {
        "type": {"enum": ["streamable-http", "sse"]},
        "url": {"type": "string", "pattern": r"^(https?://[^\s]+|\{[a-zA-Z_][a-zA-Z0-9_]*\}[^\s]*)$"},
        "headers": {"type": "array", "items": _NAMED},
        "variables": {"type": "object", "additionalProperties": {"$ref": "#/$defs/input"}},
    },
}
_SERVER = {
    "type": "object",
    "required": ["name", "description", "version"],
    "properties": {
        "$schema": {"type": "string", "pattern": r"^https://.*/server\.schema\.json$"},
        "name": {"type": "string", "minLength": 3, "maxLength": 200, "pattern": r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": {"type": "string", "maxLength": 255, "pattern": r"^[^\^~<>=*\s]+$"},
        "packages": {"type": "array", "items": _PACKAGE},
        "remotes": {"type": "array", "items": _REMOTE},
    },
}
_OFFICIAL = {
    "type": "object",
    "required": ["status"],
    "additionalProperties": False,
    "properties": {
        "status": {"enum": ["active", "deprecated", "deleted"]},
        "publishedAt": _MOMENT,
        "updatedAt": _MOMENT,
        "statusMessage": _TEXT,
        "isLatest": {"type": "boolean"},
    },
}
ONE: dict[str, Any] = {
    "$defs": {"input": _INPUT},
    "type": "object",
    "required": ["server"],
    "properties": {
        "server": _SERVER,
        "_meta": {
            "type": "object",
            "required": ["io.modelcontextprotocol.registry/official"],
            "properties": {"io.modelcontextprotocol.registry/official": _OFFICIAL},
        },
    },
}
"""One server in one version."""
LIST: dict[str, Any] = {
    "$defs": {"input": _INPUT},
    "type": "object",
    "required": ["servers"],
    "properties": {
        "servers": {"type": "array", "items": {key: value for key, value in ONE.items() if key != "$defs"}},
        "metadata": {"type": "object", "properties": {"nextCursor": _TEXT, "count": {"type": "integer"}}},
    },
}
"""A page of servers."""
