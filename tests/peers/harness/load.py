"""A load for a gate of which it is known beforehand what every counter has to say."""

import collections
import http.client
import json
import os
import re
import signal
import subprocess
import time
import urllib.request

from places import HERE, PYTHON, gate

SECONDS = 30
QUIET_CALLS = 40
# Long enough for two scrapes to see one that was just renewed.
TOKEN_SECONDS = 8
TOKEN = "a-token-of-the-known-load"
POLICY = """[[agent]]
name = "ada"
token = { env = "LOAD_TOKEN" }
[access.everyone]
agents = ["*"]
deny_tools = ["station/forbidden"]
[policy.default]
flow = { untrusted = true }
result_text_bytes = { "*" = 2000 }
evidence = "sealed"
[[policy.default.suppress]]
rule = "fork-bomb"
reason = "The known load has one that is meant."
until = {to_come}
[[policy.default.suppress]]
rule = "delete-tree"
reason = "The known load shows that this is over."
until = {over}
[policy.default.tool.send_mail]
ask = "always"
[policy.default.tool.short]
argument_bytes = 100
[policy.default.classifier]
url = "{beside}/classifier"
timeout_ms = 5000
[policy.changed]
"""
KEPT = """[approval]
token_file = "{folder}/approve.token"
notify_command = ["cat"]
deadline_seconds = 1
wait_seconds = 1
[audit]
file = "{folder}/audit.jsonl"
checkpoint_lines = 10
checkpoint_seconds = 1
anchor_url = "{beside}/anchor"
rotate_bytes = 65536
keep_files = 2
[pins]
file = "{folder}/lychgate.lock"
[quarantine]
folder = "{folder}/quarantine"
[evidence]
folder = "{folder}/evidence"
max_bytes = 1048576
[otlp]
endpoint = "{beside}"
interval_ms = 250
metrics_interval_ms = 1000
[oauth]
vault = "{folder}/vault"
vault_key = { env = "LOAD_KEY" }
renew_before_seconds = 0
allow_loopback_http = true
"""


