"""What can be called, and how one call goes: tools, their surroundings, and the one path every call takes."""

from outfitter.tools.context import ResourceRegistry, ToolContext
from outfitter.tools.enforcement import PolicyFacts
from outfitter.tools.execution import aexecute, execute
from outfitter.tools.limits import Budget, BudgetTracker, Deadline
from outfitter.tools.searching import SearchedTool, searching_tools
from outfitter.tools.tool import Tool
from outfitter.tools.toolbox import Toolbox

__all__ = [
    "Budget",
    "BudgetTracker",
    "Deadline",
    "PolicyFacts",
    "ResourceRegistry",
    "SearchedTool",
    "Tool",
    "ToolContext",
    "Toolbox",
    "aexecute",
    "execute",
    "searching_tools",
]
