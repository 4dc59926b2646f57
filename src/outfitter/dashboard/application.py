"""The dashboard as one ASGI application: who comes in, which page, what goes wrong, and what stands in every answer.

    request ──▶ host and origin ──▶ cookie ──▶ page ──▶ the API, asked as its visitor ──▶ HTML

Pages are under ``/ui``; ``/`` leads there. Whoever is not signed in gets the form for it with status 401, whatever was
asked. Nothing is loaded from elsewhere, and nothing of ours runs that is not a file of ours.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import compile_path

from outfitter.basics import Secret
from outfitter.coordinator import STATUSES, Office
from outfitter.dashboard.compressing import compress, zipped_once
from outfitter.dashboard.inside import Inside
from outfitter.dashboard.looks import asset, asset_mark, templates
from outfitter.dashboard.page import Handler, Page, asks_for_part, read_form
from outfitter.dashboard.pages import CHANGING_NOTHING, HANDLERS
from outfitter.dashboard.sign_ins import SignIn, SignIns
from outfitter.errors import Forbidden, NeedsToken, NotFound, OutfitterError, Unavailable
from outfitter.gateway import is_served, is_welcome

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_log = logging.getLogger(__name__)
HOME, SIGN_IN, SIGN_OUT, LIVE, STATIC = "/ui/", "/ui/sign-in", "/ui/sign-out", "/ui/live", "/ui/static/"
COOKIE = "outfitter_sign_in"
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_EVERY_ANSWER = {
    "content-security-policy": _CSP,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "same-origin",  # with none at all, browsers send forms with the origin "null"
    "x-content-type-options": "nosniff",
}


def make_dashboard(
    office: Office, api: ASGIApp, *, hosts: Sequence[str] = (), origins: Sequence[str] = (), mark: str = ""
) -> Dashboard:
    """The pages over an API. ``hosts`` and ``origins`` are those of the gateway's gate; cookies begin with ``mark``."""
    return Dashboard(office, Inside(api), frozenset(hosts), frozenset(origins), SignIns(mark))


