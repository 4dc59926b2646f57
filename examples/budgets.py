"""An agent that asks the same thing again and again is told so, and one that has used enough is stopped."""

import tempfile
from pathlib import Path

from outfitter import McpIntegrationSection, MCPServer, Session
from outfitter.catalog import Budget, Budgets, Measure, Period
from outfitter.policy import BudgetPolicy
from outfitter.storage import open_ledger
from outfitter.tools import Toolbox, ToolContext

WHERE = {"source_timezone": "UTC", "target_timezone": "Asia/Tokyo"}
budgets = Budgets(
    repeats=2,
    limits=(Budget(Measure.CALLS, 3, Period.DAY, "time", "convert_time"), Budget(Measure.TOKENS, 5000, Period.RUN)),
)

with tempfile.TemporaryDirectory() as folder:
    ledger = open_ledger(Path(folder, "coder.ledger"))  # what is counted there outlives this process
    policy = BudgetPolicy(budgets, "coder", ledger)
    session = Session()
    time = MCPServer.stdio("time", "mcp-server-time", ("--local-timezone", "UTC")).with_policies(policy)
    with McpIntegrationSection(servers=[time], session=session) as section:
        toolbox = Toolbox.of(section.tools(), ToolContext(session=session))
        for hour in ("12:00", "12:00", "12:00", "13:00", "14:00"):
            answer = toolbox.execute("time_convert_time", {**WHERE, "time": hour})
            print(hour, "done" if answer.success else f"{answer.code}: {answer.message}")

    for state in policy.states(session.session_id):
        print(state.budget, state.scope, state.used, "of", state.limit)
    ledger.close()
