"""Draw the pictures of the documents: ``python docs/pictures.py`` after a change to how things look."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from rich.console import Console

from outfitter.cli.paint import paint_explanation
from outfitter.resolution import explain, resolve
from outfitter.storage import load_catalog

_IMAGES = Path(__file__).parent / "images"
_DEMO = Path(__file__).parents[1] / "src/outfitter/app/demo_catalog"
# No @font-face: a picture must not fetch anything.
_FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg"
xml:space="preserve">
<style>.{unique_id}-matrix {{font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
line-height: {line_height}px; white-space: pre;}} {styles}</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>{lines}</defs>{chrome}<g transform="translate({terminal_x}, {terminal_y})"
clip-path="url(#{unique_id}-clip-terminal)">{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""


def draw(agent: str, name: str) -> None:
    """Draw what explain prints for one demo agent."""
    console = Console(record=True, width=112, file=StringIO(), force_terminal=True, highlight=False)
    paint_explanation(console, explain(resolve(agent, load_catalog(_DEMO))), root=_DEMO)
    console.save_svg(str(_IMAGES / name), title=f"outfitter explain {agent}", code_format=_FRAME, unique_id="explain")


draw("sprint-researcher", "explain.svg")
