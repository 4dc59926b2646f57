"""Who is signed in at the dashboard: a random cookie stands for a token, which stays in memory and is in no page.

A sign-in ends when it is signed out, when it was not used for long, and when its token ends: the API says so at the
next page. Wrong tokens are counted for everybody together, so that nobody can try many from many places.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from outfitter.basics import Secret

_IDLE_SECONDS = 12 * 3600.0
_MOST = 10_000
_KEY_BYTES = 24
_WRONG_A_MINUTE, _MINUTE = 30, 60.0


@dataclass(slots=True)
class SignIn:
    """Somebody who is signed in."""

    token: Secret = field(repr=False)
    role: str
    name: str
    used: float = 0.0
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(_KEY_BYTES), repr=False)

    @property
    def form_key(self) -> str:
        """What stands in every form that changes something: the key under a mask that is new each time.

        So it has no fixed text, and how far a page can be compressed says nothing about it.
        """
        mask = secrets.token_bytes(_KEY_BYTES)
        return urlsafe_b64encode(mask + _xor(mask, self._key)).decode()

    def is_form_key(self, text: str) -> bool:
        """Whether this is the key, under any mask."""
        try:
            given = urlsafe_b64decode(text.encode())
        except ValueError:
            return False
        return hmac.compare_digest(_xor(given[:_KEY_BYTES], given[_KEY_BYTES:]), self._key)


@dataclass(slots=True)
class SignIns:
    """Everybody who is signed in at this process."""

    mark: str = ""
    """What every cookie begins with: where there are several processes, which of them knows it."""
    clock: Callable[[], float] = time.monotonic
    _book: OrderedDict[str, SignIn] = field(default_factory=OrderedDict[str, SignIn], repr=False)
    _wrong: deque[float] = field(default_factory=lambda: deque[float](maxlen=_WRONG_A_MINUTE))

    def add(self, token: Secret, role: str, name: str) -> str:
        """A new cookie for the holder of this token."""
        cookie = f"{self.mark}{secrets.token_urlsafe(32)}"
        self._book[_digest(cookie)] = SignIn(token, role, name, used=self.clock())
        while len(self._book) > _MOST:
            self._book.popitem(last=False)
        return cookie

    def find(self, cookie: str | None, *, is_use: bool = True) -> SignIn | None:
        """Whose cookie it is; None for anything that is not one, or not any more.

        What a page asks by itself is no use: one that is left open does not keep somebody signed in.
        """
        if not cookie:
            return None
        key = _digest(cookie)
        found, now = self._book.get(key), self.clock()
        if found is None or now - found.used > _IDLE_SECONDS:
            self._book.pop(key, None)
            return None
        if is_use:
            found.used = now
            self._book.move_to_end(key)
        return found

    def end(self, cookie: str | None) -> None:
        """This cookie stands for nobody any more."""
        self._book.pop(_digest(cookie or ""), None)

    def note_wrong(self) -> None:
        """Somebody has tried a token that is none."""
        self._wrong.append(self.clock())

    @property
    def wait_seconds(self) -> float:
        """How long nobody may try, because there were too many wrong tokens in the last minute; 0 mostly."""
        if len(self._wrong) < _WRONG_A_MINUTE:
            return 0.0
        return max(0.0, self._wrong[0] + _MINUTE - self.clock())


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=False))


def _digest(cookie: str) -> str:
    """What is kept of a cookie; nobody chooses a digest, so the time a lookup takes says nothing."""
    return hashlib.sha256(cookie.encode("utf-8", "surrogatepass")).hexdigest()
