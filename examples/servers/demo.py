"""What is in the servers to begin with? Demo data of two projects that must not see each other."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DemoDocument:
    """A document of the context store."""

    namespace: str
    title: str
    text: str
    tags: tuple[str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class DemoIssue:
    """An issue of the tracker; its number is its place in the project."""

    project: str
    summary: str
    status: str


@dataclass(frozen=True, slots=True)
class DemoPage:
    """A page of the tracker."""

    space: str
    title: str
    text: str


DEMO_DOCUMENTS = (
    DemoDocument("project-alpha", "Alpha goals", "Alpha ships the importer.", ("plan",), {"sprint": "sprint-4"}),
    DemoDocument("project-alpha", "Alpha retro", "The importer was late.", ("notes",), {"sprint": "sprint-5"}),
    DemoDocument("project-alpha", "Alpha review", "The importer works.", ("notes",), {"sprint": "sprint-5"}),
    DemoDocument("project-beta", "Beta goals", "Beta ships the exporter.", ("plan",), {"sprint": "sprint-5"}),
    DemoDocument("project-beta", "Beta retro", "The exporter was early.", ("notes",), {"sprint": "sprint-6"}),
)
DEMO_PROJECTS = ("ALPHA", "ALPHA-OPS", "BETA", "BETA-OPS")
DEMO_ISSUES = (
    DemoIssue("ALPHA", "The importer drops the last line", "open"),
    DemoIssue("ALPHA", "Write the importer's manual", "in progress"),
    DemoIssue("ALPHA-OPS", "Rotate the importer's certificate", "open"),
    DemoIssue("BETA", "The exporter writes dates twice", "open"),
    DemoIssue("BETA-OPS", "Move the exporter to the new host", "done"),
)
DEMO_PAGES = (
    DemoPage("DEV", "How we release", "Every Tuesday, after the tests."),
    DemoPage("DOCS", "Words of the exporter", "A batch is what is written at once."),
)
