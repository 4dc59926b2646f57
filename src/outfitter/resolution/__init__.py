"""WHAT THIS RUN GETS: the header chain, the filters, the plan, and the reason for every value in it. Pure.

``resolve`` makes a blank ``RunPlan``; ``explain`` and ``why_not`` read it; ``arm`` fills it for whoever connects.
"""

from outfitter.resolution.arming import (
    ArmedCredentials,
    ArmedPlan,
    ArmedRemote,
    ArmedServer,
    ArmedStdio,
    Want,
    arm,
    arm_each,
    server_wants,
    unresolved,
    wants_of,
)
from outfitter.resolution.check import CatalogCheck, check_catalog
from outfitter.resolution.describing import describe_governing, describe_override, describe_rule
from outfitter.resolution.explain import (
    ExplainedHeader,
    ExplainedServer,
    ExplainedTool,
    Explanation,
    blueprint,
    explain,
)
from outfitter.resolution.filling import Need, Supply
from outfitter.resolution.pinning import approval_of, pin_key, with_waiting
from outfitter.resolution.placeholders import (
    ORCHESTRATOR_URL,
    RUN_ID,
    SESSION_ID,
    RuntimeValue,
    Variable,
    parse_template,
)
from outfitter.resolution.plan import Gate, Notice, PlannedServer, RuleSet, RunPlan
from outfitter.resolution.resolve import resolve
from outfitter.resolution.seen import SeenServer, ToolWeights, WeighedTool, seen_key, weigh, weigh_seen
from outfitter.resolution.values import Merged, Plain, text_of
from outfitter.resolution.why_not import WhyNot, why_not

__all__ = [
    "ORCHESTRATOR_URL",
    "RUN_ID",
    "SESSION_ID",
    "ArmedCredentials",
    "ArmedPlan",
    "ArmedRemote",
    "ArmedServer",
    "ArmedStdio",
    "CatalogCheck",
    "ExplainedHeader",
    "ExplainedServer",
    "ExplainedTool",
    "Explanation",
    "Gate",
    "Merged",
    "Need",
    "Notice",
    "Plain",
    "PlannedServer",
    "RuleSet",
    "RunPlan",
    "RuntimeValue",
    "SeenServer",
    "Supply",
    "ToolWeights",
    "Variable",
    "Want",
    "WeighedTool",
    "WhyNot",
    "approval_of",
    "arm",
    "arm_each",
    "blueprint",
    "check_catalog",
    "describe_governing",
    "describe_override",
    "describe_rule",
    "explain",
    "parse_template",
    "pin_key",
    "resolve",
    "seen_key",
    "server_wants",
    "text_of",
    "unresolved",
    "wants_of",
    "weigh",
    "weigh_seen",
    "why_not",
    "with_waiting",
]
