"""A real Prometheus scrapes a gate under a known load; every query of the dashboard and every alert is asked for."""

import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import dashboard
from beside import Beside
from load import TOKEN_SECONDS, Load
from places import ROOT, SCRATCH, Background, free_port, gate, node, tail

PROGRAM = "prometheus"
CONFIG = ROOT / "deploy/prometheus.yml"
ALERTS = ROOT / "deploy/alerts.yml"
REFERENCE = ROOT / "deploy/metrics.md"
# The rules ask for the job by this name.
JOB = "lychgate"
SECONDS = 30
SCRAPE_SECONDS = 1
# What Prometheus itself has to say of each target, and what the rules make.
ABOUT_TARGETS = re.compile(r"up|scrape_\w+|ALERTS\w*|lychgate:.*")
# What the known load makes fire; besides these nothing may, but for what hangs on how fast the machine is.
FIRING = {
    "LychgateInjectionDetected", "LychgateInjectionsRising", "LychgateCommandBlocked", "LychgateDefinitionHeld",
    "LychgateUpstreamDown", "LychgateLoginOwed", "LychgateTokenExpiring", "LychgateReloadRefused", "LychgateProtectionWeakened",
    "LychgateSuppressionExpired", "LychgateAuditTampered",
}
MAY_FIRE = {"LychgateSlowInspection", "LychgateUpstreamSlow", "LychgateDown"}


def prometheus(only):
    """Loads, scrapes, asks; gives (name, fault or None) one after the other."""
    program = shutil.which(PROGRAM)
    if program is None:
        if os.environ.get("CI") == "true":
            sys.exit("peers: CI has no `prometheus`, and nothing is skipped there")
        print("peers: skipped, for want of `prometheus`")
        return
    folder = SCRATCH / "prometheus"
    folder.mkdir()
    ports = {name: free_port() for name in ("agents", "admin", "hostile", "fixture", "authority", "gone", "prometheus")}
    with Background() as background, Beside() as beside:
        for server, *more in (("hostile",), ("fixture",), ("authority", str(TOKEN_SECONDS))):
            command = [node(), f"servers/{server}.mjs", str(ports[server]), *more]
            background.start(f"loaded-{server}", command, ports[server])
        load = Load(folder, ports, beside)
        try:
            load.log_in()
            load.start(background)
            start_prometheus(background, program, folder, ports)
            server = Server(f"http://127.0.0.1:{ports['prometheus']}")
            for name, fault in Trial(server, load, background).all():
                if only in name:
                    yield f"prometheus: {name}", fault
        except (AssertionError, LookupError, OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
            yield "prometheus: the known load", f"{type(error).__name__}: {error}\n{tail('gate-loaded')}"


def start_prometheus(background, program, folder, ports):
    """With the config and the alert rules that ship, but that nothing waits, for time is short."""
    config, rules = folder / CONFIG.name, folder / ALERTS.name
    shipped = CONFIG.read_text().replace('"lychgate:8801"', f'"127.0.0.1:{ports["admin"]}"')
    config.write_text(re.sub(r"(_interval:) \S+", rf"\1 {SCRAPE_SECONDS}s", shipped))
    rules.write_text(re.sub(r"(?m)^( +for:) \S+$", r"\1 0s", ALERTS.read_text()))
    command = [
        program, f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{ports['prometheus']}",
    ]
    background.start("prometheus", command, ports["prometheus"])


class Server:
    """The Prometheus, asked over HTTP."""

    def __init__(self, url):
        self.url = url

    def ask(self, path, **parameters):
        """The data of an answer; a RuntimeError with what Prometheus finds fault with, warnings too."""
        try:
            url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
            with urllib.request.urlopen(url, timeout=SECONDS) as answer:
                body = json.load(answer)
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode(errors="replace")) from None
        if body["status"] != "success" or body.get("warnings"):
            raise RuntimeError(json.dumps({key: body[key] for key in body if key != "data"}))
        return body["data"]

    def query(self, query, at):
        """Labels and value of each series."""
        return [(series["metric"], float(series["value"][1])) for series in self.ask("query", query=query, time=at)["result"]]

    def number(self, query, at):
        return sum(value for _, value in self.query(query, at))

    def caught_up(self):
        """Waits for two scrapes and what the rules make of them; the moment then."""
        begun, deadline, why = time.time(), time.monotonic() + SECONDS, "it was not scraped"
        while time.monotonic() < deadline:
            now = time.time()
            try:
                if self.number(f'timestamp(up{{job="{JOB}"}} == 1)', now) > begun + 2 * SCRAPE_SECONDS:
                    return now
            except RuntimeError as error:
                # It listens before it answers.
                why = error
            time.sleep(0.1)
        raise RuntimeError(f"not within {SECONDS} s: {why}")


