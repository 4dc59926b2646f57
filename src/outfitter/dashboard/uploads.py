"""Forms with a file: ``multipart/form-data`` as fields, the file's text as one of them, and its name beside it."""

from __future__ import annotations

from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import HTTP
from typing import cast

from outfitter.errors import Invalid

KIND = "multipart/form-data"
NAMED = "-filename"
"""What the field with a file's name ends in."""


def read_parts(kind: str, content: bytes) -> list[tuple[str, str]]:
    """The fields in order. What is no UTF-8 has the character for it in its place."""
    head = b"content-type: " + kind.encode("latin-1", "replace").replace(b"\n", b" ").replace(b"\r", b" ")
    whole = BytesParser(policy=HTTP).parsebytes(head + b"\r\n\r\n" + content)
    if not whole.is_multipart():
        raise Invalid("the form cannot be read")
    found: list[tuple[str, str]] = []
    for part in cast("list[EmailMessage]", whole.get_payload()):
        name = part.get_param("name", header="content-disposition")
        data = part.get_payload(decode=True)
        if not isinstance(name, str) or not isinstance(data, bytes):
            raise Invalid("the form cannot be read")
        found.append((name, data.decode("utf-8-sig", "replace")))
        filename = part.get_filename()
        if filename:
            found.append((f"{name}{NAMED}", filename))
    return found
