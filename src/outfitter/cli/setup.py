"""Commands that make things: a catalog folder, the demo, a shell's completion script."""

from __future__ import annotations

import click

from outfitter.app import GITIGNORE, write_demo
from outfitter.cli.console import folder, json_option, make_console, print_json
from outfitter.cli.paint import paint_explanation
from outfitter.resolution import explain, resolve
from outfitter.storage import AGENTS, CAPABILITIES, SERVERS, write_files


@click.command("init")
@click.option("--demo", is_flag=True, help="Fill it with the demo catalog.")
@json_option
def init_command(demo: bool, as_json: bool) -> None:
    r"""Make a catalog folder. One that exists is left as it is.

    \b
    Examples:
      outfitter init
      outfitter --catalog team init --demo
    """
    place = folder()
    is_new = not place.exists()
    if is_new and demo:
        write_demo(place)
    elif is_new:
        for kind in (SERVERS, CAPABILITIES, AGENTS):
            (place.path / kind).mkdir(parents=True, exist_ok=True)
        write_files({place.path / ".gitignore": GITIGNORE})
    if as_json:
        print_json({"catalog": str(place.path), "created": is_new})
    elif is_new:
        click.echo(f"Made {place.path}/ with {SERVERS}/, {CAPABILITIES}/ and {AGENTS}/.")
        click.echo("Next: 'outfitter import .mcp.json', or write files by hand, then 'outfitter validate'.")
    else:
        click.echo(f"{place.path}/ holds a catalog already; nothing was changed.")


@click.command("demo")
@json_option
def demo_command(as_json: bool) -> None:
    r"""Write the demo catalog if there is none, and explain the plan of each of its agents.

    \b
    Examples:
      outfitter demo
      outfitter demo --json
    """
    place = folder()
    is_new = write_demo(place)
    catalog = place.load()
    explanations = [explain(resolve(agent, catalog)) for agent in catalog.agents.values()]
    if as_json:
        print_json({"catalog": str(place.path), "created": is_new, "agents": [e.to_json() for e in explanations]})
        return
    console = make_console()
    for explanation in explanations:
        paint_explanation(console, explanation, root=place.path)
    verb = "Wrote the demo catalog to" if is_new else "This is the catalog in"
    click.echo(f"{verb} {place.path}/: {len(catalog.agents)} agents, {len(catalog.servers)} servers.")
    first = next(iter(catalog.agents), "AGENT")
    click.echo(f"Try: outfitter explain {first}   outfitter why-not {first} NAME   outfitter doctor")


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    r"""Print the completion script of a shell.

    \b
    Examples:
      outfitter completion bash >> ~/.bashrc
      outfitter completion fish > ~/.config/fish/completions/outfitter.fish
    """
    from click.shell_completion import get_completion_class

    from outfitter.cli.main import cli

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(found(cli, {}, "outfitter", "_OUTFITTER_COMPLETE").source())
