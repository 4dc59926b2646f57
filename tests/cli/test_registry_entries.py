"""Entries of the registry from the command line: where they come from, how they change, what is never shown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.registry_kit import Shell, local_shell
from tests.cli.terminal import open_terminal

URL = "http://localhost:9501/mcp"
SECRET = "CANARY-51c2"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A registry of this machine with one server, which has a secret."""
    made = local_shell(tmp_path).with_token(None)
    made.done("servers", "add", "store", "--url", URL, "--secret-header", "X-API-Key=env:KEY", KEY=SECRET)
    return made


def editor(shell: Shell, *lines: str) -> str:
    """A program that works on the text as a person would in an editor."""
    body = "\n".join(lines)
    code = (
        f"import sys, pathlib\npath = pathlib.Path(sys.argv[1])\ntext = path.read_text()\n{body}\npath.write_text(text)"
    )
    file = shell.write("editor.py", code)
    return f"{sys.executable} {file}"


@pytest.mark.promise("CLI-SECRETS")
def test_no_command_shows_a_secret_that_the_registry_keeps(shell: Shell) -> None:
    shell.done("agents", "add", "a", "--use", "store")
    for line in (
        "servers list --json", "servers show store", "servers show store --record --json",
        "servers history store --diff", "servers history store --json", "agents resolve a",
        "agents resolve a --explain --json", "resolve a --json",
        "events --after 0 --no-follow --json", "audit changes --json", "servers edit store --set /description=x",
        "servers rollback store 1 --json", "runs start a --prompt hi --json", "sessions list --json",
        "runs list --json",
    ):  # fmt: skip
        printed = shell.run(*line.split())
        assert printed.code == 0, (line, printed)
        assert SECRET not in printed.out + printed.err, line
    assert "********" in shell.done("servers", "show", "store")
    files = [file for file in shell.state.rglob("*") if file.is_file()]
    assert files
    assert not any(SECRET.encode() in file.read_bytes() for file in files)


@pytest.mark.parametrize(
    "line",
    [
        f"servers add x --url {URL} --header X-API-Key={SECRET}",
        f"servers edit store --set /default_headers/Authorization={SECRET}",
        f'servers edit store --set /default_headers={{"Authorization":"{SECRET}"}}',
        f"runs start a --prompt hi --header store:X-API-Key={SECRET}",
    ],
)
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(shell: Shell, line: str) -> None:
    printed = shell.run(*line.split())
    assert (printed.code, "looks like a secret" in printed.err) == (3, True)
    assert SECRET not in printed.out + printed.err


def test_a_reference_to_a_secret_may_stand_on_the_command_line(shell: Shell) -> None:
    shell.done("servers", "add", "x", "--url", URL, "--header", "X-API-Key=${KEY}")
    assert "X-API-Key: ${KEY}" in shell.done("servers", "show", "x")
    headers = '/default_headers={"X-API-Key":"${OTHER}","Authorization":{"$secret":"file:key"}}'
    shell.done("servers", "edit", "x", "--set", headers)


def test_a_secret_can_be_given_on_standard_input(shell: Shell) -> None:
    shell.done("servers", "add", "x", "--url", URL, "--secret-header", "X-Key", stdin=f"{SECRET}\n")
    assert shell.run("servers", "add", "y", "--url", URL, "--secret-header", "X-Key").code == 3
    assert shell.run("servers", "add", "y", "--url", URL, "--secret-header", "X-Key=env:NOT_SET").code == 3
    assert shell.run("servers", "add", "y", "--url", URL, "--secret-header", f"X-Key={SECRET}").code == 3


def test_credentials_are_for_a_service_that_can_hold_them(shell: Shell) -> None:
    printed = shell.run("runs", "start", "a", "--prompt", "x", "--credential", "store:X-API-Key=env:KEY", KEY=SECRET)
    assert (printed.code, "--server" in printed.err, SECRET in printed.err) == (3, True, False)


@pytest.mark.promise("CLI-EDIT")
def test_the_editor_gets_the_document_and_a_masked_literal_stays_what_it_was(shell: Shell) -> None:
    changing = editor(shell, "assert '********' in text", "text += 'description: New\\n'")
    assert shell.run("servers", "edit", "store", EDITOR=changing).out == "Changed server 'store', version 2.\n"
    shown = shell.done("servers", "show", "store")
    assert ("description: New" in shown, "********" in shown) == (True, True)
    looking = editor(shell, "pass")
    assert shell.run("servers", "edit", "store", EDITOR=looking).err == "Nothing was changed.\n"
    assert "version 2" in shell.done("servers", "show", "store")


def test_what_was_typed_wrong_can_be_typed_again(shell: Shell) -> None:
    right = "text.replace('urrl', 'url') + 'description: Good\\n'"
    twice = editor(shell, f"text = {right} if 'urrl' in text else text.replace('url', 'urrl')")
    printed = shell.run("servers", "edit", "store", stdin="y\n", EDITOR=twice)
    assert (printed.code, printed.out.endswith("version 2.\n")) == (0, True), printed
    assert "/urrl" in printed.err
    given_up = editor(shell, "text = text.replace('url', 'urrl')")
    assert shell.run("servers", "edit", "store", stdin="n\n", EDITOR=given_up).code == 3


