"""What a schema becomes in Python: frozen dataclasses whose fields keep the original keys."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import typing
from typing import Any, Literal

import pytest

from outfitter.errors import InvalidArguments
from outfitter.schemas import ABSENT, Shape, read_schema
from tests.schemas.making import Json

ISSUE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "body": {"type": ["string", "null"]},
        "labels": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
        "state": {"enum": ["open", "closed"]},
        "repo-name": {"type": "string"},
        "meta": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "required": ["repo-name", "title"],
}


def make(schema: Json) -> tuple[Shape, Any]:
    shape = read_schema(schema, "github_create_issue")
    return shape, shape.type


def test_a_schema_becomes_a_frozen_dataclass_named_after_the_tool() -> None:
    _, params = make(ISSUE)
    made = params(title="a", repo_name="r")
    assert params.__name__ == "GithubCreateIssueParams"
    assert all(map(dataclasses.is_dataclass, (params, made)))
    assert params.__dataclass_params__.frozen
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.title = "b"
    with pytest.raises(dataclasses.FrozenInstanceError):
        del made.title
    assert made == params(title="a", repo_name="r") != params(title="b", repo_name="r")
    assert hash(made) == hash(params(title="a", repo_name="r"))
    assert repr(made) == "GithubCreateIssueParams(title='a', repo_name='r')"


def test_required_fields_come_first_and_can_be_given_by_position() -> None:
    _, params = make(ISSUE)
    assert params.__match_args__[:2] == ("title", "repo_name")
    assert params("a", "r") == params(repo_name="r", title="a")
    made: Json = params("a", "r")
    match made:
        case params("a", "r"):
            pass
        case _:
            pytest.fail("the class does not match by its fields")


@pytest.mark.parametrize(
    "wrong",
    [
        (("a",), {}),
        (("a", "r"), {"nonsense": 1}),
        (("a",), {"title": "b", "repo_name": "r"}),
        (tuple("abcdefghij"), {}),
    ],
)
def test_wrong_construction_is_a_type_error(wrong: Json) -> None:
    _, params = make(ISSUE)
    values, named = wrong
    with pytest.raises(TypeError, match="GithubCreateIssueParams"):
        params(*values, **named)


def test_fields_keep_their_original_keys() -> None:
    shape, params = make(ISSUE)
    keys = {field.name: field.metadata["key"] for field in dataclasses.fields(params)}
    assert keys["repo_name"] == "repo-name"
    assert shape.dump(params(title="a", repo_name="r")) == {"title": "a", "repo-name": "r"}


def test_the_types_of_fields_say_what_the_schema_says() -> None:
    _, params = make(ISSUE)
    hints = {field.name: field.type for field in dataclasses.fields(params)}
    assert hints["title"] is str
    assert hints["body"] == typing.Optional[str]  # noqa: UP045 - how the made type compares
    assert hints["state"] == Literal["open", "closed"]
    assert hints["meta"] == dict[str, int]
    (label,) = typing.get_args(hints["labels"])
    assert dataclasses.is_dataclass(label)


def test_absent_and_null_stay_apart() -> None:
    shape, params = make(ISSUE)
    with_null: Json = {"title": "a", "repo-name": "r", "body": None}
    without: Json = {"title": "a", "repo-name": "r"}
    assert shape.load(with_null).body is None
    assert shape.load(without).body is ABSENT
    assert shape.dump(shape.load(with_null)) == with_null
    assert shape.dump(shape.load(without)) == without
    assert shape.load(without) == params(title="a", repo_name="r", body=ABSENT)


def test_absent_is_one_false_object_also_after_copies_and_pickles() -> None:
    assert not ABSENT
    assert repr(ABSENT) == "ABSENT"
    assert copy.copy(ABSENT) is ABSENT
    assert copy.deepcopy([ABSENT])[0] is ABSENT
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT  # noqa: S301 - our own bytes


def test_the_functions_of_dataclasses_work() -> None:
    shape, _ = make(ISSUE)
    loaded = shape.load({"title": "a", "repo-name": "r", "labels": [{"name": "x", "more": 1}], "other": 2})
    changed = dataclasses.replace(loaded, title="b")
    assert shape.dump(changed) == {
        "title": "b",
        "repo-name": "r",
        "labels": [{"name": "x", "more": 1}],
        "other": 2,
    }
    assert dataclasses.asdict(loaded)["labels"] == [{"name": "x"}]
    assert copy.deepcopy(loaded) == loaded


def test_properties_that_the_schema_does_not_name_survive() -> None:
    shape, params = make(ISSUE)
    value: Json = {"title": "a", "repo-name": "r", "x-other": {"deep": [1, None]}, "extra_": 1}
    loaded = shape.load(value)
    assert loaded.extra_ == {"x-other": {"deep": [1, None]}, "extra_": 1}
    assert shape.dump(loaded) == value
    assert params("a", "r").extra_ == {}
    assert shape.dump(params("a", "r", extra_={"more": 1})) == {"title": "a", "repo-name": "r", "more": 1}


def test_values_by_hand_may_hold_plain_dicts_and_tuples() -> None:
    shape, params = make(ISSUE)
    label = typing.get_args({field.name: field.type for field in dataclasses.fields(params)}["labels"])[0]
    made = params("a", "r", labels=({"name": "x"}, label(name="y")))
    assert shape.dump(made) == {"title": "a", "repo-name": "r", "labels": [{"name": "x"}, {"name": "y"}]}
    with pytest.raises(InvalidArguments, match="set"):
        shape.dump(params("a", "r", labels={1}))


def test_secrets_do_not_show_in_the_repr() -> None:
    shape = read_schema({"type": "object", "properties": {"api_key": {"type": "string"}}})
    assert "hunter2" not in repr(shape.load({"api_key": "hunter2"}))


@pytest.mark.parametrize(
    "keys",
    [
        ["class", "class_", "import"],
        ["a-b", "a_b", "a.b", "a b"],
        ["1st", "2", "", "-", "💥", "é", "ﬁ", "fi"],
        ["__class__", "__init__", "__dict__", "__record__", "__slots__", "extra_", "self", "_x", "mro", "type"],
        ["x" * 5000, "import os; os.system('x')", 'a"""\nb', "None", "True"],
    ],
)
def test_keys_that_are_no_identifiers_get_stable_safe_names(keys: list[str]) -> None:
    schema: Json = {"type": "object", "properties": {key: {"type": "string"} for key in keys}}
    shape, again = read_schema(schema), read_schema(schema)
    fields = dataclasses.fields(shape.type)
    assert [field.metadata["key"] for field in fields] == keys
    assert len({field.name for field in fields}) == len(keys)
    assert all(field.name.isidentifier() for field in fields)
    assert [field.name for field in fields] == [field.name for field in dataclasses.fields(again.type)]
    value: Json = {key: f"value of {key[:5]}" for key in keys}
    assert shape.dump(shape.load(value)) == value
    assert shape.dump(shape.type(**{field.name: "v" for field in fields})) == dict.fromkeys(keys, "v")


