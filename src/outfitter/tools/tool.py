"""What a tool is: a name and description for the model, a form of its arguments, and a handler.

Tools of our own process and tools of MCP servers are the same type; only ``server`` tells them apart. Calling one is
``execution``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar, get_args

from outfitter.basics import quote
from outfitter.calls import CallSource, marks_secrets
from outfitter.catalog import JsonValue
from outfitter.errors import InvalidTool
from outfitter.policy import ToolPolicy
from outfitter.schemas import Shape, shape_of
from outfitter.tools.handlers import Handler, adapt, handler_of, params_type_of

P = TypeVar("P")
R = TypeVar("R")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


@dataclass(eq=False)
class Tool(Generic[P, R]):
    """One thing a model can call. Write ``Tool[Params, Result](name, description, handler)`` or use ``Tool.wrap``.

    ``handler(params, *, context)`` returns a ToolResult, or just a value; it may be a coroutine function.
    ``is_bounded`` says that the handler keeps the time limit by itself. ``compensate`` is called with the same
    arguments when this tool fails.
    """

    name: str
    description: str
    handler: Callable[..., Any]
    _: KW_ONLY
    arguments: Shape | None = field(default=None, repr=False)
    """The form of the arguments; read from the type parameter or the handler when it is not given."""
    value: Shape | None = field(default=None, repr=False)
    """The form of the result's value, where one is promised."""
    async_handler: Callable[..., Any] | None = field(default=None, repr=False)
    server: str | None = None
    tool: str = ""
    """Its own name, where ``name`` carries a prefix."""
    title: str = ""
    annotations: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue], repr=False)
    reads_only: bool = False
    """Whether it only reads: what a server says of its tool counts only where the server is trusted."""
    policies: tuple[ToolPolicy, ...] = field(default=(), repr=False)
    fallback: str = field(default="", repr=False)
    """What the model is told to do instead when the tool's server is not available."""
    timeout: float | None = None
    is_bounded: bool = False
    is_free: bool = False
    """Whether no policy has a say about it: every call that it makes in its turn is judged by itself."""
    compensate: Tool[Any, Any] | None = field(default=None, repr=False)
    accepts_overrides: bool = True
    runner: Handler = field(init=False, repr=False)
    """How the handler is called."""
    async_runner: Handler | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        """Refuse what no model could call."""
        if _NAME.fullmatch(self.name) is None:
            hint = "letters, digits, '_' and '-', at most 64 characters"
            raise InvalidTool(f"invalid tool name {quote(self.name)}", hint=hint)
        if not callable(self.handler):
            raise InvalidTool(f"tool '{self.name}' has no handler", hint="give a function: handler(params, *, context)")
        if self.timeout is not None and not self.timeout > 0:
            raise InvalidTool(
                f"tool '{self.name}': a time limit of {self.timeout!r} s", hint="give more than 0, or None"
            )
        self.tool = self.tool or self.name
        self.runner = handler_of(self.handler, self.name)
        self.async_runner = None if self.async_handler is None else handler_of(self.async_handler, self.name)

    @classmethod
    def wrap(cls, function: Callable[..., Any]) -> Tool[Any, Any]:
        """The tool of a function: its name, its docstring, and its ``params`` dataclass or plain parameters."""
        description = inspect.getdoc(function) or ""
        if not description:
            raise InvalidTool(
                f"'{function.__name__}' has no docstring", hint="its docstring tells the model what it does"
            )
        return Tool[Any, Any](function.__name__, description, adapt(function))

    @cached_property
    def params(self) -> Shape:
        """The form of its arguments."""
        if self.arguments is not None:
            return self.arguments
        declared = get_args(getattr(self, "__orig_class__", None))
        named = declared and not isinstance(declared[0], TypeVar) and declared[0] is not Any
        return shape_of(declared[0] if named else params_type_of(self.handler, self.name))

    @property
    def params_type(self) -> Any:  # noqa: ANN401 - any dataclass, or None
        """The type of its arguments."""
        return self.params.type

    @property
    def input_schema(self) -> Mapping[str, JsonValue]:
        """The JSON Schema of its arguments, for a model."""
        return self.params.schema

    @cached_property
    def secret_marks(self) -> Mapping[str, JsonValue] | None:
        """The schema, when it marks any argument as a secret."""
        schema = self.params.schema
        return schema if marks_secrets(schema) else None

    @property
    def source(self) -> CallSource:
        """Where it lives: in our own process, or at an MCP server."""
        return "native" if self.server is None else "mcp"
