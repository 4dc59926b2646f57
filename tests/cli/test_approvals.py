"""Calls that wait for a person, at the command line."""

from __future__ import annotations

import getpass
import json
import os
import signal
import subprocess
import sys
from contextlib import closing

import pytest

from outfitter.policy import Wish
from outfitter.storage import Approval, ApprovalStore
from tests.cli.terminal import Terminal

WISH = Wish("tester", "github", "delete_repo", "d", reason="it deletes", arguments={"repo": "shop"}, asked_by="tok")


def asked(store: ApprovalStore, wish: Wish = WISH) -> Approval:
    found = store.ask(wish, 60.0)
    assert found is not None
    return found


@pytest.mark.promise("APPROVAL-CLI")
def test_calls_are_listed_shown_and_answered(terminal: Terminal) -> None:
    with closing(ApprovalStore(terminal.folder / ".local" / "state" / "outfitter" / "approvals")) as store:
        one = asked(store)
        words = (one.id, "tester", 'github/delete_repo {"repo": "shop"}', "it deletes")
        listed = terminal.run("approvals", "list", "--all").out
        assert all(word in listed for word in words)
        assert "asked by: tok" in terminal.run("approvals", "show", one.id).out
        said = terminal.run("approvals", "approve", one.id)
        assert said.out == "Approved github/delete_repo of agent 'tester'.\n"
        used = store.take(one.id)
        assert (used.state, used.decided_by, used.decided_where) == ("used", getpass.getuser(), "command line")
        other = asked(store)
        store.leave(other.id)
        assert "it counts for the next equal call" in terminal.run("approvals", "deny", other.id).out


@pytest.mark.promise("APPROVAL-CLI")
def test_watching_shows_each_call_as_it_comes(terminal: Terminal) -> None:
    state = terminal.folder / "state"
    command = [sys.executable, "-m", "outfitter", "approvals", "list", "--watch", "--json"]
    environment = {**os.environ, "OUTFITTER_STATE": str(state)}
    with (
        closing(ApprovalStore(state / "approvals")) as store,
        subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process,
    ):
        assert process.stdout is not None
        one = asked(store)
        assert json.loads(process.stdout.readline())["id"] == one.id
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
