"""Overrides: other texts for sections and tools, when they hold and when they do not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from outfitter.errors import InvalidDocument, PromptValidationError, StorageUnavailable
from outfitter.prompt import (
    MarkdownSection,
    Prompt,
    PromptOverrides,
    PromptTemplate,
    RenderedPrompt,
    Section,
    SectionOverride,
    ToolOverride,
    load_overrides,
    save_overrides,
    tool_hash,
)
from outfitter.tools import Tool


@dataclass(frozen=True)
class Who:
    name: str = "you"


@dataclass(frozen=True)
class Words:
    text: str
    times: int = 1


def say(params: Words) -> str:
    """Say it."""
    return params.text * params.times


SAY = Tool.wrap(say)
CHILD = MarkdownSection(title="Child", key="child", template="below")
FIXED = MarkdownSection(title="Fixed", key="fixed", template="as it is", accepts_overrides=False)
HELLO = MarkdownSection[Who](title="Hello", key="hello", template="Hello $name.", children=[CHILD], tools=[SAY])
TEMPLATE = PromptTemplate(ns="t", key="t", sections=[HELLO, FIXED])


def render(overrides: PromptOverrides) -> RenderedPrompt[None]:
    return Prompt(TEMPLATE, overrides=overrides).render()


def section(path: str, body: str, expected_hash: str | None = None) -> PromptOverrides:
    return PromptOverrides(sections={path: SectionOverride(body, expected_hash)})


@pytest.mark.promise("OVERRIDES")
def test_a_body_is_replaced_and_its_fields_are_filled() -> None:
    text = render(section("hello", "\n    Good day, ${name}.\n")).text
    assert text == "## Hello\n\nGood day, you.\n\n### Child\n\nbelow\n\n## Fixed\n\nas it is"
    assert "other" in render(section("hello.child", "other")).text
    assert "Hello you." in Prompt(TEMPLATE).bind(Who()).render().text


def test_overrides_stay_when_parameters_are_bound() -> None:
    prompt = Prompt(TEMPLATE, overrides=section("hello", "Hi $name")).bind(Who("Ann"))
    assert "Hi Ann" in prompt.render().text


@pytest.mark.promise("OVERRIDES")
@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("helo", "x", "no section 'helo' to override .*did you mean 'hello'"),
        ("child", "x", "no section 'child'"),
        ("fixed", "x", "'fixed' accepts no overrides"),
        ("hello", "$nobody", r"'\$nobody'"),
    ],
)
def test_an_override_that_does_not_fit_is_refused(path: str, body: str, told: str) -> None:
    with pytest.raises(PromptValidationError, match=told):
        Prompt(TEMPLATE, overrides=section(path, body))


def test_a_section_without_a_template_accepts_no_overrides() -> None:
    class Own(Section[None]):
        def render_body(self, params: None) -> str:
            return f"own {params}"

    template = PromptTemplate(ns="t", key="t", sections=[Own(title="O", key="o")])
    with pytest.raises(PromptValidationError, match="'o' accepts no overrides"):
        Prompt(template, overrides=section("o", "x"))


@pytest.mark.promise("OVERRIDES")
def test_an_override_of_another_text_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert "new" in render(section("hello", "new", TEMPLATE.descriptor.sections["hello"])).text
    assert caplog.records == []
    assert "Hello you." in render(section("hello", "new", "0" * 32)).text
    assert "prompt.override.stale: the override of section 'hello'" in caplog.text


@pytest.mark.promise("OVERRIDES")
def test_a_tool_gets_other_descriptions_and_stays_the_same_otherwise() -> None:
    override = ToolOverride("Speak up.", {"text": "What to say."}, tool_hash(SAY))
    (tool,) = render(PromptOverrides(tools={"say": override})).tools
    assert tool.description == "Speak up."
    assert "What to say." in str(tool.input_schema)
    assert "What to say." not in str(SAY.input_schema)
    assert SAY.description == "Say it."
    box = render(PromptOverrides(tools={"say": override})).toolbox()
    assert box.execute("say", {"text": "ho", "times": 2}).value == "hoho"
    assert box.execute("say", {"text": 3}).code == "invalid_arguments"


def test_an_override_of_a_tool_that_does_not_fit_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(PromptValidationError, match=r"no tool 'sai'.*did you mean 'say'"):
        Prompt(TEMPLATE, overrides=PromptOverrides(tools={"sai": ToolOverride("x")}))
    with pytest.raises(PromptValidationError, match="no parameter 'loud'"):
        render(PromptOverrides(tools={"say": ToolOverride(param_descriptions={"loud": "x"})}))
    fixed = Tool[Words, str]("fixed", "As it is.", say, accepts_overrides=False)
    template = PromptTemplate(
        ns="t", key="t", sections=[MarkdownSection(title="S", key="s", template="x", tools=[fixed])]
    )
    with pytest.raises(PromptValidationError, match="tool 'fixed' accepts no overrides"):
        Prompt(template, overrides=PromptOverrides(tools={"fixed": ToolOverride("x")})).render()
    stale = PromptOverrides(tools={"say": ToolOverride("x", expected_hash="old")})
    assert render(stale).tools[0].description == "Say it."
    assert "prompt.override.stale" in caplog.text


@pytest.mark.promise("OVERRIDE-FILES")
def test_overrides_travel_as_a_file(tmp_path: Path) -> None:
    overrides = PromptOverrides(
        sections={"hello": SectionOverride("Grüß $name", "abc")},
        tools={"say": ToolOverride("Speak.", {"text": "What."})},
    )
    file = tmp_path / "overrides.json"
    for _ in range(2):
        save_overrides(file, overrides)
        assert load_overrides(str(file)) == overrides
    assert [path.name for path in tmp_path.iterdir()] == ["overrides.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"section": {}}',
        '{"sections": {"a": {"text": "x"}}}',
        '{"sections": {"a": {"body": 1}}}',
        "\xff",
    ],
)
def test_a_file_that_is_no_overrides_is_told_by_its_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "overrides.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidDocument, match=r"overrides\.json: not a file of overrides"):
        load_overrides(file)


def test_files_that_cannot_be_read_or_written_are_told(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match="cannot read"):
        load_overrides(tmp_path / "none.json")
    with pytest.raises(StorageUnavailable, match="cannot write"):
        save_overrides(tmp_path / "none" / "x.json", PromptOverrides())
    large = tmp_path / "large.json"
    large.write_bytes(b" " * (5 << 20))
    with pytest.raises(InvalidDocument, match="more than"):
        load_overrides(large)
