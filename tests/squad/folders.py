"""Folders of teams as they are met: new, old, with their state on a branch, broken, empty, and large.

Each function writes one into a folder that the test gives, and answers where the ``.squad`` is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

TEAM = """# Mission Control

> Failure is not an option.

## Coordinator

| Name | Role | Notes |
|------|------|-------|
| Squad | Coordinator | Routes work, keeps the gates. |

## Members

| Name | Role | Charter | Status |
|------|------|---------|--------|
| Flight | Lead | `.squad/agents/flight/charter.md` | ✅ Active |
| EECOM | Backend Dev | `.squad/agents/eecom/charter.md` | ✅ Active |
| Fact Checker | Verification | `.squad/agents/fact-checker/charter.md` | 🔍 Reviewer |
| Scribe | Session Logger | `.squad/agents/scribe/charter.md` | 📋 Silent |
| Ralph | Work Monitor | — | 🔄 Monitor |
| Kobayashi | Git | `.squad/agents/_alumni/kobayashi/charter.md` | Retired |

## Coding Agent

<!-- copilot-auto-assign: false -->

| Name | Role | Charter | Status |
|------|------|---------|--------|
| @copilot | Coding Agent | — | 🤖 Coding Agent |

### Capabilities

| Fit | What |
|-----|------|
| good | bug fixes |

## Project Context

- **Owner:** Brady
"""
CHARTER = """# {name} — {role}

> A sentence.

## Identity

- **Name:** {name}
- **Role:** {role}
- **Expertise:** {expertise}
- **Style:** terse

## Model

- **Preferred:** claude-opus
"""
REGISTRY = {
    "agents": {
        "flight": {"persistent_name": "Flight", "universe": "Apollo 13", "status": "active"},
        "eecom": {"persistent_name": "EECOM", "status": "active", "previous_name": "Fenster"},
        "kobayashi": {"persistent_name": "Kobayashi", "status": "retired", "succeeded_by": "flight"},
    }
}
DECISIONS = """# Decisions

> Shared brain. Append only.

## Foundational Directives

These carry over, and this is prose.

### 2026-02-20: Use PostgreSQL for the registry

**By:** Flight
**What:** PostgreSQL where several write, SQLite elsewhere.
**Why:** Two writers at once.

### 2026-03-02T10:15:00Z: Tokens are hashed

**By:** EECOM (Backend Dev)
**What:** Only digests of tokens are stored.

#### Details

```
# not a heading
```

### Type safety is not negotiable
**By:** EECOM
**What:** `strict: true` everywhere.

### Merge rules

Nothing here names who decided.
"""
ARCHIVE = """# Archive

### 2025-11-11: Beta CLI is frozen

**By:** Fenster
**What:** The old command line gets fixes only; kerberos stays out.
"""
INBOX_NEW = """### 2026-03-05T08:00:00.123Z: Ship the squad server

**By:** flight
**What:** Serve the roster as MCP resources.
**References:** #12
**Why:** Everybody asks.
"""
INBOX_OLD = """# Decision: Extract inline scripts

**By:** EECOM
**Date:** 2026-03-04
**Status:** proposed

## What

Scripts move to modules.
"""
HISTORY = """# Project Context

- **Owner:** Brady

## Learnings

### Retry budget (2026-03-01)

Three tries are enough.

### 2026-03-04: Pools

One pool for each process.

## Patterns

📌 Team update (2026-02-22): plan delivered.

Prefer small functions.
"""
LOG_TABLE = """### 2026-03-03T09:00:00Z — Implement the pool

| Field | Value |
|-------|-------|
| **Agent routed** | EECOM (Backend Dev) |
| **Mode** | background |
| **Token usage** | 12,450 in / 3,200 out — $0.0234 |
| **Outcome** | Completed |
"""
LOG_FIELDS = """# Orchestration Log — EECOM

**Agent:** EECOM (Core Runtime)
**Timestamp:** 2026-03-06T19:42:25-07:00
**Task:** Rework the dispatcher
**Mode:** isolated

## Status

