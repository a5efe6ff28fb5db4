"""What the dashboard asks of Prometheus, as Grafana would ask it."""

import json
import re

from places import ROOT

DASHBOARD = ROOT / "deploy/grafana/lychgate.json"
# Where zero is the answer that is wanted, and the known load cannot have another: a gate that lost lines would be at fault.
QUIET = {"Audit lines lost"}
# They count series that begin at their first hit.
WHOLE = ("Injections", "Calls refused", "Limits reached")


class Question:
    """One query of the dashboard, and what its answer has to look like."""

    def __init__(self, name, query, legend, may_be_zero=False):
        self.name, self.query, self.may_be_zero = name, query, may_be_zero
        self.labels = re.findall(r"\{\{(\w+)\}\}", legend)

    def for_times(self, step, shown):
        """As asked where a point stands for `step` seconds and `shown` are shown, of all that there is to choose from."""
        values = {"__rate_interval": f"{step}s", "__range": f"{shown}s", "job": ".*", "instance": ".*", "upstream": ".*"}
        return re.sub(r"\$(\w+)", lambda name: values[name[1]], self.query)

    def counter(self):
        """A query of what is counted by the very series whose growth is asked for; None if it asks for none."""
        grows = re.search(r"(?:increase|rate)\((\w+(?<!_bucket)\{[^}]*\})\[", self.for_times(0, 0))
        by = re.search(r"sum( by \([^)]*\))?", self.query)
        return grows and f"sum{by[1] or ''} ({grows[1]})"


def read():
    return json.loads(DASHBOARD.read_text())


def panels():
    """A question for each target of each panel."""
    rows = read()["panels"]
    # One that is folded up holds its panels.
    for panel in [*rows, *(panel for row in rows for panel in row.get("panels", []))]:
        for target in panel.get("targets", []):
            name = f"{panel['title']}, {target['refId']}"
            yield Question(name, target["expr"], target.get("legendFormat", ""), panel["title"] in QUIET)


def marks():
    for mark in read()["annotations"]["list"]:
        yield Question(mark["name"], mark["expr"], mark["titleFormat"])


def variables():
    """Name, metric with its selector, and label of each choice that is made from what Prometheus has."""
    for variable in read()["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            yield Question(variable["name"], asked[1], ""), asked[2]


def whole(title, shown):
    """The query of a panel, and its counter."""
    question = next(question for question in panels() if question.name == f"{title}, A")
    query = question.for_times(shown, shown)
    return query, re.search(r"lychgate_\w+", query)[0]
