"""The console in headless Chromium, before a server that means ill. Pictures of it are kept in target/console."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import urllib.request

import chromium
from places import HERE, SCRATCH, TARGET, Background, free_port, gate, node, tail

SECONDS = 300
# Longer than the test takes: whoever is logged in stays so.
ACCESS_SECONDS = 600


def console(only):
    """Drives the page; gives (name, fault or None) one after the other."""
    program = chromium.program()
    if program is None:
        return
    ports = dict(zip(("agents", "admin", "hostile", "gone", "authority"), (free_port() for _ in range(5))))
    folder = SCRATCH / "console"
    (folder / "rules").mkdir(parents=True)
    config, token = folder / "lychgate.toml", folder / "token"
    config.write_text(settings(folder, token, **ports))
    (folder / "rules/mine.toml").write_text(rule())
    pictures = TARGET / "console"
    shutil.rmtree(pictures, ignore_errors=True)
    at = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
    with Background() as background:
        background.start("hostile", [node(), "servers/hostile.mjs", str(ports["hostile"])], ports["hostile"])
        authority = [node(), "servers/authority.mjs", str(ports["authority"]), str(ACCESS_SECONDS)]
        background.start("console-authority", authority, ports["authority"])
        command = [gate(), "run", "--config", str(config)]
        background.start("console-gate", command, ports["admin"], CONSOLE_KEY=secrets.token_hex(32))
        # It answers once everything is in place, its token too.
        urllib.request.urlopen(f"{at['admin']}/readyz", timeout=30).close()
        plan = {
            "gate": gate(), "config": str(config), "token": token.read_text().strip(), "agents": at["agents"],
            "admin": at["admin"], "issuer": at["hostile"],
        }
        profile = tempfile.mkdtemp(prefix="chromium-", dir=SCRATCH)
        command = [node(), str(HERE / "clients/console.mjs"), program, profile, str(pictures)]
        log = SCRATCH / "console-people.log"
        with open(log, "wb") as errors:
            people = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
            )
        background.running.append(people)
        # The browser with it.
        clock = threading.Timer(SECONDS, os.killpg, (people.pid, signal.SIGKILL))
        clock.daemon = True
        clock.start()
        people.stdin.write(json.dumps(plan))
        people.stdin.close()
        for line in people.stdout:
            name, fault, _ = json.loads(line)
            if only in name:
                yield f"console: {name}", fault
        clock.cancel()
        if people.wait():
            yield "console: the browser", f"ended with {people.returncode}: {tail('console-people')}"


def settings(folder, token, agents, admin, hostile, gone, authority):
    """A gate with users whom the server that means ill names, rules that ask, a quarantine, a server that wants a login, and one with
    output on standard error."""
    return f"""
[listen]
address = "127.0.0.1:{agents}"
[admin]
address = "127.0.0.1:{admin}"
[approval]
token_file = "{token}"
[audit]
file = "{folder}/audit.jsonl"
[pins]
file = "{folder}/lychgate.lock"
[quarantine]
folder = "{folder}/quarantine"
[oauth]
vault = "{folder}/vault"
vault_key = {{ env = "CONSOLE_KEY" }}
allow_loopback_http = true
[[issuer]]
issuer = "http://127.0.0.1:{hostile}"
jwks_uri = "http://127.0.0.1:{hostile}/keys"
audience = ["console"]
[policy.default]
rules = ["builtin", "rules"]
[policy.default.override]
# Agent and server say the same here.
"quarantined-text-returns" = {{ action = "log" }}
[upstream.hostile]
http = {{ url = "http://127.0.0.1:{hostile}/mcp" }}
[upstream.gone]
http = {{ url = "http://127.0.0.1:{gone}/mcp" }}
[upstream.tracker]
http = {{ url = "http://127.0.0.1:{authority}/mcp" }}
[upstream.chatty]
stdio = {{ command = ["{node()}", "{HERE}/servers/chatty.mjs"] }}
"""


def rule():
    """A rule that asks, got from somewhere: what it says of itself is hostile too."""
    xss = " ".join(json.loads((HERE / "clients/xss.json").read_text()))

    def text(words):
        # What JSON writes, TOML reads.
        return json.dumps(f"{words} {xss}")

    return f"""
format = 1
direction = "outbound"
[[rule]]
id = "asks-first"
title = {text("A person says yes")}
why = {text("Somebody has to look at this.")}
severity = "medium"
action = "ask"
find.pattern = {{ keywords = ["please-ask"], any = ['please-ask'] }}
catches = [{text("please-ask")}]
spares = [{text("do not ask")}]
"""
