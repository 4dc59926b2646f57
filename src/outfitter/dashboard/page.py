"""One request of a page: who looks, the API as they see it, and how the answer is made.

Handlers in ``pages`` get a ``Page`` and return an answer. A change needs the key that stands in the form, so no other
site can have a browser send one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl

from starlette.responses import HTMLResponse, RedirectResponse, Response

from outfitter.dashboard import uploads
from outfitter.dashboard.looks import templates
from outfitter.errors import Conflict, Forbidden, Invalid

if TYPE_CHECKING:
    from starlette.requests import Request

    from outfitter.dashboard.inside import Inside
    from outfitter.dashboard.sign_ins import SignIn

FORM_KEY = "form_key"
PART = "x-part"
_MOST_FORM = 2 * 1024 * 1024
_MOST_READ = 32 * _MOST_FORM
_MOST_FIELDS = 50_000


@dataclass(frozen=True, slots=True)
class Page:
    """A request of somebody who may look."""

    request: Request
    api: Inside
    who: SignIn | None
    """None where the service asks nobody who they are."""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the path names."""

    def render(self, template: str, *, status: int = 200, command: str = "", **values: Any) -> Response:  # noqa: ANN401 - what the template shows
        """The page. ``command`` is what one would type for the same; an ``error`` among the values tells its status."""
        here, error = self.request.url.path, values.get("error")
        text = templates().get_template(template).render(who=self.who, here=here, command=command, **values)
        return HTMLResponse(text, status if error is None else _status_of(error))

    @property
    def may_change(self) -> bool:
        """Whether its visitor may do more than look; what exactly is asked of the API."""
        return self.who is None or self.who.role != "viewer"

    @property
    def is_part(self) -> bool:
        """Whether a page that is open already asks for what has changed on it, by itself."""
        return asks_for_part(self.request)

    def go(self, where: str) -> Response:
        """Have the browser look elsewhere, after a change."""
        return RedirectResponse(where, 303)

    def asked(self, name: str, default: str = "") -> str:
        """A value of the query."""
        return self.request.query_params.get(name, default)

    async def form(self) -> Mapping[str, str]:
        """The fields of a form that was sent from one of our pages; Forbidden for any other."""
        return dict(await self.fields())

    async def fields(self) -> list[tuple[str, str]]:
        """The same in order, names as often as they were sent."""
        sent = await read_form(self.request)
        key = dict(sent).get(FORM_KEY, "")
        if self.who is not None and not self.who.is_form_key(key):
            raise Forbidden("this form is not one of the dashboard's, or is too old", hint="load the page again")
        return [(name, value) for name, value in sent if name != FORM_KEY]


def number_in(form: Mapping[str, str], name: str) -> int | None:
    """A field that holds a whole number; None for anything else."""
    text = form.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


Handler: TypeAlias = Callable[[Page], Awaitable[Response]]


def asks_for_part(request: Request) -> bool:
    """Whether a script of ours asks for the part of a page that changes."""
    return request.headers.get(PART) == "live"


async def read_form(request: Request) -> list[tuple[str, str]]:
    """The fields of a form."""
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0] not in {"application/x-www-form-urlencoded", uploads.KIND}:
        raise Invalid("a form was expected")
    content, size = bytearray(), 0
    async for piece in request.stream():
        size += len(piece)
        if size <= _MOST_FORM:
            content += piece
        if size > _MOST_READ:  # up to here it is read on: who still sends does not hear an answer
            break
    if size > _MOST_FORM:
        raise Invalid("the form is too large", hint=f"at most {_MOST_FORM // 1024**2} MiB are read")
    if kind.startswith(uploads.KIND):
        return uploads.read_parts(kind, bytes(content))
    try:
        return parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise Invalid("the form cannot be read") from None


def _status_of(error: object) -> int:
    """What a page says with an error on it: that its visitor may not, that things have changed, or that it is wrong."""
    return 403 if isinstance(error, Forbidden) else 409 if isinstance(error, Conflict) else 422
