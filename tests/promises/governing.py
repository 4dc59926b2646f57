"""What governs calls beside the plan: pins, search, approvals, budgets, recordings, large results, overrides."""

from __future__ import annotations

from tests.promises.promise import Promise

PROMISES: tuple[Promise, ...] = (
    Promise(
        "APPROVAL-WAIT",
        "A call that a rule asks about waits for a person, bounded, and its record says who said yes.",
        "approvals",
    ),
    Promise("APPROVAL-ONCE", "A yes is used once, whichever process comes first.", "approvals"),
    Promise("APPROVAL-CLI", "Calls that wait are listed, shown and answered from the command line.", "approvals"),
    Promise("APPROVAL-API", "An admin answers over the API; others only look.", "approvals"),
    Promise(
        "APPROVAL-CLIENT",
        "The person at the client is asked only where the agent permits it, and any other answer may come first.",
        "approvals",
    ),
    Promise(
        "APPROVAL-DASHBOARD", "A call that waits appears on its page by itself and goes on with a click.", "approvals"
    ),
    Promise(
        "APPROVAL-LIBRARY",
        "In your own process a function, or whoever answers for the machine, is asked the same.",
        "approvals",
    ),
    Promise(
        "BUD-01",
        "A budget refuses the first call too many and says how much was used and when it begins anew.",
        "budgets",
    ),
    Promise("BUD-02", "The budget of a run never begins anew and is each run's own.", "budgets"),
    Promise("BUD-03", "The same call with the same arguments too often in a row is a loop, and is refused.", "budgets"),
    Promise("BUD-04", "Several processes count every call once and let none too many through.", "budgets"),
    Promise("BUD-05", "What was counted is there after the process was killed.", "budgets"),
    Promise("BUD-06", "A damaged file of counts is named, and never begun anew in silence.", "budgets"),
    Promise(
        "BUD-07", "Budgets are shown and begun anew by command, API and page; who did it is written down.", "budgets"
    ),
    Promise("BUD-08", "Both lanes of the gateway count the same.", "budgets"),
    Promise("BUD-09", "A used-up budget is a result that a model can read.", "budgets"),
    Promise("BUD-10", "A run pays for itself and for the runs above it.", "budgets"),
    Promise("BUD-11", "The workers of a gateway count together and go on after they were killed.", "budgets"),
    Promise("BUD-12", "Calls are counted wherever the tool lives.", "budgets"),
    Promise(
        "CASSETTE-PYTEST", "A suite records once, then needs no server, and can be recorded anew.", "record-and-replay"
    ),
    Promise("RECORD-MASKED", "No secret reaches a recording.", "record-and-replay"),
    Promise("RECORD-REPLAY", "A recorded server says what it said, in both eras.", "record-and-replay"),
    Promise(
        "REPLAY-ORDER", "A repeated request gets its answers in their order, and then the last.", "record-and-replay"
    ),
    Promise("REPLAY-MASKS", "Anything fits where a mask stands, and nothing else does.", "record-and-replay"),
    Promise(
        "REPLAY-FALLBACK",
        "Only an explicit fallback asks a live server, and adds what it says where that is asked for.",
        "record-and-replay",
    ),
    Promise("PROXY-FAULTS", "The proxy's faults strike real connections and are told at the end.", "record-and-replay"),
    Promise("PROXY-SEED", "The same seed strikes the same requests, whatever their order.", "record-and-replay"),
    Promise(
        "LARGE-RESULTS",
        "A large result is kept, the model gets a preview, and the whole of it can be read in parts.",
        "large-results",
    ),
    Promise(
        "LARGE-RESULTS-BOUND",
        "What was kept for one agent is not there for another; every worker finds it, also after a restart.",
        "large-results",
    ),
    Promise(
        "LARGE-RESULTS-LIBRARY",
        "A bridged tool keeps a large result for its session, and a tool reads it.",
        "large-results",
    ),
    Promise("OVERRIDE-SHOWN", "One agent sees the override, another what the server says.", "overrides"),
    Promise(
        "OVERRIDE-ARGUMENTS",
        "Defaults are filled in before rules judge; a hidden argument cannot be given.",
        "overrides",
    ),
    Promise(
        "OVERRIDE-LIBRARY", "An override changes a tool of the library as it changes one of the gateway.", "overrides"
    ),
    Promise(
        "REGISTRY-OFFICIAL",
        "A registry of the official API is searched and added from; nothing is started, no literal secret is taken.",
        "official-registry",
    ),
    Promise(
        "REGISTRY-PUBLISHED",
        "A viewer browses the team's servers in the official form, without a secret.",
        "official-registry",
    ),
    Promise(
        "SEARCH-THREE",
        "An agent that searches finds, describes and calls exactly its own tools by three.",
        "tool-search",
    ),
    Promise("SEARCH-COLD", "After a restart a server is started only for a tool of its own.", "tool-search"),
    Promise(
        "SEARCH-LIBRARY",
        "The tools of a section are found and called by the same three, open or closed.",
        "tool-search",
    ),
    Promise(
        "SEARCH-WORDS",
        "Among five hundred tools the right one is found, and nine tenths of the tokens are spared.",
        "tool-search",
    ),
    Promise("TOKEN-METER", "The tokens of an agent's tools are those of what it is shown.", "tool-search"),
    Promise("CASSETTE-KILL", "A killed recorder loses at most the last line, and the file can be read.", "testing"),
)
