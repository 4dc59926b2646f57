"""Rendering a prompt of 50 sections, against joining the same texts filled by ``string.Template``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from string import Template
from textwrap import dedent

from benchmarks.measure import Ratio, compare
from outfitter.prompt import MarkdownSection, MCPServer, Prompt, PromptTemplate

_SECTIONS = 50
_LIMIT = 3.0
_LINEAR = 13.0
_TEXT = """
    Work on the repository at $path, on the branch ${branch}.
    Read before you write. Say what you changed and why.
"""


@dataclass(frozen=True)
class Workplace:
    """What the sections are filled with."""

    path: str
    branch: str


_PLACE = Workplace("/srv/repository", "main")


def make_prompt(sections: int) -> Prompt[None]:
    """A prompt of so many sections, every fifth with a server of its own."""
    template = PromptTemplate(
        ns="bench",
        key="prompt",
        sections=[
            MarkdownSection[Workplace](
                title=f"Part {number}",
                key=f"part-{number}",
                template=_TEXT,
                mcps=[MCPServer.uvx(f"git-{number}", "mcp-server-git")] if number % 5 == 0 else (),
            )
            for number in range(sections)
        ],
    )
    return Prompt(template, _PLACE)


def measure() -> Iterator[Ratio]:
    """The ratio of the issue, and growth with ten times the sections."""
    prompt, large = make_prompt(_SECTIONS), make_prompt(10 * _SECTIONS)
    fields = {"path": _PLACE.path, "branch": _PLACE.branch}
    templates = [Template(f"## Part {number}\n\n{dedent(_TEXT).strip()}") for number in range(_SECTIONS)]

    def join() -> str:
        return "\n\n".join(template.substitute(fields) for template in templates)

    assert prompt.render().text == join()
    rendered, joined = compare(prompt.render, join)
    yield Ratio("render 50 sections, 10 servers", rendered, joined, "string.Template and join", _LIMIT)
    ten, one = compare(large.render, prompt.render, rounds=7)
    yield Ratio("render 500 sections (10 ×)", ten, one, "render 50 sections", _LINEAR)
