"""What a text with ``$field`` becomes once a section's parameters are known.

Read once, filled often. A value is data: whatever it holds is written as it is and never looked at again. Which fields
there are is checked by ``tree``; arguments of servers follow other rules, see ``servers``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

_TOKEN = re.compile(r"\$(?:(?P<escaped>\$)|(?P<named>[A-Za-z_][A-Za-z0-9_]*)|\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)\})")


@dataclass(frozen=True, slots=True)
class Text:
    """A text, cut at its fields: ``$field`` and ``${field}`` stand for values, ``$$`` for a dollar sign."""

    fields: tuple[str, ...]
    """The names it asks for, each once."""
    _form: str
    _values: Callable[[Any], Any] | None
    _is_single: bool

    def fill(self, params: object) -> str:
        """The text with the values of these parameters."""
        if self._values is None:
            return self._form
        found = self._values(params)
        return self._form % ((found,) if self._is_single else found)


def read_text(source: str) -> Text:
    """The text that a source means; a dollar sign that names nothing stands for itself."""
    form: list[str] = []
    names: list[str] = []
    end = 0
    for token in _TOKEN.finditer(source):
        form.append(source[end : token.start()].replace("%", "%%"))
        end = token.end()
        if token["escaped"]:
            form.append("$")
        else:
            names.append(token["named"] or token["braced"])
            form.append("%s")
    form.append(source[end:].replace("%", "%%"))
    written = "".join(form)
    values = attrgetter(*names) if names else None
    return Text(tuple(dict.fromkeys(names)), written if names else written % (), values, len(names) == 1)
