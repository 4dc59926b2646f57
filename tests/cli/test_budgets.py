"""``outfitter budgets``: how far budgets are used, and one that begins anew."""

from __future__ import annotations

import pytest

from tests.cli.terminal import Terminal


@pytest.mark.promise("BUD-07")
def test_budgets_are_shown_and_begun_anew(terminal: Terminal) -> None:
    budgets = {"calls_per_day": 5, "tokens_per_run": 100, "repeats": 3, "per_server": {"x": {"calls_per_hour": 2}}}
    terminal.write("outfitter/agents/coder.json", {"name": "coder", "budgets": budgets})
    terminal.write("outfitter/agents/free.json", {"name": "free"})
    shown = terminal.run("budgets")
    assert shown.code == 0, shown.err
    assert [line.split()[:2] for line in shown.out.splitlines() if line.startswith("coder")] == [
        ["coder", "calls_per_day"],
        ["coder", "tokens_per_run"],
        ["coder", "calls_per_hour"],
        ["coder", "repeats"],
    ]
    named = terminal.run("budgets", "coder", "--run", "r1", "--json").json()
    assert [(one["budget"], one["used"]) for one in named["agents"][0]["budgets"]] == [
        ("calls_per_day", 0),
        ("tokens_per_run", 0),
        ("calls_per_hour", 0),
        ("repeats", 0),
    ]
    done = terminal.run("budgets", "coder", "--reset", "calls_per_hour", "--for", "x")
    assert "calls_per_hour for x of agent 'coder' begins anew; 0 of 2 were used." in done.out
    assert terminal.run("budgets", "coder", "--json").json()["resets"][0]["scope"] == "x"


def test_a_budget_that_is_not_there_is_said(terminal: Terminal) -> None:
    terminal.write("outfitter/agents/coder.json", {"name": "coder", "budgets": {"tokens_per_run": 100}})
    assert "did you mean 'coder'?" in terminal.run("budgets", "codr").err
    assert terminal.run("budgets", "--reset", "all").code == 2
    missing = terminal.run("budgets", "coder", "--reset", "tokens_per_run")
    assert missing.code == 4
    assert "one of a run is named with the run" in missing.err