def test_a_change_that_somebody_else_made_meanwhile_is_not_overwritten(shell: Shell) -> None:
    other = f"{sys.executable} -m outfitter servers edit store --set /description=theirs"
    both = editor(
        shell, "import subprocess", f"subprocess.run({other.split()!r}, check=True)", "text += 'description: mine\\n'"
    )
    printed = shell.run("servers", "edit", "store", EDITOR=both)
    assert (printed.code, printed.err.startswith("Error [version_conflict]")) == (5, True)
    assert "description: theirs" in shell.done("servers", "show", "store")


def test_values_are_set_and_taken_away_at_their_pointers(shell: Shell) -> None:
    shell.done("servers", "edit", "store", "--set", "/timeout=5", "--set", "/header_schema/X-Team/required=true")
    shell.done("servers", "edit", "store", "--unset", "/timeout")
    document = shell.run("servers", "show", "store", "--json").json()
    assert document["header_schema"]["X-Team"] == {"required": True}
    assert "timeout" not in document
    for wrong, code in (("timeout=5", 2), ("/timeout", 2), ("/url/x=1", 3)):
        assert shell.run("servers", "edit", "store", "--set", wrong).code == code
    assert shell.run("servers", "edit", "store", "--unset", "/no/such").code == 3


def test_a_fault_is_shown_in_the_file_it_stands_in(shell: Shell) -> None:
    shell.write("bad.yaml", "id: bad\nurl: http://localhost:1/mcp\ndefault_headers:\n  'bad name': x\n")
    printed = shell.run("servers", "add", "-f", "bad.yaml")
    assert (printed.code, "bad.yaml:4" in printed.err) == (3, True), printed.err
    assert shell.run("servers", "add", "other", "-f", "bad.yaml").code == 3
    assert shell.run("servers", "add", "-f", "bad.yaml", "--url", URL).code == 2
    assert shell.run("servers", "add").code == 2


def test_deleting_asks_first_unless_told_not_to(shell: Shell) -> None:
    asked = shell.run("servers", "rm", "store", stdin="n\n")
    assert (asked.code, "Delete server 'store', version 1?" in asked.err) == (130, True)
    shell.done("agents", "add", "a", "--use", "store")
    refused = shell.run("servers", "rm", "store", stdin="y\n")
    assert (refused.code, "which 1 others refer to" in refused.err, "agents/a" in refused.err) == (5, True, True)
    assert shell.done("servers", "rm", "store", "--yes", "--force") == "Deleted server 'store'.\n"
    assert shell.run("agents", "resolve", "a").code == 4


def test_a_program_needs_an_admin_and_is_shown_before_it_is_approved(tmp_path: Path) -> None:
    admin = local_shell(tmp_path)
    nobody = admin.with_token(None)
    assert nobody.run("servers", "add", "files", "--command", "cat").code == 6
    admin.done("servers", "add", "files", "--command", "cat", "--arg", "-u")
    assert nobody.run("servers", "approve", "files", "--yes").code == 6
    asked = admin.run("servers", "approve", "files", stdin="n\n")
    assert (asked.code, "['cat', '-u']" in asked.err) == (130, True)
    assert admin.run("servers", "list", "--json").json()[0]["approved"] is False
    admin.done("servers", "approve", "files", stdin="y\n")
    assert admin.run("servers", "list", "--json").json()[0]["approved"] is True


@pytest.mark.promise("CLI-FOLDER")
def test_without_a_registry_the_catalog_folder_is_shown_and_none_is_begun_beside_it(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert shell.run("runs", "list").code == 4
    assert not shell.state.exists()
    shell.done("init", "--demo")
    assert "outfitter/agents/tester" in shell.done("agents", "show", "tester")
    printed = shell.run("servers", "add", "x", "--url", URL)
    assert (printed.code, "outfitter apply -f outfitter" in printed.err) == (4, True)
    assert not shell.state.exists()


def test_the_first_entry_makes_the_registry_and_a_named_folder_is_still_shown(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.done("servers", "add", "x", "--url", URL)
    assert [item["id"] for item in shell.run("servers", "list", "--json").json()] == ["x"]
    shell.done("--catalog", "team", "init", "--demo")
    assert "x" not in [item["id"] for item in shell.run("--catalog", "team", "servers", "list", "--json").json()]


def test_names_of_the_registry_are_completed(shell: Shell) -> None:
    terminal = open_terminal(shell.folder)
    words = {"_OUTFITTER_COMPLETE": "bash_complete", "COMP_WORDS": "outfitter servers show st", "COMP_CWORD": "3"}
    assert terminal.run(OUTFITTER_STATE=str(shell.state), **words).out == "plain,store\n"
    silent = terminal.run(OUTFITTER_SERVER="http://127.0.0.1:1", **words)
    assert (silent.out.strip(), silent.err) == ("", "")


def test_an_event_is_shown_as_it_comes(shell: Shell) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(shell.folder), "OUTFITTER_STATE": str(shell.state)}
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "outfitter", "events", "--after", "0"],
        env=environment, cwd=shell.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert "entry.created  mcp-servers/store" in process.stdout.readline()
        shell.done("servers", "edit", "store", "--set", "/description=x")
        assert "entry.updated  mcp-servers/store" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
