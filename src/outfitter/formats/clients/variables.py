"""How clients write variables, and how Outfitter does: ``${env:NAME}``, ``${input:id}``, ``$NAME`` and ``${NAME}``.

Reading gives a template of ``resolution``; what a client would pass on as text is escaped. Writing fills what the
client cannot, or says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from outfitter.basics import quote
from outfitter.catalog import JsonValue
from outfitter.formats.clients.conceal import write_reference
from outfitter.formats.clients.credentials import is_sensitive, mask
from outfitter.formats.clients.dialects import Dialect
from outfitter.formats.clients.naming import Vault, variable_name
from outfitter.formats.clients.values import literal, parts_of
from outfitter.formats.shape import Fields, read_flag, read_items, read_object, read_text
from outfitter.resolution import RuntimeValue, Variable

_TOKEN = re.compile(r"\$\{([^{}]*)\}")
_BARE = re.compile(r"(?<!\$)\$([A-Za-z_][A-Za-z0-9_]*)")
_SHELL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?")
_PREFIXED = re.compile(r"([A-Za-z]+):(.+)", re.DOTALL)
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EDITOR = {
    "workspaceFolder": "WORKSPACE_ROOT",
    "workspaceRoot": "WORKSPACE_ROOT",
    "workspaceFolderBasename": "WORKSPACE_NAME",
    "userHome": "HOME",
    "cwd": "PWD",
}
_FOR_EDITOR = {"WORKSPACE_ROOT": "workspaceFolder", "WORKSPACE_NAME": "workspaceFolderBasename", "HOME": "userHome"}
_SEPARATORS = frozenset({"/", "pathSeparator"})
Inputs: TypeAlias = dict[str, dict[str, JsonValue]]
"""What VS Code is to ask for, by id."""
_RUNTIME = {"runtime.session_id": "AGENT_SESSION_ID", "runner.orchestrator_mcp_url": "AGENT_ORCHESTRATOR_MCP_URL"}


@dataclass(frozen=True, slots=True)
class Input:
    """A value that VS Code asks its user for."""

    variable: str
    description: str
    default: str | None


def read_inputs(fields: Fields) -> dict[str, Input]:
    """VS Code's ``inputs`` by their ids, each with a variable of its own."""
    inputs: dict[str, Input] = {}
    vault = Vault()
    for item in read_items(fields, "inputs", read_object):
        id_ = read_text(item, "id")
        default = item.get("default")
        is_plain = isinstance(default, str) and "{" not in default and "}" not in default
        shown = default if is_plain and not read_flag(item, "password") else None
        inputs[id_] = Input(
            vault.take("", id_), read_text(item, "description"), str(shown) if shown is not None else None
        )
    return inputs


@dataclass(frozen=True, slots=True)
class VariableReader:
    """Reads the texts of one server. ``own`` are the variables that the server's process gets itself."""

    dialect: Dialect
    notes: list[str]
    inputs: Mapping[str, Input] = field(default_factory=dict[str, Input])
    own: frozenset[str] = frozenset()

    def read(self, text: str, place: str) -> str:
        """The text as a template."""
        if self.dialect.bare_dollar and place in self.dialect.expands:
            text = _BARE.sub(r"${\1}", text)
        pieces: list[str] = []
        end = 0
        for token in _TOKEN.finditer(text):
            meaning = self._meaning(token[1], place)
            pieces += literal(text[end : token.start()]), literal(token[0]) if meaning is None else meaning
            end = token.end()
        return "".join([*pieces, literal(text[end:])])

    def _meaning(self, inside: str, place: str) -> str | None:
        """The template for a ``${…}``; None when it is just text to this client."""
        if self.dialect.prefixed:
            special = self._editor_variable(inside)
            if special is not None:
                return special
        shell = _SHELL.fullmatch(inside)
        if shell is None or (place not in self.dialect.expands and place == "args" and inside in self.own):
            return None
        if place not in self.dialect.expands:
            self._note(
                f"{place}: {self.dialect.title} does not fill ${{{shell[1]}}}; Outfitter does, from its environment"
            )
        return f"${{{inside}}}"

    def _editor_variable(self, inside: str) -> str | None:
        if inside in _SEPARATORS:
            return "/"
        if inside in _EDITOR:
            self._note(f"${{{inside}}} is now ${{{_EDITOR[inside]}}}; set it where Outfitter runs")
            return f"${{{_EDITOR[inside]}}}"
        prefixed = _PREFIXED.fullmatch(inside)
        if prefixed is None or ":-" in inside:
            return None
        kind, name = prefixed[1], prefixed[2]
        if kind == "env" and _ENV_NAME.fullmatch(name):
            return f"${{{name}}}"
        return self._input(name) if kind == "input" else self._unknown(kind, name)

    def _input(self, id_: str) -> str:
        known = self.inputs.get(id_) or Input(variable_name(id_), "", None)
        about = f": {quote(mask(known.description))}" if known.description else ""
        self._note(f"${{input:{mask(id_)}}} is now ${{{known.variable}}}; set it where Outfitter runs{about}")
        return write_reference(Variable(known.variable, known.default))

    def _unknown(self, kind: str, name: str) -> str:
        variable = variable_name(kind, name)
        self._note(f"${{{kind}:…}} has no meaning here and is now ${{{variable}}}; set it where Outfitter runs")
        return f"${{{variable}}}"

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def runtime_variable(name: str) -> str:
    """The variable that stands for what Outfitter knows at run time, for a program that does not."""
    return _RUNTIME.get(name) or variable_name(name)


