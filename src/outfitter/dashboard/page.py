"""One request of a page: who looks, the API as they see it, and how the answer is made.

Handlers in ``pages`` get a ``Page`` and return an answer. A change needs the key that stands in the form, so no other
site can have a browser send one.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl

from starlette.responses import HTMLResponse, RedirectResponse, Response

from outfitter.dashboard.looks import templates
from outfitter.errors import Forbidden, Invalid

if TYPE_CHECKING:
    from starlette.requests import Request

    from outfitter.dashboard.inside import Inside
    from outfitter.dashboard.sign_ins import SignIn

FORM_KEY = "form_key"
_MOST_FORM = 2 * 1024 * 1024
_MOST_FIELDS = 5000


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
        """The page. ``command`` is what one would type for the same."""
        here = self.request.url.path
        text = templates().get_template(template).render(who=self.who, here=here, command=command, **values)
        return HTMLResponse(text, status)

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
        if self.who is not None and not hmac.compare_digest(key.encode(), self.who.form_key.encode()):
            raise Forbidden("this form is not one of the dashboard's, or is too old", hint="load the page again")
        return [(name, value) for name, value in sent if name != FORM_KEY]


def number_in(form: Mapping[str, str], name: str) -> int | None:
    """A field that holds a whole number; None for anything else."""
    text = form.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


Handler: TypeAlias = Callable[[Page], Awaitable[Response]]


async def read_form(request: Request) -> list[tuple[str, str]]:
    """The fields of a form."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        raise Invalid("a form was expected")
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > _MOST_FORM:
            raise Invalid("the form is too large")
    try:
        return parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise Invalid("the form cannot be read") from None