class Trial:
    """What is asked, in order."""

    def __init__(self, server, load, background):
        self.server, self.load, self.background = server, load, background
        self.before = self.between = self.after = None

    def all(self):
        self.before = self.server.caught_up()
        self.load.burst()
        self.between = self.server.caught_up()
        self.load.burst()
        self.after = self.server.caught_up()
        for question in dashboard.panels():
            yield f"panel {question.name}", judged(lambda: self.answered(question))
        for question, label in dashboard.variables():
            yield f"choice of {question.name}", judged(lambda: self.chosen(question, label))
        for selector, count in self.load.known.items():
            yield f"{selector} is {count}", judged(lambda: self.counts(selector, count))
        for title in dashboard.WHOLE:
            yield f"{title} loses nothing", judged(lambda: self.whole(title))
        for name, alert in self.rules():
            yield f"rule {name}", judged(lambda: self.healthy(alert))
        yield "the alerts that fire", judged(self.fires)
        yield "commands that are named are there", judged(commands)
        yield "metrics are those of the reference", judged(self.listed)
        self.load.restart(self.background)
        restarted = self.server.caught_up()
        for question in dashboard.marks():
            yield f"mark {question.name}", judged(lambda: self.marked(question, restarted))

    def answered(self, question):
        """After the first burst, when series that begin at their first hit are new, and after the second, when they are not."""
        for burst, since, at in (("first", self.before, self.between), ("second", self.between, self.after)):
            # Back to a scrape before the burst.
            query = question.for_times(*(math.ceil(at - begun + SCRAPE_SECONDS) for begun in (since, self.before)))
            answer = self.server.query(query, at)
            fault = odd(question, answer) or self.lost(question, answer, since, at)
            if fault:
                return f"{fault} after the {burst} burst: {query}"
        return None

    def lost(self, question, answer, since, at):
        """Counters that grew and are not shown to have grown, if it is that that the question is after."""
        counter = question.counter()
        if not counter:
            return None
        earlier, later = ({series(metric): value for metric, value in self.server.query(counter, then)} for then in (since, at))
        grown = {labels for labels, value in later.items() if value > earlier.get(labels, 0)}
        shown = {series(metric) for metric, value in answer if value > 0}
        return f"does not show {[dict(labels) for labels in grown - shown]}" if grown - shown else None

    def chosen(self, question, label):
        metric = question.for_times(0, 0)
        found = self.server.ask(f"label/{label}/values", **{"match[]": metric})
        wanted = {
            "job": [JOB], "instance": [f"127.0.0.1:{self.load.ports['admin']}"], "upstream": sorted(self.load.upstreams()),
        }[question.name]
        return None if found == wanted else f"{found}, not {wanted}"

    def counts(self, selector, count):
        found = self.server.query(selector, self.after)
        return None if found and sum(value for _, value in found) == count else f"Prometheus has {found}"

    def whole(self, title):
        """With all of the time shown, every series began within it: nothing is estimated."""
        query, metric = dashboard.whole(title, math.ceil(self.after - self.before) + SECONDS)
        shown, counted = (self.server.number(asked, self.after) for asked in (query, f"sum({metric})"))
        return None if shown == counted > 0 else f"{shown:g} are shown, {counted:g} counted"

    def rules(self):
        return [(rule["name"], rule) for group in self.server.ask("rules")["groups"] for rule in group["rules"]]

    def healthy(self, rule):
        self.server.query(rule["query"], self.after)
        return None if rule["health"] == "ok" and not rule.get("lastError") else f"{rule['health']}: {rule.get('lastError')}"

    def fires(self):
        found = {metric["alertname"] for metric, _ in self.server.query('ALERTS{alertstate="firing"}', self.after)}
        missing, odd_ones = FIRING - found, found - FIRING - MAY_FIRE
        return f"missing {sorted(missing)}, too many {sorted(odd_ones)}" if missing or odd_ones else None

    def listed(self):
        """What was scraped, with its kind, against the table of the reference page."""
        wanted = dict(re.findall(r"(?m)^\| \[`(\w+)`\]\(#\w+\) \| (\w+) \|", REFERENCE.read_text()))
        instance = f'{{job="{JOB}"}}'
        names = self.server.ask("label/__name__/values", **{"match[]": instance})
        kinds = {metric["metric"]: metric["type"] for metric in self.server.ask("targets/metadata", match_target=instance)}
        named = {re.sub(r"_(bucket|sum|count)$", "", name) if name not in kinds else name for name in names}
        named = {name for name in named if not ABOUT_TARGETS.fullmatch(name)}
        if kinds != wanted:
            return f"differ: {sorted(set(kinds.items()) ^ set(wanted.items()))}"
        return None if named == set(wanted) else f"without a series, or not listed: {sorted(named ^ set(wanted))}"

    def marked(self, question, restarted):
        query = question.for_times(math.ceil(restarted - self.before), 0)
        fault = odd(question, self.server.query(query, restarted))
        return fault and f"{fault}: {query}"


def series(metric):
    return frozenset(metric.items())


def odd(question, answer):
    """What is wrong with an answer: nothing, not a number, only zeros, a series without the labels by which it is called."""
    if not answer:
        return "empty"
    if any(math.isnan(value) for _, value in answer):
        return "not a number"
    if not question.may_be_zero and not any(value > 0 for _, value in answer):
        return "nothing but zero"
    # What calls no tool has an empty label.
    bare = [metric for metric, _ in answer if not set(question.labels) <= set(metric)]
    return f"series without {question.labels}: {bare[:3]}" if bare else None


def commands():
    """Verbs and flags that runbooks, panels and the reference page tell people to use."""
    texts = [path.read_text() for path in (ALERTS, REFERENCE, dashboard.DASHBOARD)]
    named = {command for text in texts for command in re.findall(r"`lychgate ([a-z][^`]*)`", text)}
    for command in sorted(named):
        words = re.sub(r"\{\{.*?\}\}", "NAME", command).split()
        done = subprocess.run([gate(), *words, "--help"], capture_output=True, text=True, timeout=SECONDS)
        if done.returncode:
            return f"`lychgate {command}`: {done.stderr}"
    return None if len(named) > 10 else f"only {sorted(named)} are named"


def judged(ask):
    try:
        return ask()
    except RuntimeError as error:
        return str(error)