def test_names_that_are_identifiers_stay_whatever_stands_beside_them() -> None:
    schema: Json = {"type": "object", "properties": {"a-b": {}, "a_b": {}}}
    names = {field.metadata["key"]: field.name for field in dataclasses.fields(read_schema(schema).type)}
    assert names == {"a-b": "a_b_2", "a_b": "a_b"}


def test_a_schema_that_contains_itself_is_one_class() -> None:
    schema: Json = {
        "type": "object",
        "properties": {"top": {"$ref": "#/$defs/node"}},
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "required": ["name"],
            }
        },
    }
    shape = read_schema(schema, "tree")
    value: Json = {"top": {"name": "a", "kids": [{"name": "b", "kids": [{"name": "c"}]}]}}
    loaded = shape.load(value)
    assert type(loaded.top) is type(loaded.top.kids[0].kids[0])
    assert type(loaded.top).__name__ == "Node"
    assert shape.dump(loaded) == value
    (fault,) = shape.faults({"top": {"name": "a", "kids": [{"name": "b", "kids": [{}]}]}})
    assert fault.path == "/top/kids/0/kids/0/name"


@pytest.mark.parametrize(
    "schema",
    [
        {
            "$ref": "#/$defs/json",
            "$defs": {"json": {"anyOf": [{"type": "string"}, {"items": {"$ref": "#/$defs/json"}}]}},
        },
        {"type": "array", "items": {"$ref": "#"}},
        {"type": "object", "additionalProperties": {"$ref": "#"}},
    ],
)
def test_recursion_without_an_object_is_bounded_too(schema: dict[str, Any]) -> None:
    shape = read_schema(schema, is_result=True)
    assert shape.type is not None
    value: Json = [["a"], []] if "additionalProperties" not in schema else {"a": {"b": {}}}
    value = value if "type" not in schema or schema["type"] == "object" else [[[]], []]
    assert shape.dump(shape.load(value)) == value


