"""WHO MAY: answers Allow, Deny or Ask about one call, with the reason. Pure; enforced by the bridge and the gateway."""

from outfitter.policy.decisions import Allow, Ask, Decision, Deny
from outfitter.policy.judges import RolePolicy, RulePolicy
from outfitter.policy.policies import Facts, ToolPolicy
from outfitter.policy.rules import judge
from outfitter.policy.sequence import ReadBeforeWritePolicy, SequentialDependencyPolicy

__all__ = [
    "Allow",
    "Ask",
    "Decision",
    "Deny",
    "Facts",
    "ReadBeforeWritePolicy",
    "RolePolicy",
    "RulePolicy",
    "SequentialDependencyPolicy",
    "ToolPolicy",
    "judge",
]
