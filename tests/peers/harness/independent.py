"""A login at an authorization server that others wrote: `oidc-provider`, certified by the OpenID Foundation.

Ory Hydra would be another, but neither Debian nor npm nor PyPI has it (Debian's `hydra` is a password cracker).
"""

import json
import os
import secrets
import subprocess
import time
import urllib.request

from places import HERE, PYTHON, SCRATCH, Background, free_port, gate, node

NAME = "ada"
ACCESS_SECONDS = 2
SECONDS = 30


def independent(only):
    """Logs in, has tokens renewed, logs out; gives (name, fault or None) one after the other."""
    with Background() as background:
        port, front, key = free_port(), free_port(), secrets.token_hex(32)
        background.start("authority", [node(), "servers/authority.mjs", str(port), str(ACCESS_SECONDS)], port)
        config = SCRATCH / "independent.toml"
        config.write_text(
            f'[listen]\naddress = "127.0.0.1:{front}"\n'
            f'[oauth]\nvault = "{SCRATCH}/vault"\nvault_key = {{ env = "INDEPENDENT_KEY" }}\nopen_browser = true\n'
            "login_wait_seconds = 20\nrenew_before_seconds = 0\nallow_loopback_http = true\n"
            f'[upstream.it.http]\nurl = "http://127.0.0.1:{port}/mcp"\n'
        )
        environment = {
            "INDEPENDENT_KEY": key,
            "BROWSER": f"{PYTHON} {HERE}/clients/browser.py",
            "PERSON": json.dumps({"login": NAME, "password": "any"}),
        }
        background.start("gate-independent", [gate(), "run", "--config", str(config)], front, **environment)
        steps = Steps(f"http://127.0.0.1:{front}/mcp/it", config, environment)
        for step in (steps.logs_in, steps.renews, steps.logs_out, steps.logs_in_by_command):
            name = f"independent: {step.__doc__}"
            if only not in name:
                continue
            try:
                step()
                yield name, None
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                yield name, f"{type(error).__name__}: {error}\n   the server told: {told()}"
                return


class Steps:
    """What is tried, in order: each builds on the one before."""

    def __init__(self, url, config, environment):
        self.url, self.config, self.environment = url, config, environment

    def logs_in(self):
        """a call waits for the login that it is the reason of, and passes"""
        assert self.call() == NAME
        assert count("registered") == 1 and granted("authorization_code") == 1

    def renews(self):
        """tokens are renewed, each refresh token used once"""
        for renewed in (1, 2):
            time.sleep(ACCESS_SECONDS + 0.5)
            assert self.call() == NAME
            assert granted("refresh_token") == renewed and count("rotated") == renewed
        assert count("refused") == 0 and granted("authorization_code") == 1

    def logs_out(self):
        """logging out takes the tokens back at the server"""
        gone = count("refresh token gone")
        self.command("logout", "it")
        assert count("refresh token gone") > gone
        assert count("refused") == 0

    def logs_in_by_command(self):
        """`lychgate login` logs in for a gate that runs"""
        self.command("login", "it")
        assert granted("authorization_code") == 2
        assert self.call() == NAME
        assert granted("authorization_code") == 2
        status = self.command("auth", "status")
        assert "it" in status and "tools" in status, status

    def call(self):
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
        params = {"name": "whoami", "arguments": {}, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "content-type": "application/json", "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "whoami",
        }
        request = urllib.request.Request(self.url, json.dumps(message).encode(), headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            body = json.load(answer)
        assert not body["result"].get("isError"), body
        return body["result"]["content"][0]["text"]

    def command(self, verb, *rest):
        command = [gate(), verb, *rest, "--config", str(self.config)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL,
            env={**os.environ, **self.environment},
        )
        assert done.returncode == 0, f"`{verb}` ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout


def told():
    lines = (SCRATCH / "authority.log").read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def count(event):
    return sum(1 for line in told() if line["event"] == event)


def granted(grant):
    return sum(1 for line in told() if line["event"] == "granted" and line["grant"] == grant)