@dataclass(slots=True)
class Dashboard:
    """An ASGI application."""

    office: Office
    inside: Inside
    hosts: frozenset[str]
    origins: frozenset[str]
    sign_ins: SignIns
    _routes: tuple[tuple[re.Pattern[str], Mapping[str, Handler]], ...] = field(
        default_factory=lambda: _routes(HANDLERS)
    )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        if scope["path"] == LIVE and scope["method"] == "GET":
            who = self._who(request)
            if self._is_at_home(request) and (who is not None or self.office.access.is_open):
                inside = self.inside.for_request(scope, None if who is None else who.token)
                await inside.stream("/events", scope["query_string"], receive, send)
                return
        answer = await self._answer(request)
        answer.headers.update(_EVERY_ANSWER)
        answer.headers.setdefault("cache-control", "no-store")
        if "content-encoding" not in answer.headers:
            compress(request, answer)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            self._check_home(request)
            return await self._page(request)
        except NeedsToken as error:
            return _sign_in_page(request, "" if self._who(request) is None else str(error.message), 401)
        except OutfitterError as error:
            return self._problem(request, error)
        except Exception:  # noqa: BLE001 - the edge of a request: whatever goes wrong is a page, and a line in the log
            _log.exception("a page could not be made")
            return self._problem(request, Unavailable("something went wrong here", hint="the log says what"))

    async def _page(self, request: Request) -> Response:
        path, method = request.url.path, request.method
        if path == "/":
            return RedirectResponse(HOME, 307)
        if path.startswith(STATIC):
            return _file(path.removeprefix(STATIC), request)
        if path == SIGN_IN:
            return await self._sign_in(request) if method == "POST" else _sign_in_page(request, "", 200)
        who = self._who(request)
        if who is None and not self.office.access.is_open:
            raise NeedsToken("sign in first")
        page = Page(request, self.inside.for_request(request.scope, None if who is None else who.token), who)
        if path == SIGN_OUT and method == "POST":
            return await self._sign_out(page)
        handler, names = self._handler(path, method)
        if method != "GET" and not page.may_change and handler not in CHANGING_NOTHING:
            raise Forbidden("this token may only look", hint="sign in with a token of an editor or an admin")
        return await handler(replace(page, names=names))

    def _handler(self, path: str, method: str) -> tuple[Handler, dict[str, str]]:
        for form, methods in self._routes:
            found = form.fullmatch(path)
            if found is not None and method in methods:
                return methods[method], found.groupdict()
        raise NotFound("there is no such page")

    # ── who ──

    def _is_at_home(self, request: Request) -> bool:
        """Whether it was asked under a name of ours, and not by a page of somebody else."""
        origin = request.headers.get("origin")
        if not is_served(request.headers.get("host", ""), self.hosts):
            return False
        if origin is None:
            return request.headers.get("sec-fetch-site", "same-origin") in {"same-origin", "none"} or (
                request.method == "GET" and request.headers.get("sec-fetch-mode") == "navigate"
            )
        return is_welcome(origin, self.hosts, self.origins)

    def _check_home(self, request: Request) -> None:
        if not self._is_at_home(request):
            raise Forbidden("this page is not served under this name, or was asked for by another site")

    def _who(self, request: Request) -> SignIn | None:
        return self.sign_ins.find(request.cookies.get(COOKIE), is_use=not asks_for_part(request))

    async def _sign_in(self, request: Request) -> Response:
        given = dict(await read_form(request))
        wait = self.sign_ins.wait_seconds
        if wait:
            answer = _sign_in_page(request, "Too many wrong tokens were tried. Wait a minute.", 429)
            answer.headers["retry-after"] = str(int(wait) + 1)
            return answer
        token = given.get("token", "").strip()
        try:
            identity = await self.office.access.identify(f"Bearer {token}")
            self.office.access.need(identity, "registry.read", agent=identity.agent)
        except NeedsToken:
            self.sign_ins.note_wrong()
            return _sign_in_page(request, "This is no valid token.", 401)
        except Forbidden:
            return _sign_in_page(request, "This token may not look at the registry.", 403)
        answer = RedirectResponse(HOME, 303)
        cookie = self.sign_ins.add(Secret(token), identity.role, identity.name)
        answer.set_cookie(
            COOKIE, cookie, path="/ui", httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
        return answer

    async def _sign_out(self, page: Page) -> Response:
        await page.form()
        self.sign_ins.end(page.request.cookies.get(COOKIE))
        answer = RedirectResponse(SIGN_IN, 303)
        answer.delete_cookie(COOKIE, path="/ui", httponly=True, samesite="strict")
        return answer

    def _problem(self, request: Request, error: OutfitterError) -> Response:
        page = Page(request, self.inside, self._who(request))
        return page.render("problem.html", status=STATUSES.get(error.code, 500), error=error)


def _routes(
    handlers: Mapping[str, Mapping[str, Handler]],
) -> tuple[tuple[re.Pattern[str], Mapping[str, Handler]], ...]:
    return tuple((compile_path(f"/ui{path}")[0], methods) for path, methods in handlers.items())


def _sign_in_page(request: Request, problem: str, status: int) -> Response:
    text = templates().get_template("sign_in.html").render(problem=problem, here=request.url.path)
    return Response(text, status, media_type="text/html")


def _file(name: str, request: Request) -> Response:
    """A file. Under the name that pages use, which changes with its content, it is kept for good."""
    content = asset(name)
    if content is None:
        raise NotFound("there is no such file")
    mark = asset_mark(name)
    is_exact = request.query_params.get("v") == mark
    headers = {
        "cache-control": "public, max-age=31536000, immutable" if is_exact else "no-cache",
        "etag": f'"{mark}"', "vary": "accept-encoding",
    }  # fmt: skip
    if request.headers.get("if-none-match", "").removeprefix("W/") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["content-encoding"] = zipped_once(content), "gzip"
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers=headers)