def test_the_alternative_that_fits_is_loaded() -> None:
    def shape_with(keyword: str, *branches: dict[str, Any]) -> Shape:
        return read_schema({"type": "object", "properties": {"x": {keyword: list(branches)}}})

    cat: Json = {
        "type": "object",
        "title": "Cat",
        "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
    }
    dog: Json = {
        "type": "object",
        "title": "Dog",
        "properties": {"kind": {"enum": ["dog"]}, "lives": {"type": "string"}},
    }
    shape = shape_with("oneOf", cat, dog, {"type": "null"}, {"type": "string"})
    assert type(shape.load({"x": {"kind": "dog", "lives": "a"}}).x).__name__ == "Dog"
    assert type(shape.load({"x": {"kind": "cat"}}).x).__name__ == "Cat"
    assert shape.load({"x": None}).x is None
    assert shape.load({"x": "s"}).x == "s"
    number: Json = {"type": "object", "title": "Number", "properties": {"v": {"type": "integer"}}, "required": ["v"]}
    text: Json = {"type": "object", "title": "Text", "properties": {"v": {"type": "string"}}, "required": ["v"]}
    other: Json = {"type": "object", "title": "Other", "properties": {"w": {}}, "required": ["w"]}
    alike = shape_with("anyOf", number, text, other)
    assert type(alike.load({"x": {"v": "s"}}).x).__name__ == "Text"
    assert type(alike.load({"x": {"w": 1}}).x).__name__ == "Other"
    lists = shape_with("anyOf", {"type": "array", "items": number}, {"type": "array", "items": text})
    assert type(lists.load({"x": [{"v": "s"}]}).x[0]).__name__ != type(lists.load({"x": [{"v": 1}]}).x[0]).__name__


def test_all_of_is_one_class() -> None:
    schema: Json = {
        "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}],
        "properties": {"c": {"type": "boolean"}},
        "$defs": {"base": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
    }
    shape = read_schema(schema)
    assert {field.name: field.type for field in dataclasses.fields(shape.type)} == {"a": str, "b": int, "c": bool}
    assert shape.dump(shape.type(a="x", b=1)) == {"a": "x", "b": 1}
    assert [fault.path for fault in shape.faults({"a": "x"})] == ["/b"]


def test_alternatives_beside_properties_are_optional_fields() -> None:
    schema: Json = {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "anyOf": [
            {"properties": {"n": {"type": "integer"}}, "required": ["n"]},
            {"properties": {"m": {"type": "null"}}},
        ],
    }
    shape = read_schema(schema)
    assert [field.name for field in dataclasses.fields(shape.type)] == ["id", "n", "m"]


def test_a_result_may_be_anything() -> None:
    assert read_schema({"type": "array", "items": {"type": "string"}}, is_result=True).type == list[str]
    assert read_schema({"type": "string"}, is_result=True).load("a") == "a"
    assert (
        read_schema({"type": "object", "properties": {"a": {}}}, "list", is_result=True).type.__name__ == "ListResult"
    )
    tuple_like = read_schema({"prefixItems": [{"type": "string"}, {"type": "object"}]}, is_result=True)
    assert tuple_like.type == list[Any]
    assert tuple_like.load(["a", {"b": 1}]) == ["a", {"b": 1}]


def test_loading_does_not_share_lists_with_the_arguments() -> None:
    shape = read_schema({"type": "object", "properties": {"a": {"type": "array"}}})
    value: dict[str, Any] = {"a": [[1]]}
    loaded = shape.load(value)
    value["a"][0].append(2)
    assert loaded.a == [[1]]


def test_the_source_is_not_changed_and_its_later_changes_do_not_matter() -> None:
    source = copy.deepcopy(ISSUE)
    shape = read_schema(source, "t")
    assert shape.schema == ISSUE
    shape.load({"title": "a", "repo-name": "r"})
    assert shape.faults({})
    assert source == ISSUE
    source["properties"]["title"]["type"] = "integer"
    source["required"].append("nothing")
    assert shape.schema == ISSUE
    assert not shape.faults({"title": "a", "repo-name": "r"})
    typing.cast("dict[str, Any]", shape.schema)["required"] = []
    assert shape.faults({})
