"""What do the answers of issue trackers say? Their JSON in, items of a backlog out; addresses of repositories.

Pure, and tolerant: an answer that is not understood has no items. Who is asked is ``backlog_live``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Literal, cast

from outfitter.squad.team import BacklogItem

_LISTS = ("issues", "items", "results", "workItems", "value", "nodes")
_GITHUB = re.compile(r"github[^/:]*[/:]([\w.-]{1,100})/([\w.-]{1,100}?)(?:\.git)?/?$")
_AZURE = re.compile(r"(?:dev\.azure\.com(?::v3)?/[^/]+|[\w-]+\.visualstudio\.com)/([^/]{1,100})/")
_CLOSED = frozenset({"closed", "done", "removed"})
_MOST = 500
_TITLE_SIZE = 300


def objects_in(answer: Mapping[str, object]) -> tuple[list[Mapping[str, object]], str]:
    """The objects that a tool's answer lists, and its text as it is."""
    text = "\n".join(_texts(answer.get("content")))
    structured = _of(answer.get("structuredContent"))
    if structured:
        return _listed(structured)[:_MOST], text
    try:
        return _listed(json.loads(text))[:_MOST], text
    except (ValueError, RecursionError):
        return [], text


def _texts(content: object) -> Iterable[str]:
    for block in cast("list[object]", content) if isinstance(content, list) else ():
        text = _of(block).get("text")
        if isinstance(text, str):
            yield text


def _listed(found: object) -> list[Mapping[str, object]]:
    if isinstance(found, list):
        return [one for each in cast("list[object]", found) if (one := _of(each))]
    whole = _of(found)
    for name in _LISTS:
        if isinstance(whole.get(name), list | dict):
            return _listed(whole[name])
    return []


def _of(found: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}


def github_item(issue: Mapping[str, object]) -> BacklogItem | None:
    """An issue of GitHub; None when it is closed, a pull request, or not one of the team's."""
    number, title = issue.get("number"), issue.get("title")
    state = str(issue.get("state") or "open").lower()
    labels = tuple(_labels(issue.get("labels")))
    if not isinstance(number, int) or not isinstance(title, str) or "pull_request" in issue:
        return None
    if state in _CLOSED or not _is_of_the_team(labels):
        return None
    login = _of(issue.get("assignee")).get("login")
    assignee = _assignee(labels) or (login if isinstance(login, str) else "")
    url = issue.get("html_url") or issue.get("url")
    return BacklogItem(f"#{number}", title[:_TITLE_SIZE], state, assignee, labels, url if isinstance(url, str) else "")


def work_item(item: Mapping[str, object]) -> BacklogItem | None:
    """A work item of Azure DevOps; None when it is closed or not one of the team's."""
    fields = {name.lower(): value for name, value in (_of(item.get("fields")) or item).items()}
    number = item.get("id") or fields.get("system.id") or fields.get("id")
    title = fields.get("system.title") or fields.get("title")
    state = str(fields.get("system.state") or fields.get("state") or "open").lower()
    told = fields.get("system.tags") or fields.get("tags") or ""
    labels = tuple(part.strip() for part in str(told).split(";") if part.strip())
    if number is None or not isinstance(title, str) or state in _CLOSED or not _is_of_the_team(labels):
        return None
    url = item.get("url")
    return BacklogItem(
        f"#{number}", title[:_TITLE_SIZE], state, _assignee(labels), labels, url if isinstance(url, str) else ""
    )


def _labels(found: object) -> Iterable[str]:
    nodes = _of(found).get("nodes")
    for label in cast("list[object]", found if isinstance(found, list) else nodes if isinstance(nodes, list) else []):
        name = label if isinstance(label, str) else _of(label).get("name")
        if isinstance(name, str):
            yield name


def _is_of_the_team(labels: Iterable[str]) -> bool:
    return any(label.lower() == "squad" or label.lower().startswith("squad:") for label in labels)


def _assignee(labels: Iterable[str]) -> str:
    return next((label[6:].strip().lower() for label in labels if label.lower().startswith("squad:")), "")


def target_in(address: str) -> tuple[Literal["github", "azure-devops"], str] | None:
    """The tracker that the address of a repository tells, and the repository or project there."""
    azure = _AZURE.search(address)
    if azure:
        return "azure-devops", azure[1].replace("%20", " ")
    github = _GITHUB.search(address)
    return ("github", f"{github[1]}/{github[2]}") if github else None
