"""A prompt as it is written: sections, checked together once, that can be rendered with any parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar, overload

from outfitter.basics import quote
from outfitter.errors import PromptValidationError
from outfitter.prompt.output import StructuredOutput, output_of
from outfitter.prompt.params import declared_argument
from outfitter.prompt.rendered import PromptDescriptor
from outfitter.prompt.rendering import check_reserved
from outfitter.prompt.section import Section, check_key, redefines
from outfitter.prompt.tree import grow_tree

T = TypeVar("T")
_NS = re.compile(r"[a-z0-9][a-z0-9._/-]{0,127}", re.ASCII)


class PromptTemplate(Generic[T]):
    """Sections under a namespace and key. ``PromptTemplate[Output]`` asks the model for that dataclass.

    ``strict_mcps`` refuses two different servers of one name, instead of a warning for the second.
    """

    @overload
    def __init__(
        self: PromptTemplate[None], *, ns: str, key: str, sections: Sequence[Section[Any]], name: str | None = None,
        strict_mcps: bool = False,
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self, *, ns: str, key: str, sections: Sequence[Section[Any]], name: str | None = None, strict_mcps: bool = False
    ) -> None: ...
    def __init__(
        self, *, ns: str, key: str, sections: Sequence[Section[Any]], name: str | None = None, strict_mcps: bool = False
    ) -> None:
        """Check that the sections fit together; PromptValidationError says where they do not."""
        if _NS.fullmatch(ns) is None:
            hint = "use lower-case letters, digits, '.', '_', '-' and '/', start with a letter or digit"
            raise PromptValidationError(f"namespace {quote(ns)} is not valid", hint=hint)
        self.ns = ns
        self.key = check_key(key, "prompt key")
        self.name = name or key
        self.strict_mcps = strict_mcps
        self.sections = grow_tree(sections)
        self.param_types = frozenset(node.params_type for node in self.sections if node.params_type is not None)
        self.descriptor = PromptDescriptor(ns, key, {node.name: node.hash for node in self.sections})
        for node in self.sections:
            if not redefines(node.section, "tools"):
                for tool in node.section.tools():
                    check_reserved(tool, node.name)

    @property
    def id(self) -> str:
        """The namespace and key together."""
        return f"{self.ns}:{self.key}"

    @cached_property
    def structured_output(self) -> StructuredOutput[T] | None:
        """The form the model is asked for; None when any text will do."""
        return output_of(declared_argument(self), f"prompt '{self.id}'")

    @cached_property
    def ending(self) -> str | None:
        """The text that tells the model the form."""
        return None if self.structured_output is None else self.structured_output.instructions()
