"""Policies about the order of calls: this only after that, write only what was read."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from outfitter.calls import Call, Done, Outcome
from outfitter.policy.decisions import Allow, Decision, Deny
from outfitter.policy.policies import Facts


@dataclass(frozen=True, slots=True)
class SequentialDependencyPolicy:
    """A tool may be called only after each tool it depends on has succeeded in this session.

    A tool's own name (``diff``) speaks of the same server as the call; the name a model sees (``git_diff``) of any.
    """

    dependencies: Mapping[str, AbstractSet[str]]
    name: str = "sequential-dependency"

    def check(self, call: Call, facts: Facts) -> Decision:
        """Deny while a tool that must come first has not succeeded."""
        wanted = {tool for name in call.names for tool in self.dependencies.get(name, ())}
        missing = sorted(tool for tool in wanted if tool not in facts and _own(call, tool) not in facts)
        if missing:
            return Deny(f"'{call.name}' needs {' and '.join(map(repr, missing))} to succeed first")
        return Allow()

    def on_result(self, call: Call, outcome: Outcome, facts: Facts) -> Facts:
        """Remember a success under both names of the tool."""
        return facts | {call.name, _own(call, call.tool)} if isinstance(outcome, Done) else facts


def _own(call: Call, tool: str) -> str:
    """A tool's own name together with the server it belongs to; no name a model sees has a slash."""
    return f"{call.server or ''}/{tool}"


@dataclass(frozen=True, slots=True)
class ReadBeforeWritePolicy:
    """A path may be written only after it was read (or written) in this session.

    A path argument may be a list of paths. ``exists`` lets new files be written without reading: paths for which it
    says no are not held back.
    """

    read_tools: AbstractSet[str] = frozenset({"read_file", "read_text_file"})
    write_tools: AbstractSet[str] = frozenset({"write_file", "edit_file"})
    path_arguments: tuple[str, ...] = ("path", "file_path")
    exists: Callable[[str], bool] | None = None
    name: str = "read-before-write"

    def check(self, call: Call, facts: Facts) -> Decision:
        """Deny a write to a path that is not known yet."""
        if not call.names & self.write_tools:
            return Allow()
        paths = list(self._paths(call))
        if not paths:
            return Deny(f"'{call.name}' names no path in {' or '.join(map(repr, self.path_arguments))}")
        unread = [path for path in paths if path not in facts and (self.exists is None or self.exists(path))]
        return Deny(f"read '{unread[0]}' before writing it") if unread else Allow()

    def on_result(self, call: Call, outcome: Outcome, facts: Facts) -> Facts:
        """Remember the paths that were read or written."""
        if isinstance(outcome, Done) and call.names & (self.read_tools | self.write_tools):
            return facts | frozenset(self._paths(call))
        return facts

    def _paths(self, call: Call) -> Iterator[str]:
        for argument in self.path_arguments:
            value = call.arguments.get(argument)
            for path in value if isinstance(value, list) else [value]:
                if isinstance(path, str):
                    yield posixpath.normpath(path.replace("\\", "/"))
