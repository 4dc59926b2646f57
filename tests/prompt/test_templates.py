"""Templates and prompts: what fits together, where parameters come from, what is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from outfitter.errors import PromptValidationError
from outfitter.policy import SequentialDependencyPolicy
from outfitter.prompt import MarkdownSection, MCPServer, Prompt, PromptTemplate, Section, SectionVisibility
from outfitter.session import Session
from outfitter.tools import Budget, BudgetTracker, Deadline, Tool


@dataclass(frozen=True)
class Who:
    name: str


@dataclass(frozen=True)
class Mood:
    calm: bool = True
    words: list[str] = field(default_factory=list[str])


def plain(key: str, *children: Section[None], text: str = "") -> MarkdownSection[None]:
    return MarkdownSection(title=key.title(), key=key, template=text or f"about {key}", children=children)


def template(*sections: Section[None] | Section[Who] | Section[Mood]) -> PromptTemplate[None]:
    return PromptTemplate(ns="tests", key="templates", sections=sections)


def greeting(default: Who | None = None, key: str = "greeting") -> MarkdownSection[Who]:
    return MarkdownSection[Who](title="Greeting", key=key, template="Hello $name.", default_params=default)


def ping(text: str = "pong") -> str:
    """Answer."""
    return text


@pytest.mark.promise("PROMPT-TEXT")
def test_headings_show_the_depth_and_sections_come_in_reading_order() -> None:
    prompt = template(plain("one", plain("two", plain("three"))), plain("four"))
    assert [node.path for node in prompt.sections] == [("one",), ("one", "two"), ("one", "two", "three"), ("four",)]
    assert [node.name for node in prompt.sections][2] == "one.two.three"
    assert Prompt(prompt).render().text == (
        "## One\n\nabout one\n\n### Two\n\nabout two\n\n#### Three\n\nabout three\n\n## Four\n\nabout four"
    )


def test_a_heading_has_six_signs_at_most() -> None:
    section = plain("bottom")
    for number in range(8):
        section = plain(f"level-{number}", section)
    assert "\n\n###### Bottom\n\nabout bottom" in Prompt(template(section)).render().text


def test_two_sections_of_one_path_are_refused() -> None:
    with pytest.raises(PromptValidationError, match=r"path 'a\.b'"):
        template(plain("a", plain("b")), plain("a.b"))


@pytest.mark.parametrize(("ns", "key"), [("", "k"), ("Ns", "k"), ("ns", ""), ("ns", "A"), ("n s", "k")])
def test_a_prompt_needs_a_namespace_and_a_key(ns: str, key: str) -> None:
    with pytest.raises(PromptValidationError, match="not valid"):
        PromptTemplate(ns=ns, key=key, sections=[])


@pytest.mark.promise("PROMPT-CHECKED")
def test_an_unknown_field_is_found_when_the_template_is_made() -> None:
    with pytest.raises(PromptValidationError, match=r"section 'x' asks for '\$nam' .* Who.*did you mean 'name'"):
        template(MarkdownSection[Who](title="X", key="x", template="Hello $nam"))
    with pytest.raises(PromptValidationError, match=r"'\$name' and takes no parameters"):
        template(plain("x", text="Hello $name"))
    with pytest.raises(PromptValidationError, match=r"'\$nobody'"):
        template(MarkdownSection[Who](title="X", key="x", template="Hello", summary="$nobody"))


def test_parameters_are_dataclasses() -> None:
    with pytest.raises(PromptValidationError, match="str, which is no dataclass"):
        template(MarkdownSection[str](title="X", key="x", template="Hello"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(PromptValidationError, match="default of type Mood"):
        template(MarkdownSection[Who](title="X", key="x", template="Hello", default_params=Mood()))
    for wrong in ("text", Who):
        with pytest.raises(PromptValidationError, match="instances of dataclasses"):
            Prompt(template(greeting()), wrong)


@pytest.mark.promise("PROMPT-PARAMS")
def test_missing_parameters_name_the_section_and_the_type() -> None:
    with pytest.raises(PromptValidationError, match="section 'greeting' needs parameters of type Who"):
        Prompt(template(greeting())).render()


@pytest.mark.promise("PROMPT-PARAMS")
def test_parameters_are_found_by_their_type_and_what_is_nearer_wins() -> None:
    prompt = Prompt(template(greeting(Who("default"))))
    assert prompt.render().text.endswith("Hello default.")
    bound = prompt.bind(Who("bound"))
    assert bound.render().text.endswith("Hello bound.")
    assert bound.bind(Who("later")).render().text.endswith("Hello later.")
    assert bound.render(Who("now")).text.endswith("Hello now.")
    assert bound.params == (Who("bound"),)
    assert prompt.render().text.endswith("Hello default.")


def test_one_default_serves_every_section_of_its_type() -> None:
    text = Prompt(template(greeting(key="first"), greeting(Who("you"), key="second"))).render().text
    assert text.count("Hello you.") == 2


def test_a_dataclass_whose_fields_all_have_defaults_needs_no_default() -> None:
    section = MarkdownSection[Mood](title="M", key="m", template="$calm $words")
    assert Prompt(template(section)).render().text == "## M\n\nTrue []"


def test_two_parameters_of_one_type_and_one_that_nobody_takes_are_refused() -> None:
    with pytest.raises(PromptValidationError, match="two parameters of type Who"):
        Prompt(template(greeting()), Who("a"), Who("b"))
    with pytest.raises(PromptValidationError, match=r"no section .* takes Mood"):
        Prompt(template(greeting())).render(Who("a"), Mood())


def test_render_refuses_what_it_does_not_know() -> None:
    with pytest.raises(TypeError, match="discover"):
        Prompt(template(plain("a"))).render(discover=True)  # pyright: ignore[reportCallIssue]


@pytest.mark.promise("PROMPT-ENABLED")
def test_a_disabled_section_hides_all_below_it() -> None:
    child = MarkdownSection(
        title="C",
        key="c",
        template="child",
        tools=[Tool.wrap(ping)],
        mcps=[MCPServer.uvx("git", "x")],
        policies=[SequentialDependencyPolicy({})],
    )
    parent = MarkdownSection(title="P", key="p", template="parent", children=[child], enabled=lambda: False)
    rendered = Prompt(template(parent, plain("after"))).render()
    assert rendered.text == "## After\n\nabout after"
    assert (rendered.tools, rendered.mcps, rendered.policies) == ((), (), ())


@pytest.mark.promise("PROMPT-ENABLED")
def test_a_predicate_asks_for_what_it_wants() -> None:
    session, asked = Session(), list[object]()

    def nothing() -> bool:
        asked.append("nothing")
        return True

    def of_params(params: Who) -> bool:
        asked.append(params)
        return True

    def of_session(*, session: Session | None) -> bool:
        asked.append(session)
        return True

    def of_both(params: Who, *, session: Session | None) -> bool:
        asked.append((params, session))
        return True

    sections = [
        MarkdownSection[Who](title="S", key=f"s{number}", template="x", enabled=predicate)
        for number, predicate in enumerate((nothing, of_params, of_session, of_both))
    ]
    Prompt(template(*sections)).render(Who("me"), session=session)
    assert asked == ["nothing", Who("me"), session, (Who("me"), session)]


def test_a_disabled_section_needs_no_parameters() -> None:
    section = MarkdownSection[Who](title="S", key="s", template="$name", enabled=lambda: False)
    assert Prompt(template(section)).render().text == ""


def test_a_visibility_selector_is_asked_like_a_predicate() -> None:
    section = MarkdownSection[Who](
        title="S",
        key="s",
        template="whole $name",
        summary="of $name",
        visibility=lambda params: SectionVisibility.SUMMARY if params.name == "shy" else SectionVisibility.FULL,
    )
    prompt = Prompt(template(section))
    assert "whole bold" in prompt.render(Who("bold")).text
    assert "of shy" in prompt.render(Who("shy")).text
    assert "whole shy" not in prompt.render(Who("shy")).text


def test_a_selector_that_wants_a_summary_there_is_not_is_told() -> None:
    section = MarkdownSection(title="S", key="s", template="x", visibility=lambda: SectionVisibility.SUMMARY)
    with pytest.raises(PromptValidationError, match="'s' is to be shown as its summary"):
        Prompt(template(section)).render()


def test_visibility_may_be_asked_for_at_render_time() -> None:
    prompt = Prompt(template(MarkdownSection(title="S", key="s", template="whole", summary="short"), plain("a")))
    assert "short" in prompt.render(visibility={"s": SectionVisibility.SUMMARY}).text
    with pytest.raises(PromptValidationError, match="no section 'z' to show"):
        prompt.render(visibility={"z": SectionVisibility.FULL})
    with pytest.raises(PromptValidationError, match="'a' is to be shown as its summary"):
        prompt.render(visibility={"a": SectionVisibility.SUMMARY})


def test_tools_come_in_order_and_two_of_one_name_are_refused() -> None:
    shared = Tool.wrap(ping)
    one = MarkdownSection(title="One", key="one", template="1", tools=[shared])
    same = MarkdownSection(title="Same", key="same", template="2", tools=[shared])
    other = MarkdownSection(title="Other", key="other", template="3", tools=[Tool.wrap(ping)])
    assert Prompt(template(one, same)).render().tools == (shared,)
    with pytest.raises(PromptValidationError, match="sections 'one' and 'other' both have a tool 'ping'"):
        Prompt(template(one, other)).render()


@pytest.mark.parametrize("name", ["open_sections", "read_section"])
def test_the_names_of_the_disclosing_tools_are_reserved(name: str) -> None:
    def handler() -> str:
        return ""

    with pytest.raises(PromptValidationError, match="reserved"):
        template(MarkdownSection(title="S", key="s", template="x", tools=[Tool[None, str](name, "d", handler)]))


class WithResources(Section[None]):
    def __init__(self, key: str, resource: object) -> None:
        super().__init__(title=key.title(), key=key)
        self._resource = resource

    def resources(self) -> Mapping[type, object]:
        return {type(self._resource): self._resource}

    def render_body(self, params: None) -> str:
        return "" if params is None else "x"


def test_a_toolbox_has_the_resources_policies_and_limits_of_the_prompt() -> None:
    policy, deadline, session = SequentialDependencyPolicy({"ping": {"pong"}}), Deadline.after(60), Session()
    section = MarkdownSection(title="S", key="s", template="x", tools=[Tool.wrap(ping)], policies=[policy])
    prompt = Prompt(template(section, WithResources("r", Who("resource"))))
    rendered = prompt.render(deadline=deadline, budget=Budget(max_tool_calls=3))
    assert rendered.text.endswith("## R")
    box = rendered.toolbox(session, adapter="tests")
    assert box.context.resources.get(Who) == Who("resource")
    assert (box.context.policies, box.context.deadline, box.context.adapter) == ((policy,), deadline, "tests")
    assert box.execute("ping").code == "denied"


def test_the_first_of_two_resources_of_one_type_is_used(caplog: pytest.LogCaptureFixture) -> None:
    rendered = Prompt(template(WithResources("a", Who("first")), WithResources("b", Who("second")))).render()
    assert rendered.resources == {Who: Who("first")}
    assert "prompt.render.duplicate_resource" in caplog.text


def test_a_toolbox_has_the_session_of_the_rendering_unless_another_is_given() -> None:
    rendered, other = Prompt(template(plain("a"))).render(session=Session(session_id="first")), Session()
    assert rendered.toolbox().context.session.session_id == "first"
    assert rendered.toolbox(other).context.session is other


def test_a_budget_that_is_tracked_goes_on_over_renderings() -> None:
    prompt = Prompt(template(MarkdownSection(title="S", key="s", template="x", tools=[Tool.wrap(ping)])))
    tracker = BudgetTracker(Budget(max_tool_calls=2))
    results = [prompt.render(budget=tracker).toolbox().execute("ping") for _ in range(3)]
    assert [result.success for result in results] == [True, True, False]
    assert results[2].code == "budget_spent"


def test_the_earlier_of_two_deadlines_holds() -> None:
    now = datetime.now(UTC)
    soon, late = Deadline(now + timedelta(seconds=5)), Deadline(now + timedelta(seconds=50))
    prompt = Prompt(template(plain("a")))
    assert prompt.render(deadline=late, budget=Budget(deadline=soon)).toolbox().context.deadline == soon
    assert prompt.render(budget=Budget(deadline=late)).toolbox().context.deadline == late


def test_a_rendered_prompt_does_not_change() -> None:
    rendered = Prompt(template(plain("a"))).render()
    with pytest.raises(FrozenInstanceError):
        rendered.text = "other"  # pyright: ignore[reportAttributeAccessIssue]
    assert rendered.descriptor is not None
    assert (rendered.descriptor.ns, rendered.descriptor.key) == ("tests", "templates")
    assert rendered.descriptor.sections.keys() == {"a"}
