"""Search: ranked, with what matched marked; a query is words, whatever it looks like, and its cost is bounded."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outfitter.squad import Decision, Index, SquadFolder
from tests.squad.folders import large_folder, new_folder

TEXTS = {
    "postgres": ("Use PostgreSQL", "PostgreSQL where several write."),
    "tokens": ("Tokens are hashed", "Only digests of tokens are stored, in PostgreSQL too."),
    "café": ("Das Café heißt Über", "naïve Größe, 東京 の データベース"),
    "snake": ("Names", "squad_decide and `squad-state` are the names; see **bold** words."),
}
DECISIONS = [Decision(id_, title, text) for id_, (title, text) in TEXTS.items()]
INDEX = Index.of(DECISIONS)


def ids(query: str, index: Index = INDEX) -> list[str]:
    return [found.decision.id for found in index.search(query).found]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("postgresql", ["postgres", "tokens"]),
        ("POSTGRESQL", ["postgres", "tokens"]),
        ("postgre", ["postgres", "tokens"]),
        ("tokens postgresql", ["tokens"]),
        ("cafe uber", ["café"]),
        ("GRÖSSE", ["café"]),
        ("東京", ["café"]),
        ("squad_decide", ["snake"]),
        ("squad-state", ["snake"]),
        ("nowhere", []),
    ],
)
def test_words_are_found_without_case_or_accents_and_by_their_beginning(query: str, expected: list[str]) -> None:
    assert ids(query) == expected


def test_a_decision_with_the_word_in_its_title_and_more_often_comes_first() -> None:
    answer = INDEX.search("tokens")
    assert [found.decision.id for found in answer.found] == ["tokens"]
    assert ids("postgresql") == ["postgres", "tokens"]
    scores = [found.score for found in INDEX.search("postgresql").found]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0


def test_when_no_decision_has_all_words_those_with_some_come_with_a_note() -> None:
    answer = INDEX.search("tokens café")
    assert {found.decision.id for found in answer.found} == {"tokens", "café"}
    assert answer.notes == ("no decision has all of the words; these have some of them",)


def test_what_matched_is_marked_and_marks_of_the_text_are_not_mistaken_for_it() -> None:
    (found,) = INDEX.search("names").found
    assert found.snippets[0] == "**Names**"
    assert "the **names**; see bold words." in found.snippets[1]
    assert INDEX.search("bold").found[0].snippets[0].count("**") == 2


def test_of_a_long_text_up_to_three_places_are_shown() -> None:
    text = " ".join(["filler"] * 200 + ["needle"] + ["filler"] * 200 + ["needle"] + ["filler"] * 200) + " needle" * 5
    (found,) = Index.of([Decision("a", "t", text * 3)]).search("needle").found
    assert len(found.snippets) == 3
    assert all("**needle**" in snippet and len(snippet) < 300 for snippet in found.snippets)
    assert all(part in {"filler", "**needle**"} for part in found.snippets[0].strip("…").split())


BOMBS = [
    "*", "post*", '"postgresql"', "postgresql NEAR/1 write", "NOT postgresql", "postgresql AND (tokens OR x", "a OR",
    "(a+)+$", "((((((((((", "^.*(.*)*$", "'; DROP TABLE x; --", "\0", "\ud800", "{postgresql}", "title:postgresql", "%",
    "_", "-" * 100_000, "(a|a)*" * 10_000, '"' * 100_000,
]  # fmt: skip


@pytest.mark.promise("O05")
@pytest.mark.parametrize("query", BOMBS, ids=lambda query: ascii(query)[:20])
def test_a_query_is_words_and_never_an_expression(query: str) -> None:
    answer = INDEX.search(query)
    words = {"post", "postgresql", "near", "write", "not", "tokens", "title", "drop", "table"}
    if not words & set(query.lower().replace('"', " ").replace("*", " ").replace("{", " ").split()):
        assert all(found.decision.id in TEXTS for found in answer.found)
    assert len(answer.found) <= 10


@pytest.mark.promise("O05")
def test_quotes_and_wildcards_change_nothing() -> None:
    for query in ('"postgresql"', "postgresql*", "(postgresql)", "~postgresql^2", "postgresql\0"):
        assert ids(query) == ids("postgresql")


@pytest.mark.promise("O05")
def test_a_query_of_a_megabyte_is_cut_and_says_so() -> None:
    for query in ("postgresql " * 100_000, "a" * 1_000_000, " ".join(f"w{n}" for n in range(150_000))):
        answer = INDEX.search(query)
        assert any("the query was cut" in note for note in answer.notes)
    assert INDEX.search("postgresql " * 100_000).found == INDEX.search("postgresql").found


@pytest.mark.promise("O05")
@pytest.mark.anyio
async def test_hostile_queries_over_ten_thousand_decisions_are_answered_with_a_bounded_number(tmp_path: Path) -> None:
    large_folder(tmp_path)
    team = SquadFolder.find(tmp_path)
    assert len((await team.decisions()).value) == 10_000
    for query in (*BOMBS, "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 1000, "use the for part " * 9999):
        told = await team.search(query, limit=1_000_000)
        assert len(told.value) <= 100
    assert len((await team.search("postgresql", limit=-5)).value) == 1


@given(st.text(max_size=300), st.lists(st.text(max_size=100), max_size=8))
@settings(max_examples=100, deadline=None)
def test_any_query_over_any_texts_is_answered(query: str, texts: list[str]) -> None:
    decisions = [Decision(str(number), text, text) for number, text in enumerate(texts)]
    answer = Index.of(decisions).search(query)
    assert len({found.decision.id for found in answer.found}) == len(answer.found)
    assert all(found.snippets for found in answer.found)


@pytest.mark.promise("SQUAD-SEARCH")
@pytest.mark.anyio
async def test_a_search_finds_archived_and_pending_decisions_and_follows_changes(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    team = SquadFolder.find(tmp_path)
    (archived,) = (await team.search("kerberos")).value
    assert archived.decision.is_archived
    assert archived.snippets == ("By: Fenster What: The old command line gets fixes only; **kerberos** stays out.",)
    assert (await team.search("roster resources")).value[0].decision.is_pending
    assert (await team.search("blockchain")).value == ()
    with (folder / "decisions.md").open("a") as file:
        file.write("\n### 2026-06-06: No blockchain\n\n**By:** Flight\n")
    assert [found.decision.title for found in (await team.search("blockchain")).value] == ["No blockchain"]


@pytest.mark.anyio
async def test_a_search_for_nothing_says_so(tmp_path: Path) -> None:
    new_folder(tmp_path)
    told = await SquadFolder.find(tmp_path).search(" ?! ")
    assert told.value == ()
    assert "the query has no words to look for" in told.notes
