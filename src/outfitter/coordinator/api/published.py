"""The team's registry over the official registry API, read-only: lists, versions, one version.

The shape of the answers is that API's, not ours: other programs read them. Who may is the same as for the registry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, field

from outfitter.coordinator.api.answers import answer
from outfitter.coordinator.api.models import Cursor, NoQuery
from outfitter.coordinator.api.problems import Turned
from outfitter.coordinator.api.routing import Answer, Route
from outfitter.coordinator.publishing import Published, Wanted, list_published, moment, version_of, versions_of

if TYPE_CHECKING:
    from datetime import datetime

    from starlette.responses import Response

    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office

_PRINTABLE = r"^[^\x00-\x1f\x7f]*$"
_OFFICIAL = "io.modelcontextprotocol.registry/official"


class PublishedQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which servers; the parameters of the official API."""

    cursor: Cursor = ""
    limit: Annotated[int, Meta(ge=1, le=100, description="How many at most.")] = 30
    search: Annotated[str, Meta(max_length=200, pattern=_PRINTABLE, description="Only those with it.")] = ""
    updated_since: Annotated[str, Meta(max_length=40, description="A moment in RFC 3339.")] = ""
    version: Annotated[str, Meta(max_length=40, description="`latest`, or a version.")] = ""
    include_deleted: Annotated[bool, Meta(description="Taken and without effect: what was deleted is gone.")] = False


class OfficialMeta(Struct, frozen=True, rename="camel"):
    """What a registry says of a server."""

    status: Literal["active"]
    published_at: str
    updated_at: str
    is_latest: bool


class PublishedMeta(Struct, frozen=True):
    """What is said beside a server."""

    official: OfficialMeta = field(name=_OFFICIAL)


class PublishedServer(Struct, frozen=True):
    """A server.json, and what the registry says of it."""

    server: dict[str, Any]
    meta: PublishedMeta = field(name="_meta")


class PublishedPage(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How many servers a page has, and where the next one begins."""

    count: int
    next_cursor: str = ""


class PublishedList(Struct, frozen=True):
    """Servers, by name; versions, newest first."""

    servers: list[PublishedServer]
    metadata: PublishedPage


async def _list(office: Office, asked: Asked[PublishedQuery]) -> Response:
    query = asked.query
    wanted = Wanted(query.search, _since(query.updated_since), query.version, query.cursor, query.limit)
    found, following = await list_published(office.coordinator.entries, wanted)
    return answer(_page(found, following or ""))


async def _versions(office: Office, asked: Asked[NoQuery]) -> Response:
    return answer(_page(await versions_of(office.coordinator.entries, asked.id)))


async def _version(office: Office, asked: Asked[NoQuery]) -> Response:
    return answer(_shown(await version_of(office.coordinator.entries, asked.id, asked.second)))


def _since(text: str) -> datetime | None:
    try:
        return moment(text.replace(" ", "+")) if text else None  # a plus sign that nobody quoted
    except ValueError:
        hint = "such as 2030-01-31T12:00:00Z"
        raise Turned(400, "bad_query", "'updated_since' is no moment", hint=hint) from None


def _page(found: list[Published], following: str = "") -> PublishedList:
    return PublishedList([_shown(one) for one in found], PublishedPage(len(found), following))


def _shown(one: Published) -> PublishedServer:
    official = OfficialMeta("active", one.published_at, one.updated_at, one.is_latest)
    return PublishedServer(dict(one.document), PublishedMeta(official))


_ONE = "/v0.1/servers/{serverName}/versions"
ROUTES: tuple[Route[Any], ...] = (
    Route("GET", "/v0.1/servers", "Browse the servers as the official registry API has them", _list,
          Answer(model=PublishedList), "registry.read", PublishedQuery),
    Route("GET", _ONE, "The versions of a published server, newest first", _versions, Answer(model=PublishedList),
          "registry.read", names_anything=True),
    Route("GET", f"{_ONE}/{{version}}", "One version of a published server, or the `latest`", _version,
          Answer(model=PublishedServer), "registry.read", names_anything=True),
)  # fmt: skip
