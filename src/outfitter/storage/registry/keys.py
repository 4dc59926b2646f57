"""The keys that seal sensitive literals at rest: a private file with AES-256-GCM keys, the newest of which seals.

The file is made on the first start and belongs into every backup beside the database, and never into the same place.
Older keys stay in it, because what they sealed may be in a copy of the database. Not here: what is sealed, and where.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import stat
from pathlib import Path
from typing import Any, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from outfitter.errors import StorageUnavailable

_NONCE = 12
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class KeyRing:
    """The keys of a file that only its owner may read; other processes' changes to the file are noticed."""

    __slots__ = ("_keys", "_stamp", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._keys: dict[str, AESGCM] = {}
        self._stamp: tuple[int, int] | None = None

    def exists(self) -> bool:
        """Whether there is a key file."""
        return self.path.exists()

    def create(self) -> None:
        """Make the file with a first key, unless another process has just made it."""
        self._save([_new_key()], is_first=True)

    def add(self) -> str:
        """Add a key, which seals from now on; answers its id."""
        key = _new_key()
        self._save([*self._read(), key], is_first=False)
        return key["id"]

    def newest(self) -> str:
        """The id of the key that seals."""
        self._refresh()
        return next(reversed(self._keys))

    def seal(self, value: bytes, place: bytes) -> str:
        """The value, encrypted and bound to its place."""
        name, nonce = self.newest(), os.urandom(_NONCE)
        text = base64.urlsafe_b64encode(nonce + self._keys[name].encrypt(nonce, value, place))
        return f"{name}.{text.decode()}"

    def open(self, sealed: str, place: bytes) -> bytes:
        """The value that was sealed at this place; StorageUnavailable when no key of the file opens it."""
        name, _, text = sealed.partition(".")
        if name not in self._keys:
            self._refresh()
        key = self._keys.get(name)
        if key is None:
            hint = "put the key file back that belongs to this database"
            raise StorageUnavailable(f"a value is sealed with key '{name[:16]}'", where=str(self.path), hint=hint)
        try:
            raw = base64.urlsafe_b64decode(text)
            return key.decrypt(raw[:_NONCE], raw[_NONCE:], place)
        except (InvalidTag, ValueError):
            hint = "restore the database from a backup"
            raise StorageUnavailable("a sealed value was damaged or moved", where=str(self.path), hint=hint) from None

    def opens(self, sealed: str, place: bytes) -> bool:
        """Whether a sealed value opens at this place."""
        try:
            self.open(sealed, place)
        except StorageUnavailable:
            return False
        return True

    def _refresh(self) -> None:
        """Read the file again if it is another one than last time."""
        try:
            found = self.path.stat()
        except OSError as error:
            raise self._broken(f"the key file cannot be read: {error.strerror}") from None
        stamp = (found.st_mtime_ns, found.st_ino)
        if stamp == self._stamp:
            return
        if os.name == "posix" and found.st_mode & _OTHERS:
            raise self._broken("others may read the key file", f"chmod 600 {self.path}")
        keys = {key["id"]: AESGCM(base64.b64decode(key["key"])) for key in self._read()}
        if not keys:
            raise self._broken("the key file holds no key")
        self._keys, self._stamp = keys, stamp

    def _read(self) -> list[dict[str, str]]:
        try:
            found: Any = json.loads(self.path.read_bytes())
            keys = cast("list[dict[str, str]]", found["keys"])
            for key in keys:
                AESGCM(base64.b64decode(key["key"], validate=True))
                str(key["id"])
        except OSError as error:
            raise self._broken(f"the key file cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise self._broken("the key file is damaged", "restore it from a backup") from None
        return keys

    def _save(self, keys: list[dict[str, str]], *, is_first: bool) -> None:
        """Write the file, safely on disk before anything is sealed with it; a first file never replaces another."""
        staged = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}.tmp")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"keys": keys}, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            put_in_place(staged, self.path, is_first=is_first)
        except OSError as error:
            raise self._broken(f"the key file cannot be written: {error.strerror}") from None
        finally:
            staged.unlink(missing_ok=True)

    def _broken(self, message: str, hint: str = "") -> StorageUnavailable:
        return StorageUnavailable(message, where=str(self.path), hint=hint)


def put_in_place(staged: Path, path: Path, *, is_first: bool) -> None:
    """Give a finished file its name, safely on disk; ``is_first``: unless there is one of that name already."""
    if is_first:
        try:
            path.hardlink_to(staged)
        except FileExistsError:
            return
    else:
        staged.replace(path)
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _new_key() -> dict[str, str]:
    key = AESGCM.generate_key(bit_length=256)
    return {"id": secrets.token_hex(4), "key": base64.b64encode(key).decode()}