class Load:
    """The gate's config, calls through the gate, and what they have to come to."""

    def __init__(self, folder, ports, beside):
        self.folder, self.ports, self.beside = folder, ports, beside
        self.config = folder / "lychgate.toml"
        # Of the gauges, what they say from the beginning, or after the first burst and ever after.
        self.known = collections.Counter({
            'lychgate_suppressions{state="active"}': 1, 'lychgate_suppressions{state="expired"}': 1,
            'lychgate_upstream_up{upstream="gone"}': 0, 'lychgate_upstream_up{upstream="station"}': 1,
            'lychgate_upstream_auth_required{upstream="login-owed"}': 1,
            'lychgate_upstream_auth_required{upstream="behind-login"}': 0,
            'lychgate_definitions_held{upstream="station"}': 1, "lychgate_streams": 1,
        })
        self.bursts = 0
        self.write()

    def write(self, changed="enforce"):
        port = self.ports
        over, to_come = (time.strftime("%Y-%m-%d", time.gmtime(time.time() + days * 86_400)) for days in (-30, 30))
        text = (
            f'[listen]\naddress = "127.0.0.1:{port["agents"]}"\n[admin]\naddress = "127.0.0.1:{port["admin"]}"\n{POLICY}'
            f'mode = "{changed}"\n{KEPT}'
        )
        for name, value in (("folder", self.folder), ("beside", self.beside.url), ("over", over), ("to_come", to_come)):
            text = text.replace(f"{{{name}}}", str(value))
        text += "".join(f'[upstream.{name}.http]\nurl = "{url}"\n' for name, url in self.upstreams().items())
        text += '[upstream.fixture]\npolicy = "changed"\n'
        # Never half of it: the gate looks by itself.
        new = self.config.with_suffix(".new")
        new.write_text(text)
        new.replace(self.config)

    def upstreams(self):
        ports = {"station": self.beside.server_port, **{name: self.ports[name] for name in ("hostile", "fixture", "gone")}}
        ports.update({name: self.ports["authority"] for name in ("behind-login", "login-owed")})
        return {name: f"http://127.0.0.1:{port}/mcp" for name, port in ports.items()}

    def start(self, background):
        command = [gate(), "run", "--config", str(self.config)]
        self.process = background.start("gate-loaded", command, self.ports["admin"], **self.environment())
        self.admin("/readyz").read()

    def restart(self, background):
        self.process.terminate()
        assert self.process.wait(timeout=SECONDS) == 0
        self.start(background)

    def environment(self):
        # A login is made by a person who says yes to everything; without one no browser is opened.
        return {
            "LOAD_TOKEN": TOKEN, "LOAD_KEY": "5a" * 32, "BROWSER": f"{PYTHON} {HERE}/clients/browser.py",
            "PERSON": json.dumps({"login": "ada", "password": "any"}),
        }

    def log_in(self):
        command = [gate(), "login", "behind-login", "--config", str(self.config)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL,
            env={**os.environ, **self.environment()},
        )
        assert done.returncode == 0, f"login: {done.stdout}{done.stderr}"
        self.token_ends = time.monotonic() + TOKEN_SECONDS + 0.5

    def burst(self):
        """Everything once that the dashboard has something to say of, much of it several times."""
        self.bursts += 1
        acts = (
            self.listens, self.quiet, self.repeats, self.orders, self.refused, self.doubts, self.long, self.pictures, self.lists, self.asks,
            self.turned_away, self.limited, self.fails, self.reloads, self.logins, self.tampers,
        )
        for act in acts:
            act()

    def listens(self):
        """An agent of a revision with sessions, that leaves its stream open."""
        if self.bursts > 1:
            return
        era = "2025-06-18"
        client = {"protocolVersion": era, "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}
        answer = self.open("POST", "/mcp/fixture", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
        session = {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": era}
        answer.read()
        self.open("POST", "/mcp/fixture", {"jsonrpc": "2.0", "method": "notifications/initialized"}, session).read()
        self.stream = self.open("GET", "/mcp/fixture", None, session)

    def quiet(self):
        """Enough of what is let pass for the audit log to begin a new file."""
        for _ in range(QUIET_CALLS):
            self.call("hostile", "plain", era="2025-06-18")
        self.hits('lychgate_messages_total{upstream="hostile",direction="inbound",verdict="pass"}', QUIET_CALLS)
        self.hits('lychgate_upstream_seconds_count{upstream="hostile"}', QUIET_CALLS + 1)

    def repeats(self):
        """The same list twice, through a policy without a classifier, which would score each text again."""
        for _ in range(2):
            self.send("fixture", "tools/list", {}, era="2025-06-18")

    def orders(self):
        for _ in range(4):
            self.call("station", "say", what="order")
        self.hits('lychgate_injection_detected_total{upstream="station",tool="say",rule="override-instructions"}', 4)
        self.call("hostile", "fetch_page", era="2025-06-18", url="https://example.org/")

    def refused(self):
        for at in range(3):
            self.call("station", "run_command", command=f"rm -rf /srv/{self.bursts}/{at} /*")
        self.hits('lychgate_commands_blocked_total{upstream="station",tool="run_command"}', 3)
        # A name that MCP does not allow is no label.
        self.call("station", "run it, quickly", command=f"rm -rf /home/{self.bursts} /*")
        self.hits('lychgate_commands_blocked_total{upstream="station",tool="other"}')
        self.hits('lychgate_labels_capped_total{metric="lychgate_commands_blocked_total"}')
        self.call("station", "run_command", command=":(){ :|:& };:")
        self.hits('lychgate_suppressed_findings_total{rule="fork-bomb"}')

    def doubts(self):
        self.call("station", "say", what="doubtful")
        self.hits('lychgate_classified_total{upstream="station",outcome="flagged"}')
        self.hits('lychgate_injection_detected_total{upstream="station",rule="classifier"}')

    def long(self):
        answer = self.call("station", "say", what="long")
        link = re.search(r"lychgate://result/\S+", answer["result"]["content"][0]["text"])[0]
        self.send("station", "resources/read", {"uri": link})
        self.send("station", "resources/read", {"uri": "lychgate://result/0/1"})
        self.hits('lychgate_result_pages_total{outcome="read"}')
        self.hits('lychgate_result_pages_total{outcome="gone"}')

    def pictures(self):
        self.call("station", "say", what="picture")

    def lists(self):
        self.beside.edition = 0 if self.bursts == 1 else self.bursts
        self.send("station", "tools/list", {})
        self.beside.edition = self.bursts + 1
        self.send("station", "tools/list", {})
        self.hits('lychgate_definition_changes_total{upstream="station",class="new-secret-like-parameter",action="hold"}')

    def asks(self):
        self.call("station", "send_mail", to="bob@example.org")
        self.hits('lychgate_approvals_total{outcome="asked"}')
        self.hits('lychgate_approvals_total{outcome="expired"}')

    def turned_away(self):
        path = "/mcp/station"
        wrong = {"token": {"authorization": "Bearer wrong-token-of-somebody"}, "host": {"host": "rebound.example"}}
        for reason, headers in wrong.items():
            assert self.post(path, {}, headers)[0] in (401, 403), reason
        assert self.post("/nowhere", {})[0] == 404
        self.call("station", "forbidden")
        for reason in ("token", "host", "path", "access"):
            self.hits(f'lychgate_turned_away_total{{reason="{reason}"}}')

    def limited(self):
        self.call("station", "short", words="too many " * 20)
        self.hits('lychgate_limits_hit_total{limit="argument_bytes"}')

    def fails(self):
        self.call("gone", "say")
        self.hits('lychgate_messages_total{upstream="gone",direction="outbound",verdict="pass"}')
        self.hits('lychgate_failures_total{upstream="gone",side="server"}')

    def logins(self):
        # Until the token that is there has ended.
        time.sleep(max(0, self.token_ends - time.monotonic()))
        for name in ("behind-login", "login-owed"):
            self.call(name, "whoami")
        self.token_ends = time.monotonic() + TOKEN_SECONDS + 0.5
        self.hits('lychgate_oauth_refresh_total{upstream="behind-login",outcome="renewed"}')

    def reloads(self):
        # `blind` is no mode.
        for words, outcome in (("observe", "weakened"), ("enforce", "applied"), ("blind", "refused"), ("enforce", "applied")):
            self.write(words)
            self.hits(f'lychgate_reloads_total{{outcome="{outcome}"}}')
            self.process.send_signal(signal.SIGHUP)
            self.wait_for_reloads()

    def tampers(self):
        """Somebody else writes to the audit log, while the gate does not."""
        time.sleep(0.2)
        with (self.folder / "audit.jsonl").open("a") as log:
            log.write('{"event":"judged","agent":"nobody"}\n')
        self.call("hostile", "plain", era="2025-06-18")
        self.hits('lychgate_messages_total{upstream="hostile",direction="inbound",verdict="pass"}')
        self.hits('lychgate_upstream_seconds_count{upstream="hostile"}')
        self.hits('lychgate_audit_tampered_total{how="foreign"}')

    def wait_for_reloads(self):
        due = sum(count for series, count in self.known.items() if series.startswith("lychgate_reloads_total"))
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            lines = self.admin("/metrics").read().decode().splitlines()
            if sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("lychgate_reloads_total{")) == due:
                return
            time.sleep(0.05)
        raise AssertionError(f"not reloaded within {SECONDS} s")

    def hits(self, series, count=1):
        self.known[series] += count

    def call(self, upstream, tool, era="2026-07-28", **arguments):
        return self.send(upstream, "tools/call", {"name": tool, "arguments": arguments}, era)

    def send(self, upstream, method, params, era="2026-07-28"):
        headers = {"mcp-protocol-version": era}
        if era == "2026-07-28":
            meta = {"io.modelcontextprotocol/protocolVersion": era, "io.modelcontextprotocol/clientCapabilities": {}}
            params = {**params, "_meta": meta}
            headers["mcp-method"] = method
            if name := params.get("name") or params.get("uri"):
                headers["mcp-name"] = name
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.post(f"/mcp/{upstream}", message, headers)[1]

    def post(self, path, message, headers=None):
        """Status and message: of a stream the last, which is the answer."""
        with self.open("POST", path, message, headers) as answer:
            text = answer.read().decode()
        data = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
        text = data[-1] if data else text
        return answer.status, json.loads(text) if text.lstrip().startswith("{") else text

    def open(self, method, path, message, headers=None):
        known = {
            "content-type": "application/json", "accept": "application/json, text/event-stream", "authorization": f"Bearer {TOKEN}",
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["agents"], timeout=SECONDS)
        body = None if message is None else json.dumps(message).encode()
        connection.request(method, path, body, {**known, **(headers or {}), "connection": "close"})
        return connection.getresponse()

    def admin(self, path):
        return urllib.request.urlopen(f"http://127.0.0.1:{self.ports['admin']}{path}", timeout=SECONDS)