Merged; issue closed.
"""
NOW = """---
updated_at: 2026-03-06T13:50:00+03:00
focus_area: Framework: validation
active_issues: [#101, "#102 squad:eecom"]
---

# What We're Focused On

## Next Steps

### Immediate

- [ ] Drive #1245 to merge
- [x] File the gaps
- Expand the tests

## Principles

- Never forge entries
"""
TRIAGE = """---
status: open
title: Sign-in codes have eight digits
---

# TR-0047

The app accepts six. squad:flight
"""


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files by their path below a folder; the folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def new_files() -> dict[str, str | bytes]:
    """The files of a folder as the current version writes it."""
    people = (("flight", "Flight", "Lead"), ("eecom", "EECOM", "Backend Dev"), ("scribe", "Scribe", "Session Logger"))
    charters = {
        f"agents/{id_}/charter.md": CHARTER.format(name=name, role=role, expertise=f"{role} things")
        for id_, name, role in people
    }
    return {
        "team.md": TEAM,
        "config.json": json.dumps({"version": 1, "stateBackend": "local"}),
        "casting/registry.json": json.dumps(REGISTRY),
        "agents/_alumni/kobayashi/charter.md": CHARTER.format(name="Kobayashi", role="Git", expertise="git"),
        "agents/eecom/history.md": HISTORY,
        "decisions.md": DECISIONS,
        "decisions-archive.md": ARCHIVE,
        "decisions/inbox/flight-squad-server.md": INBOX_NEW,
        "decisions/inbox/eecom-753-refactor.md": INBOX_OLD,
        "orchestration-log/2026-03-03T09-00-00Z-eecom.md": LOG_TABLE,
        "orchestration-log/2026-03-06T19-42-25-0700-eecom.md": LOG_FIELDS,
        "identity/now.md": NOW,
        "triage/TR-0047-codes.md": TRIAGE,
        **charters,
    }


def new_folder(root: Path) -> Path:
    """The current layout."""
    return write(root / ".squad", new_files())


def old_folder(root: Path) -> Path:
    """The layout of the beta: ``.ai-team``, headings of the second level, a flat registry beside an empty one."""
    return write(
        root / ".ai-team",
        {
            "team.md": "# Team\n\n## Roster\n\n| Agent | Role | Status |\n|---|---|---|\n"
            "| 🎬 Keaton | Lead | Active |\n| 🔧 **McManus** | Backend |\n\n"
            "## Alumni\n\n| Name | Role |\n|---|---|\n| Verbal | Prompt |\n",
            "casting/registry.json": "",
            "casting-registry.json": json.dumps({"keaton": {"persistent_name": "Keaton", "status": "active"}}),
            "agents/keaton/charter.md": "# Keaton — Lead\n\n## Identity\n\n- Name: Keaton\n- Expertise: planning\n\n"
            "## Model\n\nPreferred: auto\n- Preferred: gpt-5\n",
            "decisions.md": "# Team Decisions\n\n## Extension naming\n\n**Date:** 2026-02-13  \n"
            "**Author:** Rusty (Dev)  \n**Status:** Proposed\n\n"
            "### Context\n\nNames.\n\n### Decision\n\n1. `squadui`\n\n---\n\n"
            "## Keep one ledger\n\n**By:** Keaton\n**What:** One file.\n",
            "decisions/inbox/keaton-2026-02-14-tabs.md": "Tabs, not spaces.\n",
        },
    )


def broken_folder(root: Path) -> Path:
    """A ``team.md`` that is no text, broken JSON, and other files nobody can read."""
    return write(
        root / ".squad",
        {
            "team.md": b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR",
            "config.json": "{not json",
            "casting/registry.json": '{"agents": {"flight": {"persistent_name": "Flight"}, "x": 3}}',
            "agents/flight/charter.md": b"# Flight \xff\xfe Lead\n",
            "agents/eecom/charter.md": CHARTER.format(name="EECOM", role="Backend", expertise="Go"),
            "decisions.md": "## A heading\n\nprose\n\n## Another\n\nprose\n",
            "decisions/inbox/empty.md": "",
            "decisions/inbox/binary.md": b"\0\1\2",
            "identity/now.md": "---\nactive_issues: [",
            "orchestration-log/nonsense.md": "| **Token usage** | lots in / 9 out |",
        },
    )


def empty_folder(root: Path) -> Path:
    """A folder with nothing in it."""
    (root / ".squad").mkdir(parents=True)
    return root / ".squad"


def large_folder(root: Path, decisions: int = 10_000) -> Path:
    """A ledger with very many decisions."""
    parts = [
        f"### {2020 + n % 6}-{1 + n % 12:02}-{1 + n % 28:02}: Decision {n} about {_TOPICS[n % len(_TOPICS)]}\n\n"
        f"**By:** agent-{n % 20}\n**What:** Use {_TOPICS[n % 7]} with {_TOPICS[n % 11]} for part {n}.\n"
        f"**Why:** The {_TOPICS[n % 13]} was slow, and nobody could say which of the {n % 97} ways was right.\n"
        for n in range(decisions)
    ]
    return write(root / ".squad", {"team.md": TEAM, "decisions.md": "# Decisions\n\n" + "\n".join(parts)})


_TOPICS = (
    "PostgreSQL", "SQLite", "caching", "tokens", "deployment", "streaming", "retries", "schemas", "logging",
    "telemetry", "sandboxing", "routing", "prompts",
)  # fmt: skip


def git(folder: Path, *arguments: str, when: str = "2026-01-02T03:04:05Z") -> str:
    """What git says, run as somebody with a name and at a fixed time."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_AUTHOR_DATE": when,
        "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_COMMITTER_DATE": when,
    }  # fmt: skip
    done = subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(root: Path) -> Path:
    """A repository with one commit of everything that is there."""
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message=all")
    return root


