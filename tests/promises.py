"""What Outfitter promises, and which tests keep it.

A test keeps a promise by carrying ``@pytest.mark.promise("ID")``. A promise without a test, or a mark without a
promise, fails the build (tests/house/test_promises.py). Write ids and sentences as plain strings: the house test reads
this file without running it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    """One sentence a user may rely on, and the document it comes from."""

    id: str
    sentence: str
    document: str


PROMISES: tuple[Promise, ...] = (
    Promise(
        "DOC4-RESOLUTION",
        "Document 4's resolution example gives the printed headers, each with the level it came from.",
        "document 4",
    ),
    Promise(
        "DOC4-CHAIN",
        "Registry, capability, agent, run and parent speak in this order; the last one wins.",
        "document 4, design 3.5",
    ),
    Promise("DOC4-EXAMPLE-1", "Document 4's example 1 resolves to the printed result.", "document 4"),
    Promise("DOC4-EXAMPLE-2", "Document 4's example 2 scopes Jira and removes the Confluence header.", "document 4"),
    Promise("DOC4-EXAMPLE-3", "Document 4's example 3: three agents share one server in three scopes.", "document 4"),
    Promise(
        "DOC4-BLUEPRINT", "The resolved blueprint has document 4's shape, with placeholders unfilled.", "document 4"
    ),
    Promise("DOC4-RUN", "Document 4's run request is read and applied.", "document 4"),
    Promise(
        "DOC4-ORCHESTRATOR",
        "The orchestrator's URL and session header are filled by the framework and by nobody else.",
        "document 4",
    ),
    Promise(
        "DOC4-CREDENTIALS", "A run's credential fills the sensitive header it names, and nothing else.", "document 4"
    ),
    Promise("DOC4-SECRET", "A secret reference is shown as a reference and filled when a plan is armed.", "document 4"),
    Promise("DOC4-INLINE", "Inline definitions still work, with a notice that names the file.", "document 4, phase 4"),
    Promise(
        "DOC4-REQUIRED",
        "A run that lacks required headers is refused with the list of what is missing.",
        "document 4, design 3.6",
    ),
    Promise("DOC5-CONFIG", "Document 5's squad file gives each agent the servers it prints.", "document 5"),
    Promise("DOC5-RESTRICTIONS", "Document 5's tool restrictions hold for the agent they name.", "document 5"),
    Promise("DOC5-SESSION", "Servers shared by a squad's session reach every agent.", "document 5"),
    Promise("DOC5-TIME", "Milliseconds exist in the squad file only.", "document 5, design 3.9"),
    Promise("DOC5-ROLES", "Every cell of document 5's role table holds.", "document 5"),
    Promise("DOC5-PATTERN-A", "Project management: the lead has every tool, the scribe reads.", "document 5"),
    Promise(
        "DOC5-PATTERN-B", "Database: the backend has it, the tester reads, the designer has nothing.", "document 5"
    ),
    Promise("DOC5-PATTERN-C", "Communication: only the lead and the scribe reach it.", "document 5"),
    Promise("DOC5-PATTERN-D", "Documentation: the scribe writes, the others read.", "document 5"),
    Promise("RESOLVE-DETERMINISTIC", "The same input always gives the same plan or the same refusal.", "command line"),
    Promise("RESOLVE-EXPLAINED", "Every value of a plan says who gave it and whom it overruled.", "design 1"),
    Promise("WHY-NOT", "An operator is told why an agent lacks a tool, a header or a server.", "design 1"),
    Promise("LOCK-HOLDS", "No later level changes or removes a locked header.", "design 3.6"),
    Promise(
        "NARROW-HOLDS", "Later levels choose only a subset of a narrowed list, and never nothing of it.", "design 3.6"
    ),
    Promise("FILTER-NARROWS", "A tool that any level keeps out is kept out.", "design 3.3"),
    Promise("CHILD-WITHIN-PARENT", "A child's plan is within its parent's: headers, tools and rules.", "design 3.5"),
    Promise("ONE-HEADER-PER-NAME", "Case variants of a name never give two headers.", "design 3.5"),
    Promise(
        "ALIAS-RULES",
        "An alias means one server at every level, and a run speaks only of aliases that exist.",
        "design 3.4",
    ),
    Promise("PLACEHOLDER-ONCE", "Placeholders are filled once, and only in what an operator wrote.", "design 3.8"),
    Promise("ARMED-ONCE", "A plan is armed once; what is filled is a secret, what is missing is named.", "design 3.8"),
    Promise("SECRET-NOT-PRINTED", "A secret is in no text, log, error, explanation or pickle.", "design 7"),
    Promise(
        "SECRET-PROVIDERS",
        "Secrets come from the environment, the secrets folder or the keyring, and from nowhere else.",
        "command line",
    ),
    Promise("ONE-FILTER", "Every dialect of a tool filter is read into one, with one meaning.", "design 3.3"),
    Promise("RULES-ORDER", "Deny beats ask beats allow, and each answer has its reason.", "design 4"),
    Promise("RULES-ARGUMENTS", "No spelling of an argument slips past a condition.", "document 5"),
    Promise("NAMES-OF-SERVERS", "Server names follow one rule everywhere; reserved ones are refused.", "design 3.1"),
    Promise("NAMES-DISTINCT", "Each name a model sees is safe and means exactly one tool.", "design 3.2"),
    Promise("NAMES-STABLE", "The names a model sees are the same on every start and in any order.", "design 3.2"),
    Promise("SERVER-DEFINITIONS", "A definition that could never be connected cannot be made.", "documents 1 to 3"),
    Promise("TIME-IN-SECONDS", "Time limits are seconds, thirty for a call unless said otherwise.", "design 3.9"),
    Promise("ROUND-TRIP", "What is written reads as the same thing, in JSON, TOML and YAML.", "command line"),
    Promise("MIGRATE-KEEPS", "Migration changes nothing that any agent gets.", "document 4, phase 4"),
    Promise(
        "CATALOG-FOLDER", "A catalog is a folder of files that is loaded whole; files keep their syntax.", "design 6"
    ),
    Promise(
        "WRITES-ATOMIC", "A change is written whole or not at all, and no reader sees half a file.", "command line"
    ),
    Promise("ERROR-CODES", "Every error has a stable code of its own and stands in the drawn tree.", "house style"),
    Promise("BAD-INPUT-SHAPE", "A value of the wrong type is one error with file, line and pointer.", "command line"),
    Promise("BAD-INPUT-DUPLICATE", "A key that is given twice is one error with its place.", "command line"),
    Promise("BAD-INPUT-UNKNOWN-FIELD", "An unknown field is one error with its place.", "command line"),
    Promise("BAD-INPUT-CYCLE", "A document that contains itself is one error.", "command line"),
    Promise("BAD-INPUT-LONG", "A very long value gives a short error.", "command line"),
    Promise("BAD-INPUT-ENCODING", "Text that is not UTF-8 is one error with its line.", "command line"),
    Promise("BAD-INPUT-REFS", "A reference to nothing is told with its user and a suggestion.", "command line"),
    Promise("BAD-INPUT-IDS", "A name inside a file that differs from the file's is one error.", "command line"),
    Promise("BAD-INPUT-NOTHING-CHANGES", "Bad input changes nothing on disk.", "command line"),
    Promise("H01", "A value with a line break is refused where it is written, when resolved and when filled.", "cases"),
    Promise(
        "H02", "Control characters, odd line ends and outer spaces are refused; JSON headers escape them.", "cases"
    ),
    Promise("H03", "A name that is not a header name is refused at every level.", "cases"),
    Promise("H05", "Headers of the transport and of MCP cannot be configured.", "cases"),
    Promise("H06", "Two spellings at two levels are one header, and explain shows both.", "cases"),
    Promise("H07", "A name with an underscore is refused.", "cases"),
    Promise("H09", "A locked or required header cannot be removed by a run.", "cases"),
    Promise("H10", "A narrowed list never gives what was not allowed; nothing left is an error.", "cases"),
    Promise("H11", "The root's scope holds three levels deep.", "cases"),
    Promise("H13", "What a run says stays literal.", "cases"),
    Promise("H14", "What comes out of a variable is never expanded again.", "cases"),
    Promise("H15", "What is unset is named and never sent as it is written.", "cases"),
    Promise("H17", "A sensitive value is found in nothing that is printed, logged or pickled.", "cases"),
    Promise("H18", "Tool arguments never reach the headers.", "cases"),
    Promise("G15", "Two pairs that spell the same name get two names, each reaching its own tool.", "cases"),
    Promise("CLI-DEMO", "The demo writes its catalog once and explains what each demo agent gets.", "command line"),
    Promise("CLI-VALIDATE", "Validate tells every problem of a catalog and changes nothing.", "command line"),
    Promise("CLI-DOCTOR", "Doctor tells which variables, commands, URLs and secrets are missing.", "command line"),
    Promise(
        "CLI-IMPORT",
        "Import shows each command, starts nothing and turns literal secrets into references.",
        "command line",
    ),
    Promise("CLI-EXPORT", "Export writes what a client reads.", "command line"),
    Promise("CLI-MIGRATE", "Migrate turns inline servers into entries with refs.", "command line"),
    Promise("CLI-EXIT-CODES", "Every error code has an exit code.", "house style"),
    Promise("CLI-EXPLAIN", "Explain prints the plan that is enforced, as text and as JSON.", "command line"),
    Promise("CLI-WHY-NOT", "Why-not prints the reason and the remedy.", "command line"),
    Promise("RULES-BOUNDED", "A rule answers any text in bounded time.", "house style"),
    Promise("F06", "Progress keeps a call alive up to the total limit.", "cases"),
    Promise("F13", "A lost session costs one new handshake and no call.", "cases"),
    Promise("F14", "One server that is down at the start disturbs no other.", "cases"),
    Promise("F27", "Closing under load takes no new work and ends within a bound.", "cases"),
    Promise("F37", "A connection opened in one task is used and cancelled from others.", "cases"),
    Promise("F38", "The face for threads works from anywhere, or says clearly why not; it never hangs.", "cases"),
    Promise("F39", "A list that does not end is refused.", "cases"),
    Promise(
        "H19", "Arguments repeated in headers are plain ASCII; a malformed annotation drops its tool only.", "cases"
    ),
    Promise("LINK-ERA", "The era of a server is found by asking once, and both eras are spoken.", "design 3.16"),
    Promise("LINK-RAW", "Nothing of a server's answer is lost or refused because it is unusual.", "design 3.16"),
    Promise("LINK-CHANGES", "A changed list is heard of on every transport and in both eras.", "design 3.16"),
    Promise("POOL-FORGETS", "A pool lets go of connections that nobody uses any more.", "design 3.14"),
    Promise("LINK-ASKED", "What a server asks reaches whoever can answer, or is declined.", "design 3.16"),
    Promise("LINK-UNCROSSED", "Calls made at once get their own answers.", "design 3.16"),
    Promise("LINK-STATES", "A failing server rests, says how long, and comes back by itself.", "design 3.14"),
    Promise("POOL-SHARES", "Equal servers share one process or connection; different ones never do.", "design 3.14"),
    Promise("CLI-LIVE", "Connect, tools and call use the plan that explain shows.", "command line"),
    Promise("P02", "A command line that carries code is refused unless it is allowed.", "cases"),
    Promise("P14", "An import shows every command in full and starts none.", "cases"),
    Promise("P15", "A package that is not pinned is told.", "cases"),
    Promise("P07", "A program that was replaced or planted is refused until somebody approves it.", "cases"),
    Promise("P05", "A secret never stands in the arguments of a process.", "cases"),
    Promise("F15", "A run without a required server is refused with the reason; an optional one is left out.", "cases"),
    Promise("DOCS-RUN", "Every command and snippet of the documents runs.", "house style"),
    Promise("WIRE-STDIO", "Many questions share one pipe, and each answer finds who asked.", "design 4"),
    Promise("SPAWN-CLEAR", "A program that cannot be started is told in words, and never by a value.", "design 7"),
    Promise("SANDBOX", "An isolated server is shut in or not started.", "document 3"),
    Promise("P01", "No shell ever reads a command or an argument.", "cases"),
    Promise("P03", "A program gets a clean environment; variables that steer it are refused unless allowed.", "cases"),
    Promise("P06", "A working folder must lie in the allowed ones, links followed.", "cases"),
    Promise("P09", "A line without end is cut at the cap and its process is killed.", "cases"),
    Promise("P10", "A banner on stdout is an error that quotes it.", "cases"),
    Promise("P11", "A flood on stderr or stdout blocks nobody.", "cases"),
    Promise("P13", "A process that ignores every request to end is killed within the bound, with its group.", "cases"),
    Promise("F02", "A child that goes in a call is told at once, with its exit or signal and its last words.", "cases"),
    Promise("F03", "A call that is given up frees its place, and its late answer is dropped.", "cases"),
    Promise("F07", "What is not a message ends the connection with an error that quotes its beginning.", "cases"),
    Promise("F09", "A huge answer is cut at the cap.", "cases"),
    Promise("F26", "What a killed Outfitter left is ended by the next one; a reused pid is never touched.", "cases"),
    Promise("F35", "Connections that come and go leave no zombie and no open file.", "cases"),
    Promise(
        "TESTING-SERVERS",
        "A scripted server satisfies the official client on every transport and in both eras.",
        "house style",
    ),
    Promise("TESTING-FAULTS", "Each fault of a script shows itself as described, and strikes nothing else.", "cases"),
    Promise("TESTING-SCRIPTS", "A script travels as JSON and starts fast in a process of its own.", "house style"),
    Promise("R01", "A cloud's metadata service is never connected to, whatever is allowed.", "cases"),
    Promise("R02", "An address is judged by what it means, however it is spelled.", "cases"),
    Promise("R03", "The address that was judged is the one that is connected to.", "cases"),
    Promise("R04", "No redirect takes a request or its headers to another place.", "cases"),
    Promise(
        "F01",
        "A connection that breaks is told within a second, as a call that may have run, and nothing is repeated.",
        "cases",
    ),
    Promise("F05", "A server that trickles is given up when the caller says so.", "cases"),
    Promise("F11", "Giving up a call closes its response stream at once.", "cases"),
    Promise("F17", "A server that wants other credentials is told apart from one that is down.", "cases"),
    Promise("F18", "Fifty calls that meet an old token fetch one new one.", "cases"),
    Promise("G26", "A compressed answer is refused at the limit of what it unpacks to.", "cases"),
    Promise(
        "HTTPS-FOR-SECRETS", "Headers travel in clear text only to loopback, unless that is allowed.", "connections"
    ),
    Promise("NO-REDIRECTS", "Redirects are refused with the place they name.", "connections"),
    Promise("EVENTS-CHUNKING", "A stream of events means the same in whatever pieces it arrives.", "connections"),
    Promise("WIRE-HTTP-ERAS", "Streamable HTTP speaks to real servers in both eras.", "connections"),
    Promise(
        "WIRE-SSE", "The older transport works, and everyone who waits learns that its stream is gone.", "connections"
    ),
    Promise(
        "WIRE-RESUME", "A broken stream of the handshake era goes on where it stopped, within a bound.", "connections"
    ),
    Promise("WIRE-LISTEN", "The handshake era's own stream is read, reopened, and not insisted on.", "connections"),
    Promise("NO-CROSSED-REPLIES", "Ten thousand concurrent asks get their own answers.", "connections"),
    Promise("ONE-FAILURE-ALONE", "A failing request hurts no other on the same wire.", "connections"),
    Promise("SESSION-LOST", "A lost session is told apart, as a call that was not carried out.", "connections"),
    Promise("F43", "A name with addresses of both kinds reaches a server that listens on one.", "cases"),
    Promise("REAL-SERVERS", "Real servers of PyPI and npm connect in their era and list their tools.", "connections"),
    Promise("REAL-GIT", "The git server works on a repository and refuses another.", "connections"),
    Promise("REAL-FILESYSTEM", "The filesystem server works in its folder and refuses a path outside.", "connections"),
    Promise("REAL-MEMORY", "The memory server keeps what it was told across two lives.", "connections"),
    Promise("REAL-THINKING", "The sequential-thinking server keeps count over several calls.", "connections"),
    Promise("REAL-TIME", "The time server converts between zones.", "connections"),
    Promise(
        "REAL-SQLITE", "The sqlite server, built on the first SDK, creates, fills and reads a table.", "connections"
    ),
    Promise("REAL-FETCH", "The fetch server starts offline, lists, and its refusal comes through.", "connections"),
    Promise("REAL-EVERYTHING-STDIO", "All that the everything server can do works over stdio.", "connections"),
    Promise("REAL-EVERYTHING-SSE", "All that the everything server can do works over SSE.", "connections"),
    Promise("REAL-EVERYTHING-HTTP", "All that the everything server can do works over streamable HTTP.", "connections"),
    Promise("REAL-ENVIRONMENT", "A real process sees the allow-listed environment and what was declared.", "design 7"),
    Promise("REAL-RESTART", "A real server that was killed is used again, and costs one call at most.", "design 3.14"),
)
