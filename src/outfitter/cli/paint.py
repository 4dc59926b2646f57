"""An explanation laid out for a terminal: a tree of servers, headers and tools with their sources."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from outfitter.basics import Origin
from outfitter.catalog import PinMode
from outfitter.cli.console import visible
from outfitter.resolution import (
    ExplainedHeader,
    ExplainedServer,
    ExplainedTool,
    Explanation,
    WhyNot,
    describe_governing,
    describe_override,
    describe_rule,
)

_NAME, _VALUE, _SOURCE, _OLD, _BAD, _GOOD = "bold cyan", "bold", "dim", "dim strike", "red", "green"


class _Painter:
    """Paints with paths shown from the catalog folder."""

    def __init__(self, root: Path | None) -> None:
        self._root = "" if root is None else f"{root}/"

    def origin(self, origin: Origin) -> str:
        """Say who, with the file as seen from the catalog folder."""
        where = origin.where.removeprefix(self._root)
        shown = Origin(origin.level, origin.name, where, None)
        inherited = f", which had it from {self.origin(origin.via)}" if origin.via else ""
        return visible(f"{shown}{inherited}")

    def words(self, text: str) -> str:
        """A sentence with paths shortened."""
        return visible(text.replace(self._root, "") if self._root else text)

    def server(self, tree: Tree, server: ExplainedServer) -> None:
        """One branch per server."""
        ref = f" → {server.ref}" if server.ref and server.ref != server.alias else ""
        title = Text.assemble(
            (server.alias, _NAME), ref, "  ", (server.transport, "magenta"), "  ", visible(server.target)
        )
        branch = tree.add(title)
        branch.add(Text(f"given by {', '.join(self.origin(origin) for origin in server.uses)}", style=_SOURCE))
        for header in server.headers:
            self.header(branch, header)
        for header in server.removed:
            leaf = branch.add(Text.assemble((header.name, _NAME), ("  removed", _BAD)))
            leaf.add(Text(f"by {self.origin(header.origin)}", style=_SOURCE))
            self.overruled(leaf, header)
        for name in server.missing:
            branch.add(Text.assemble((name, _NAME), ("  required, and no level gives it: a run must", _BAD)))
        self.tools(branch, server)
        if server.fallback:
            branch.add(Text(f"while it is not available: {visible(server.fallback)}", style=_SOURCE))
        self.governing(branch, server)

    def governing(self, branch: Tree, server: ExplainedServer) -> None:
        """When its tools count as approved, whether it is believed, what is said otherwise about its tools."""
        if server.pins is not PinMode.FIRST_USE:
            branch.add(Text(f"pins: {server.pins.value}", style=_SOURCE))
        if server.trusted:
            branch.add(Text("what it says of its own tools is believed", style=_SOURCE))
        for tool, override in server.overrides.items():
            words = f"{visible(tool)}: {visible(describe_override(override.value))}"
            origin = f"  from {self.origin(override.origin)}"
            branch.add(Text.assemble(("override ", "yellow"), words, (origin, _SOURCE)))

    def header(self, branch: Tree, header: ExplainedHeader) -> None:
        """One header: value, flags, source, what it overruled."""
        flags = f"  [{', '.join(header.flags)}]" if header.flags else ""
        leaf = branch.add(
            Text.assemble((header.name, _NAME), ": ", (visible(header.value or ""), _VALUE), (flags, _SOURCE))
        )
        note = f"; {self.words(header.note)}" if header.note else ""
        leaf.add(Text(f"from {self.origin(header.origin)}{note}", style=_SOURCE))
        for key, origin in (header.members or {}).items():
            leaf.add(Text(f"member {visible(key)} from {self.origin(origin)}", style=_SOURCE))
        self.overruled(leaf, header)

    def overruled(self, leaf: Tree, header: ExplainedHeader) -> None:
        """What did not stand, latest first."""
        for value, origin in reversed(header.overruled):
            leaf.add(
                Text.assemble(
                    ("overrides ", _SOURCE), (visible(value), _OLD), (f" from {self.origin(origin)}", _SOURCE)
                )
            )

    def tools(self, branch: Tree, server: ExplainedServer) -> None:
        """The tools it gets, those it does not, and the rules calls are held to."""
        if server.tools is None:
            branch.add(self.filters(server))
        else:
            offered = [tool for tool in server.tools if tool.is_offered]
            leaf = branch.add(Text(f"tools: {len(offered)} of {len(server.tools)}", style=_GOOD))
            if offered:
                leaf.add(Text(", ".join(visible(tool.shown or tool.name) for tool in offered)))
            self.hidden(leaf, server.tools)
        for rules in server.rules:
            for rule in rules.rules:
                words = f"{', '.join(rule.tools)}: {describe_rule(rule)}"
                branch.add(
                    Text.assemble(("rule ", "yellow"), visible(words), (f"  from {self.origin(rules.origin)}", _SOURCE))
                )

    def hidden(self, leaf: Tree, tools: tuple[ExplainedTool, ...]) -> None:
        """The tools that are kept out, together by the gate that does it."""
        by_gate: dict[str, list[str]] = {}
        for tool in tools:
            if not tool.is_offered:
                by_gate.setdefault(tool.gate, []).append(visible(tool.name))
        for gate, names in by_gate.items():
            leaf.add(Text.assemble((f"not {', '.join(names)}", _BAD), (f": {self.words(gate)}", _SOURCE)))

    def filters(self, server: ExplainedServer) -> Text:
        """What can be said about tools when the server's list is not known."""
        if not server.gates:
            return Text("tools: all (the server's list is not known here)", style=_GOOD)
        parts: list[str] = []
        for gate in server.gates:
            include = "all" if gate.filter.include is None else ", ".join(gate.filter.include) or "none"
            without = f" without {', '.join(gate.filter.exclude)}" if gate.filter.exclude else ""
            parts.append(f"{include}{without} ({self.origin(gate.origin)})")
        return Text(f"tools: {'; then '.join(parts)}", style=_GOOD)


def paint_explanation(console: Console, explanation: Explanation, *, root: Path | None = None) -> None:
    """Print a whole plan."""
    painter = _Painter(root)
    role = f"  role {explanation.role}" if explanation.role else ""
    where = painter.words(explanation.where)
    tree = Tree(Text.assemble((explanation.agent, "bold"), visible(role), (f"  {where}", _SOURCE)), guide_style="dim")
    for server in explanation.servers:
        painter.server(tree, server)
    if not explanation.servers:
        tree.add(Text("no servers, no tools", style=_BAD))
    for words in describe_governing(explanation.governed):
        tree.add(Text(words, style=_SOURCE))
    for notice in explanation.notices:
        tree.add(Text(f"note [{notice.code}] {painter.words(notice.message)}", style="yellow"))
    console.print(tree)
    console.print()


def paint_why_not(console: Console, agent: str, answers: tuple[WhyNot, ...], *, root: Path | None = None) -> None:
    """Print every answer about a name."""
    painter = _Painter(root)
    for answer in answers:
        has = ("has it", _GOOD) if answer.has_it else ("does not have it", _BAD)
        on = f" of server '{answer.server}'" if answer.server and answer.kind != "server" else ""
        what = "" if answer.kind == "unknown" else f"{answer.kind} "
        console.print(Text.assemble(f"{what}{visible(answer.name)}{on}: agent '{agent}' ", has))
        console.print(Text(f"  because: {painter.words(answer.reason)}"))
        if answer.remedy:
            console.print(Text(f"  to change it: {painter.words(answer.remedy)}", style=_SOURCE))
