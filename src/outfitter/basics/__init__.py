"""The smallest words: names, secrets, provenance, the one error in a group, texts ranked by words.

No I/O, no third-party import.
"""

from outfitter.basics.groups import the_one_in
from outfitter.basics.names import check_agent_name, check_server_name, quote, suggest
from outfitter.basics.provenance import Level, Origin, Overruled, Sourced
from outfitter.basics.ranking import SHORTEST_STEM, WORD, WordIndex, best_of, folded, words_of
from outfitter.basics.secret import MASK, Secret, SecretRef, looks_sensitive

__all__ = [
    "MASK",
    "SHORTEST_STEM",
    "WORD",
    "Level",
    "Origin",
    "Overruled",
    "Secret",
    "SecretRef",
    "Sourced",
    "WordIndex",
    "best_of",
    "check_agent_name",
    "check_server_name",
    "folded",
    "looks_sensitive",
    "quote",
    "suggest",
    "the_one_in",
    "words_of",
]
