"""The API described: OpenAPI 3.1, made from the table of routes and the models that the handlers use.

Nothing is written twice: a parameter is a field of the query's model, a role comes from the table of actions, and a
refusal that a route may give stands at the route.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from outfitter.coordinator.access.roles import ACTIONS
from outfitter.coordinator.api.asking import JSON
from outfitter.coordinator.api.models import Problem
from outfitter.coordinator.api.problems import PROBLEM
from outfitter.coordinator.api.routing import PREFIX, Route

Schema = dict[str, Any]
_REFERENCE = "#/components/schemas/{name}"
_ALWAYS = (400, 421, 431, 500, 503)
_NAME = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$", "maxLength": 128}
_FOREIGN = {"type": "string", "pattern": "^[A-Za-z0-9._/-]*[A-Za-z0-9_-]$", "maxLength": 200}
_TEXT = {"type": "string"}
_ABOUT = (
    "The registry of MCP servers, capabilities and agents; what each agent gets; runs, sessions and recorded calls. "
    "Every path is also served under /api/v1. Sensitive literals are masked in every answer; a mask that is sent back "
    "keeps what is stored. A change names the version it changes: `If-Match` with the `ETag` that was read."
)


def describe(routes: Iterable[Route[Any]]) -> Schema:
    """The OpenAPI document."""
    routes = tuple(routes)
    models = _models(routes)
    schemas, components = msgspec.json.schema_components(models, ref_template=_REFERENCE)
    known = dict(zip(map(repr, models), schemas, strict=True))
    paths: dict[str, Schema] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, known, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Outfitter coordinator", "version": "1", "description": _ABOUT},
        "servers": [{"url": "/"}, {"url": PREFIX}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _models(routes: Iterable[Route[Any]]) -> list[Any]:
    found: dict[str, Any] = {repr(Problem): Problem}
    for route in routes:
        for model in (route.query, route.body, route.answer.model, route.answer.other):
            if model is not None:
                found[repr(model)] = model
    return list(found.values())


def _operation(route: Route[Any], known: Mapping[str, Schema], components: Mapping[str, Schema]) -> Schema:
    operation: Schema = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "tags": [route.path.split("/")[1]],
        "parameters": list(_parameters(route, known, components)),
        "responses": {str(status): answer for status, answer in _responses(route, known)},
        "security": [],
    }
    if route.action is not None:
        rule = ACTIONS[route.action]
        operation["security"] = [{"token": []}]
        operation["description"] = f"Roles that may {rule.about}: {', '.join(sorted(rule.roles))}."
    if route.body is not None:
        content = {JSON: {"schema": known[repr(route.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _operation_id(route: Route[Any]) -> str:
    parts = [part.strip("{}").replace("-", "_").replace(".", "_") for part in route.path[1:].split("/")]
    return "_".join([route.method.lower(), *parts])


def _parameters(route: Route[Any], known: Mapping[str, Schema], components: Mapping[str, Schema]) -> Iterator[Schema]:
    for name in route.names:
        yield {"name": name, "in": "path", "required": True, "schema": _FOREIGN if route.names_anything else _NAME}
    query = components[route.query.__name__] if "$ref" in known[repr(route.query)] else known[repr(route.query)]
    for name, schema in query.get("properties", {}).items():
        yield {"name": name, "in": "query", "required": False, "schema": schema}
    if route.is_versioned:
        about = "The version that is changed: the `ETag` that was read."
        yield {"name": "If-Match", "in": "header", "required": True, "description": about, "schema": _TEXT}
    if route.answer.media == "text/event-stream":
        about = "The number of the last event that was heard; those after it are sent first."
        yield {"name": "Last-Event-ID", "in": "header", "required": False, "description": about, "schema": _TEXT}


def _responses(route: Route[Any], known: Mapping[str, Schema]) -> Iterator[tuple[int, Schema]]:
    good = route.answer
    answer: Schema = {"description": HTTPStatus(good.status).phrase}
    if good.model is not None:
        schema = known[repr(good.model)]
        if good.other is not None:
            schema = {"anyOf": [schema, known[repr(good.other)]]}
        answer["content"] = {good.media: {"schema": schema}}
    if good.headers:
        answer["headers"] = {name: {"required": True, "schema": _TEXT} for name in good.headers}
    yield good.status, answer
    refused = {"schema": known[repr(Problem)]}
    for status in sorted(_refusals(route)):
        yield status, {"description": HTTPStatus(status).phrase, "content": {PROBLEM: refused}}


def _refusals(route: Route[Any]) -> set[int]:
    """The statuses with which a route may refuse."""
    found = {*_ALWAYS, *route.problems}
    if route.action is not None:
        found |= {401, 403}
    if route.names:
        found.add(404)
    if route.body is not None:
        found |= {413, 415, 422}
    if route.is_versioned:
        found |= {412, 422, 428}
    if "cursor" in route.query.__struct_fields__:
        found.add(422)
    return found
