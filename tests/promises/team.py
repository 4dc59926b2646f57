"""The squad, its state server, presets and patterns, and the pages of the dashboard."""

from __future__ import annotations

from tests.promises.promise import Promise

PROMISES: tuple[Promise, ...] = (
    Promise(
        "DASHBOARD-PAGES",
        "Every page works in a browser, loads nothing from elsewhere, and is readable by everybody.",
        "dashboard",
    ),
    Promise(
        "DASHBOARD-EXPLAIN",
        "The view of an agent shows where each value is from, what it overrules, and why not.",
        "dashboard",
    ),
    Promise("DASHBOARD-RUNS", "A run is started, followed and stopped from its page.", "dashboard"),
    Promise("DASHBOARD-ACCESS", "A token is issued on a page, shown once, and taken back.", "dashboard"),
    Promise(
        "DASHBOARD-EDITING",
        "Servers and agents are made and changed by forms, tried first, and nothing typed is lost.",
        "dashboard",
    ),
    Promise("DASHBOARD-PLAYGROUND", "A page calls a tool as its agent, with its rules and records.", "dashboard"),
    Promise(
        "SQUAD-TABLE", "Every cell of the security table holds at the list and at the call, with its reason.", "squad"
    ),
    Promise("SQUAD-PATHS", "No spelling of a path tried gets a write round the folder of a role.", "squad"),
    Promise("SQUAD-READ-ONLY", "A read-only role runs one plain SELECT and no aggregation stage that writes.", "squad"),
    Promise("SQUAD-NARROWS", "A preset only narrows what an agent has.", "squad"),
    Promise(
        "SQUAD-ROLES",
        "An agent is held to a role by its name or by the roles it is given, and can be let off.",
        "squad",
    ),
    Promise("SQUAD-HOOKS", "Claude's and Copilot's hooks deny with the preset's reason.", "squad"),
    Promise(
        "SQUAD-PATTERNS", "Each pattern adds its servers with the recommended routing and names its variables.", "squad"
    ),
    Promise(
        "SQUAD-ADD", "Adding a server stores no value, changes nothing the second time and replaces nothing.", "squad"
    ),
    Promise("DOC5-ONE-COMMAND", "A new server takes one command.", "squad"),
    Promise(
        "SQUAD-FOLDERS", "Every shape of a .squad folder gives right answers or a note, never an exception.", "squad"
    ),
    Promise(
        "SQUAD-BRANCH",
        "State on the branch squad-state is read from there; without it the copy is used and called old.",
        "squad",
    ),
    Promise("SQUAD-WARM", "A warm answer opens no file that is unchanged.", "squad"),
    Promise("SQUAD-CHANGES", "A changed file names the resources that may have changed.", "squad"),
    Promise("SQUAD-SEARCH", "Search finds pending and archived decisions and follows changes.", "squad"),
    Promise("SQUAD-BACKLOG", "The backlog says who was asked; a failing source leaves the files with a note.", "squad"),
)
