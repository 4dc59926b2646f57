"""WHO MAY: answers Allow, Deny or Ask about one call, with the reason. Pure; enforced by the bridge and the gateway."""

from outfitter.policy.decisions import Allow, Ask, Decision, Deny
from outfitter.policy.rules import judge

__all__ = ["Allow", "Ask", "Decision", "Deny", "judge"]
