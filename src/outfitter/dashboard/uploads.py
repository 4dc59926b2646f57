"""Forms with a file: ``multipart/form-data`` as fields, the file's text as one of them, and its name beside it.

Only what browsers send is read: a few parts, none within another. So a form takes no longer than its size tells.
"""

from __future__ import annotations

import re

from outfitter.errors import Invalid

KIND = "multipart/form-data"
NAMED = "-filename"
"""What the field with a file's name ends in."""
_MOST_PARTS = 50
_BOUNDARY = re.compile(r';\s*boundary="?([!-~]{1,70}?)"?\s*(?:;|$)', re.IGNORECASE)
_NAME = re.compile(rb';\s*name="([^"\r\n]*)"', re.IGNORECASE)
_FILENAME = re.compile(rb';\s*filename="([^"\r\n]+)"', re.IGNORECASE)


def read_parts(kind: str, content: bytes) -> list[tuple[str, str]]:
    """The fields in order. What is no UTF-8 has the character for it in its place."""
    boundary = _BOUNDARY.search(kind)
    if boundary is None:
        raise Invalid("the form cannot be read")
    pieces = (b"\r\n" + content).split(b"\r\n--" + boundary[1].encode(), _MOST_PARTS + 1)
    if not pieces[-1].startswith(b"--"):
        raise Invalid("the form cannot be read")
    found: list[tuple[str, str]] = []
    for piece in pieces[1:-1]:
        head, _, data = piece.partition(b"\r\n\r\n")
        name, filename = _NAME.search(head), _FILENAME.search(head)
        if name is None:
            raise Invalid("the form cannot be read")
        found.append((_text(name[1]), _text(data)))
        if filename is not None:
            found.append((_text(name[1]) + NAMED, _text(filename[1])))
    return found


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")
