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
    Promise("SQUAD-RESOURCES", "Every resource is listed and says what the team says, in both eras.", "squad"),
    Promise("SQUAD-TOOLS", "Both tools only look and answer what their schemas say.", "squad"),
    Promise("SQUAD-SERVE", "Serving a squad serves every shape of a folder and says which.", "squad"),
    Promise("SQUAD-ERAS", "A client that gave up on server/discover can begin with the handshake.", "squad"),
    Promise("SQUAD-DOOR", "Without the key, and one header that says who asks, nobody gets in.", "squad"),
    Promise(
        "SQUAD-CLIENTS", "The Inspector, the Claude Agent SDK and the Copilot SDK talk to the squad's server.", "squad"
    ),
    Promise(
        "SQUAD-OWN", "Without a .squad folder the registry, or else the catalog folder, is served as the team.", "squad"
    ),
    Promise(
        "DOC5-ISOLATION",
        "The backend developer has database tools and the designer has not, at list and at call.",
        "squad",
    ),
    Promise("SQUAD-INIT", "A squad file is made from the roster or by asking, without values.", "squad"),
    Promise("SQUAD-CHECK", "A squad file is checked against itself, the team, this machine and its servers.", "squad"),
    Promise("SQUAD-EXPORT", "Each agent's endpoint stands in a client's own file, its token in a variable.", "squad"),
    Promise("SQUAD-IMPORT", "What other programs have comes once, and what differs is told.", "squad"),
    Promise(
        "SQUAD-UP", "A squad file is served with one endpoint per agent, no database, and the last good file.", "squad"
    ),
    Promise("SQUAD-UP-TEAM", "Every agent gets the team's server and is known there by its name.", "squad"),
    Promise(
        "SQUAD-EXCLUDE-LATER",
        "A tool that appears later under an exclude rule is hidden and refused until it is approved.",
        "squad",
    ),
    Promise("DEGRADE-FALLBACK", "A fallback is one bounded line of plain text, shown and never filled in.", "squad"),
    Promise(
        "DEGRADE-TOLD",
        "A failing call tells the model what failed, what to do instead and when it is tried again.",
        "squad",
    ),
    Promise("DEGRADE-HONEST", "A fallback never looks like success.", "squad"),
    Promise(
        "DEGRADE-START",
        "A server that is down at the start is skipped with a warning and comes back by itself.",
        "squad",
    ),
    Promise("DEGRADE-LISTS", "The tools of a server that went away stay listed and say why they fail.", "squad"),
    Promise("DEGRADE-ALL", "With every server down the endpoint answers and an agent completes its work.", "squad"),
    Promise("DEGRADE-AGENT", "An agent completes its work with one server killed.", "squad"),
    Promise("DEGRADE-UPTIME", "Status shows uptime, failures, since when a server is down and the next try.", "squad"),
    Promise(
        "DASHBOARD-CAPABILITIES", "A capability is made, changed by one at a time, put back and deleted.", "dashboard"
    ),
    Promise(
        "DASHBOARD-IMPORT", "A client's file is looked at, its servers are chosen, and nothing is started.", "dashboard"
    ),
    Promise("DASHBOARD-LIVE", "Home and calls move while one looks, and calls are found by filters.", "dashboard"),
    Promise(
        "DASHBOARD-SELECTION", "Tools are chosen by search, many at once, and a new search keeps them.", "dashboard"
    ),
    Promise(
        "DASHBOARD-SERVER-TEST", "A server is tried from its page and shows its tools with their schemas.", "dashboard"
    ),
    Promise("DASHBOARD-SIZE", "Every page weighs at most 250 KB, also with thousands of tools.", "dashboard"),
    Promise("DASHBOARD-TRYING", "A change is tried at every level before anything is saved.", "dashboard"),
)
