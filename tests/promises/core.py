"""The rules, the files, the wire and the command line."""

from __future__ import annotations

from tests.promises.promise import Promise

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
    Promise("LINK-ERA", "The era of a server is found by asking once, and both eras are spoken.", "design 3.16"),
    Promise("LINK-RAW", "Nothing of a server's answer is lost or refused because it is unusual.", "design 3.16"),
    Promise("LINK-CHANGES", "A changed list is heard of on every transport and in both eras.", "design 3.16"),
    Promise("POOL-FORGETS", "A pool lets go of connections that nobody uses any more.", "design 3.14"),
    Promise("LINK-ASKED", "What a server asks reaches whoever can answer, or is declined.", "design 3.16"),
    Promise("LINK-UNCROSSED", "Calls made at once get their own answers.", "design 3.16"),
    Promise("LINK-STATES", "A failing server rests, says how long, and comes back by itself.", "design 3.14"),
    Promise("POOL-SHARES", "Equal servers share one process or connection; different ones never do.", "design 3.14"),
    Promise("CLI-LIVE", "Connect, tools and call use the plan that explain shows.", "command line"),
    Promise("DOCS-RUN", "Every command and snippet of the documents runs.", "house style"),
    Promise("WIRE-STDIO", "Many questions share one pipe, and each answer finds who asked.", "design 4"),
    Promise("SPAWN-CLEAR", "A program that cannot be started is told in words, and never by a value.", "design 7"),
    Promise(
        "TESTING-SERVERS",
        "A scripted server satisfies the official client on every transport and in both eras.",
        "house style",
    ),
    Promise("TESTING-SCRIPTS", "A script travels as JSON and starts fast in a process of its own.", "house style"),
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
    Promise(
        "ARM-SERVERS",
        "Definitions that stand in code are armed with what this process has; one that cannot be stops no other.",
        "design 3.8",
    ),
    Promise("BRIDGE-NAMES", "Bridged tools have unique, stable names that every model takes.", "design 3.2"),
    Promise("BRIDGE-FAILURES", "A dead server leaves the others usable; a required one does not.", "design 3.14"),
    Promise("POOL-LISTENERS", "A shared connection has any number of listeners.", "connections"),
    Promise("POOL-CLOSES", "One connection of a pool can be closed for good.", "connections"),
    Promise("PROMPT-TEXT", "Values in a prompt are data and never expanded.", "design 3.8"),
    Promise("EXAMPLES-RUN", "Every example runs.", "style"),
    Promise(
        "SCOPED-SERVERS",
        "Two agents that share a server see only what their headers allow, whatever a client or a model says.",
        "document 4",
    ),
    Promise("DOC4-API", "Every API example of document 4 is answered as printed.", "document 4"),
    Promise("RUN-REFUSED", "A refused run names every problem and leaves nothing.", "document 4"),
    Promise(
        "COORDINATOR-DOC4",
        "The examples of document 4 hold through the service, byte for byte where it prints one.",
        "document 4",
    ),
    Promise("COORDINATOR-RUNS", "A refused run is told every problem and leaves nothing behind.", "document 4"),
    Promise(
        "COORDINATOR-CREDENTIALS", "A run's credentials are held in memory alone and forgotten with it.", "document 4"
    ),
    Promise("COORDINATOR-LAST-GOOD", "The last good catalog is served while the database is away.", "document 4"),
    Promise("REGISTRY-VERSIONS", "A change names the version it replaces, and no version is used twice.", "document 4"),
)
