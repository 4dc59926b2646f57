"""Cursors that are good for the one they were given to and for the list they were given with."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

from outfitter.errors import NotFound
from outfitter.squad.server.viewers import Viewer

_SEAL, _PLACE = 16, 8


@dataclass(frozen=True, slots=True)
class Cursors:
    """Makes and reads cursors of this process; another's is not found."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def make(self, viewer: Viewer, place: int) -> str:
        """The cursor of what comes from a place on."""
        written = place.to_bytes(_PLACE)
        return base64.urlsafe_b64encode(self._seal(viewer, written) + written).decode()

    def read(self, viewer: Viewer, cursor: str | None) -> int:
        """The place that a cursor holds; NotFound for one that this viewer was not given."""
        if cursor is None:
            return 0
        try:
            given = base64.b64decode(cursor, altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            given = b""
        seal, written = given[:_SEAL], given[_SEAL:]
        if len(written) != _PLACE or not hmac.compare_digest(seal, self._seal(viewer, written)):
            raise NotFound("there is no such cursor", hint="take the nextCursor of the page before")
        return int.from_bytes(written)

    def _seal(self, viewer: Viewer, written: bytes) -> bytes:
        who = "person" if viewer.agent is None else f"agent {viewer.agent}"
        return hmac.digest(self.key, written + who.encode("utf-8", "surrogatepass"), hashlib.sha256)[:_SEAL]