def branch_folder(root: Path, backend: str = "orphan") -> Path:
    """A repository whose changing files are on the branch ``squad-state``, with an old copy in the working tree."""
    files = new_files()
    files["config.json"] = json.dumps({"version": 1, "stateBackend": backend})
    state = {key: files.pop(key) for key in list(files) if key.startswith(("decisions", "orch", "identity"))}
    state["agents/eecom/history.md"] = files.pop("agents/eecom/history.md")
    files["decisions.md"] = "### 2020-01-01: An old copy\n\n**By:** nobody\n"
    squad = write(root / ".squad", files)
    repository(root)
    commit_state(root, state)
    return squad


def commit_state(root: Path, state: Mapping[str, str | bytes]) -> None:
    """Make the branch ``squad-state`` hold exactly these files."""
    index = {"GIT_INDEX_FILE": str(root / ".git" / "state-index")}
    (root / ".git" / "state-index").unlink(missing_ok=True)
    for key, content in state.items():
        data = content.encode() if isinstance(content, str) else content
        blob = _git_with(root, index, data, "hash-object", "-w", "--stdin")
        _git_with(root, index, b"", "update-index", "--add", "--cacheinfo", f"100644,{blob},{key}")
    tree = _git_with(root, index, b"", "write-tree")
    commit = git(root, "commit-tree", tree, "-m", "state", when="2026-01-05T00:00:00Z")
    git(root, "update-ref", "refs/heads/squad-state", commit)


def _git_with(root: Path, environment: Mapping[str, str], given: bytes, *arguments: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(root), **environment}
    done = subprocess.run(["git", *arguments], cwd=root, env=env, input=given, check=True, capture_output=True)
    return done.stdout.decode().strip()


@contextmanager
def files_opened(root: Path) -> Generator[list[str]]:
    """The files below a folder that this process opens meanwhile, in any way; one name for each time."""
    found: list[str] = []
    _watchers()[str(root)] = found
    try:
        yield found
    finally:
        del _watchers()[str(root)]


@cache
def _watchers() -> dict[str, list[str]]:
    """Who wants to hear of opened files, by folder. The hook stays for good: it cannot be taken away."""
    watchers: dict[str, list[str]] = {}

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str):
            for root, found in watchers.items():
                if arguments[0].startswith(root):
                    found.append(arguments[0])

    sys.addaudithook(hear)
    return watchers
