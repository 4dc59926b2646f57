"""Commands between a catalog folder and this machine's registry: apply, drift, and the export of the whole.

What differs is found by the coordinator's ``Files``; here it is printed.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import anyio
import click

from outfitter.app import bundle_of, has_registry, open_files, read_catalog, write_catalog
from outfitter.catalog import Catalog
from outfitter.cli.console import json_option, print_json, settings, visible
from outfitter.errors import NotFound
from outfitter.storage import CatalogFolder

if TYPE_CHECKING:
    from outfitter.coordinator import Difference, Exported, FilePlan, Step

_SIGNS = {"create": "+", "update": "~", "delete": "-"}
_LONGEST = 200
_FILE = click.option(
    "-f", "--file", "place", type=click.Path(exists=True, path_type=Path), required=True, metavar="DIR|FILE",
    help="A catalog folder, one file of it, or a bundle.",
)  # fmt: skip


@click.command("apply")
@_FILE
@click.option("--dry-run", is_flag=True, help="Show the plan and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--prune", is_flag=True, help="Take away what the folder does not have.")
@click.option("--approve", is_flag=True, help="Approve the commands that it brings, as they are shown.")
@json_option
def apply_command(place: Path, dry_run: bool, yes: bool, prune: bool, approve: bool, as_json: bool) -> None:
    r"""Make this machine's registry like a catalog folder: the plan first, then all or nothing.

    A secret that stands in a file as ******** keeps what is stored. A program is not started before its command is
    approved. When the registry changes between the plan and your answer, nothing is applied.

    \b
    Examples:
      outfitter apply -f outfitter --dry-run
      outfitter apply -f outfitter/agents/tester.json --yes
      outfitter apply -f outfitter --prune --approve
    """
    if as_json and not (yes or dry_run):
        raise click.UsageError("with --json say --yes or --dry-run")
    catalog, confirmed = read_catalog(place), None
    if dry_run or not yes:
        plan = anyio.run(partial(_plan, catalog, prune=prune))
        if not as_json:
            _print_plan(plan)
        if dry_run or not plan.changes:
            _print_json(plan, as_json=as_json)
            return
        click.confirm("Apply it?", abort=True)
        confirmed = plan.revision
    plan, waiting = anyio.run(partial(_apply, catalog, prune=prune, approve=approve, confirmed=confirmed))
    _print_json(plan, as_json=as_json, applied=True, waiting=list(waiting))
    if as_json:
        return
    if yes:
        _print_plan(plan)
    click.echo("Applied." if plan.changes else "Nothing to do.")
    for name in waiting:
        click.echo(_waits(name))


@click.command("drift")
@_FILE
@json_option
def drift_command(place: Path, as_json: bool) -> None:
    r"""Say where this machine's registry and a catalog folder differ; exit code 1 when they do.

    What is marked + is in the folder only, - in the registry only, ~ in both and differs: the registry's value first.

    \b
    Examples:
      outfitter drift -f outfitter
      outfitter drift -f outfitter --json
    """
    _need_registry()
    plan = anyio.run(partial(_plan, read_catalog(place), prune=place.is_dir()))
    _print_json(plan, as_json=as_json)
    if not as_json:
        _print_steps(plan)
        click.echo(f"{len(plan.changes)} entries differ." if plan.changes else "They are the same.")
    if plan.changes:
        raise click.exceptions.Exit(1)


def export_catalog(target: str, *, as_json: bool) -> None:
    """Write the registry as a catalog folder, or print it as one bundle."""
    _need_registry()
    place = CatalogFolder(Path(target))
    exported = anyio.run(_export, place.load() if target != "-" and place.exists() else None)
    if target == "-":
        print_json(bundle_of(exported))
    else:
        written = write_catalog(exported, Path(target))
        if as_json:
            print_json({"written": [str(path) for path in written], "masked": list(exported.hidden)})
        else:
            click.echo(f"Wrote {len(written)} files to {target}; {len(exported.documents) - len(written)} unchanged.")
    if exported.hidden and not (as_json and target != "-"):
        click.echo(f"note: {len(exported.hidden)} secrets are masked: {', '.join(exported.hidden)}", err=True)


def _need_registry() -> None:
    if not has_registry(settings()):
        raise NotFound("there is no registry here", hint="'outfitter up' and 'outfitter apply -f DIR' make one")


async def _plan(catalog: Catalog, *, prune: bool) -> FilePlan:
    with TemporaryDirectory() as nowhere:  # a plan makes no registry where there is none
        chosen = settings() if has_registry(settings()) else replace(settings(), state=Path(nowhere))
        async with open_files(chosen) as files:
            return await files.plan(catalog, prune=prune)


def _waits(name: str) -> str:
    kind, _, agent = name.rpartition("/")
    if kind:
        return f"The executor of agent '{agent}' waits for approval: outfitter agents approve {agent}"
    return f"The command of server '{name}' waits for approval: outfitter servers approve {name}"


async def _apply(
    catalog: Catalog, *, prune: bool, approve: bool, confirmed: int | None
) -> tuple[FilePlan, tuple[str, ...]]:
    from outfitter.coordinator import Author

    me = Author("local", is_admin=True)
    async with open_files(settings()) as files:
        return await files.apply(catalog, me, prune=prune, approve=approve, confirmed=confirmed)


async def _export(existing: Catalog | None) -> Exported:
    async with open_files(settings()) as files:
        return await files.export(existing)


# ── printing ──


def _print_plan(plan: FilePlan) -> None:
    _print_steps(plan)
    counts = [f"{plan.count(action)} to {action}" for action in ("create", "update", "delete")]
    click.echo(f"Plan: {', '.join(counts)}, {plan.count('unchanged')} unchanged.")


def _print_steps(plan: FilePlan) -> None:
    for step in plan.changes:
        click.echo(visible(f"{_SIGNS[step.action]} {step.name.kind}/{step.name.id}"))
        for difference in step.differences if step.action == "update" else ():
            click.echo(f"    {_line(difference)}")
        if step.command is not None:
            click.echo(visible(f"    a command to approve: {step.command}"))


def _line(difference: Difference) -> str:
    if difference.before == difference.after:
        return visible(f"{difference.path}: another secret")
    return visible(f"{difference.path}: {_short(difference.before)} -> {_short(difference.after)}").replace("\n", " ")


def _short(value: object) -> str:
    text = "(none)" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _print_json(plan: FilePlan, *, as_json: bool, applied: bool = False, waiting: list[str] | None = None) -> None:
    if as_json:
        steps = [_step_json(step) for step in plan.steps]
        print_json({"steps": steps, "applied": applied, "waiting_for_approval": waiting or []})


def _step_json(step: Step) -> dict[str, Any]:
    fields = [{"path": one.path, "before": one.before, "after": one.after} for one in step.differences]
    return {
        "kind": step.name.kind,
        "id": step.name.id,
        "action": step.action,
        "fields": fields,
        "command": step.command,
    }