@dataclass(frozen=True, slots=True)
class VariableWriter:
    """Writes the texts of one server; ``inputs`` collects what VS Code is to ask for, for all servers of the file."""

    dialect: Dialect
    server: str
    notes: list[str]
    secrets: frozenset[str] = frozenset()
    inputs: Inputs = field(default_factory=dict[str, dict[str, JsonValue]])

    def write(self, text: str, place: str, *, sensitive: bool = False) -> str:
        """The template as the client writes it."""
        pieces: list[str] = []
        for part in parts_of(text):
            if isinstance(part, str):
                pieces.append(self._text(part, place))
            else:
                pieces.append(self._variable(self._named(part), place, sensitive=sensitive))
        return "".join(pieces)

    def _text(self, text: str, place: str) -> str:
        if "${" in text and place in self.dialect.expands:
            self.notes.append(f"{place}: {self.dialect.title} will take a literal '${{' for a variable")
        return text

    def _named(self, part: Variable | RuntimeValue) -> Variable:
        if isinstance(part, Variable):
            return part
        name = runtime_variable(part.name)
        self.notes.append(
            f"{name} is filled by Outfitter when a run starts; {self.dialect.title} needs it as a variable"
        )
        return Variable(name)

    def _variable(self, variable: Variable, place: str, *, sensitive: bool) -> str:
        if self.dialect.inputs and self._asks_for(variable, sensitive=sensitive):
            return f"${{input:{variable.name.lower()}}}"
        if self.dialect.prefixed:
            if variable.default is not None:
                self.notes.append(f"{place}: {self.dialect.title} knows no default for {variable.name}; set it")
            return f"${{{_FOR_EDITOR.get(variable.name, 'env:' + variable.name)}}}"
        if place in self.dialect.expands:
            return write_reference(variable)
        return self._unfilled(variable, place)

    def _asks_for(self, variable: Variable, *, sensitive: bool) -> bool:
        """Whether VS Code should ask for it: a secret, or a value with a default. Ids are the name in small letters."""
        is_secret = sensitive or variable.name in self.secrets or is_sensitive(variable.name)
        if variable.name != variable_name(variable.name.lower()) or not (is_secret or variable.default is not None):
            return False
        asked: dict[str, JsonValue] = {
            "type": "promptString",
            "id": variable.name.lower(),
            "description": f"{variable.name} for {self.server}",
        }
        asked |= {"password": True} if is_secret else {"default": variable.default}
        if self.inputs.setdefault(variable.name.lower(), asked).get("default") != asked.get("default"):
            self.notes.append(f"{variable.name} has another default elsewhere; {self.dialect.title} asks for it once")
        return True

    def _unfilled(self, variable: Variable, place: str) -> str:
        if variable.default is not None:
            self.notes.append(
                f"{place}: {self.dialect.title} fills no variables; the default of {variable.name} is written"
            )
            return variable.default
        self.notes.append(
            f"{place}: {self.dialect.title} fills no variables here; put the value of {variable.name} there yourself"
        )
        return write_reference(variable)
