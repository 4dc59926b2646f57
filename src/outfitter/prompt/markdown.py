"""A section whose text is written as Markdown with ``$field`` for its parameters."""

from __future__ import annotations

import textwrap
from typing import Self, TypeVar, Unpack, overload

from outfitter.prompt.section import Section, SectionOptions
from outfitter.prompt.text import read_text

P = TypeVar("P")


class MarkdownSection(Section[P]):
    """A section made of a template: dedented, ``$field`` and ``${field}`` filled in, ``$$`` for a dollar sign."""

    @overload
    def __init__(
        self: MarkdownSection[None], *, title: str, template: str, key: str, **options: Unpack[SectionOptions]
    ) -> None: ...
    @overload
    def __init__(self, *, title: str, template: str, key: str, **options: Unpack[SectionOptions]) -> None: ...
    def __init__(self, *, title: str, template: str, key: str, **options: Unpack[SectionOptions]) -> None:
        """Read the template; which fields there are is checked when it comes into a prompt."""
        super().__init__(title=title, key=key, **options)
        self._write(template)

    def _write(self, template: str) -> None:
        self.template = template
        self._source = textwrap.dedent(template).strip()
        self._text = read_text(self._source)

    @property
    def source_text(self) -> str:
        """The dedented template."""
        return self._source

    def render_body(self, params: P | None) -> str:
        """The template with the values of the parameters."""
        return self._text.fill(params)

    def clone(self, **changes: object) -> Self:
        """Another section like this one, with clones of its children and these arguments changed."""
        template = str(changes.pop("template", self.template))
        fresh = super().clone(**changes)
        fresh._write(template)  # noqa: SLF001 - the clone is of this class
        return fresh
