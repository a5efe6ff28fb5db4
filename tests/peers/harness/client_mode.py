"""The official conformance suite in client mode, with lychgate as the client.

The suite starts a server and runs a command with its URL: this file, with `through` or `straight`. `through` starts a gate
whose one upstream that URL is and drives a plain client through it, so that whatever the scenario asks of a client that
logs in, the gate has to do. `straight` has the client log in itself, for comparison. The suite's authorization servers
approve at once by a redirect: the person is a script that follows it, reached through BROWSER.
"""

import concurrent.futures
import json
import os
import re
import secrets
import subprocess
import sys
import urllib.request

from places import HERE, MODULES, PYTHON, SCRATCH, Background, free_port, gate, node, tail

# Scenarios that a revision is scored by; the suite's own number is held to it.
REVISIONS = {"2025-11-25": 18, "2026-07-28": 32}
# Never scored, but what the gate does is among them.
EXTENSIONS = ["auth/client-credentials-jwt", "auth/client-credentials-basic", "auth/enterprise-managed-authorization"]
# Scenarios that the gate does not pass, each with the reason. A reason for one that passes is a fault too.
UNMET = {}
AT_ONCE = 3
SECONDS = 60
LOGIN_SECONDS = 20


def through(only):
    """Runs all scenarios through the gate; gives (name, fault or None) one after the other."""
    yield from run("through", only)


def straight(only):
    """Runs all scenarios with the client alone."""
    yield from run("straight", only)


def run(way, only):
    wanted = []
    for revision, number in REVISIONS.items():
        names = scenarios(revision)
        yield f"{way} {revision}: {number} are scored", None if len(names) == number else f"the suite has {len(names)}"
        wanted += [(revision, name) for name in names]
    wanted += [("extension", name) for name in EXTENSIONS]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        named = [(f"{way} {revision}: {name}", revision, name) for revision, name in wanted]
        running = [(title, name, pool.submit(scenario, way, revision, name)) for title, revision, name in named if only in title]
        for title, name, done in running:
            fault = done.result()
            if way == "through" and name in UNMET:
                fault = None if fault else f"passes, though `UNMET` says why it cannot: {UNMET[name]}"
            yield title, fault


def scenarios(revision):
    command = [node(), str(MODULES / ".bin/conformance"), "list", "--requirements", revision]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS).stdout
    required = listed.partition("Client scenarios")[2].partition("Run and reported")[0]
    return re.findall(r"^\s+- (\S+)$", required, re.M)


def scenario(way, revision, name):
    """Runs one scenario; what failed of it."""
    out = SCRATCH / f"{way}-{revision}" / name.replace("/", "-")
    command = [
        node(), str(MODULES / ".bin/conformance"), "client", "--scenario", name, "--timeout", str(SECONDS * 1000),
        "-o", str(out), "--command", f"{PYTHON} {HERE}/harness/client_mode.py {way}",
    ]
    if revision != "extension":
        command += ["--spec-version", revision]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * SECONDS, stdin=subprocess.DEVNULL)
    (SCRATCH / f"{way}-{revision}-{name.replace('/', '-')}.log").write_text(done.stdout + done.stderr)
    if done.returncode == 0:
        return None
    told = done.stderr.partition("Failed Checks:")[2] or done.stderr.partition("Warning Checks:")[2] or done.stderr[-1500:]
    return told.strip()


def main(way, url):
    """What the suite runs: a client, and before it a gate if it is to go through one."""
    client = [node(), str(HERE / "clients/conformance.mjs")]
    if way == "straight":
        sys.exit(subprocess.run([*client, url, "login"]).returncode)
    port, scratch = free_port(), SCRATCH / "gate"
    scratch.mkdir()
    config = scratch / "lychgate.toml"
    config.write_text(settings(port, url, scratch, json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))))
    browser = f"{PYTHON} {HERE}/clients/browser.py"
    with Background() as background:
        key = {"CONFORMANCE_VAULT_KEY": secrets.token_hex(32)}
        background.start("gate", [gate(), "run", "--config", str(config)], port, BROWSER=browser, **key)
        code = subprocess.run([*client, f"http://127.0.0.1:{port}/mcp/it"]).returncode
    if code:
        print(tail("gate", 60), file=sys.stderr)
    sys.exit(code)


def settings(port, url, scratch, context):
    """The config of a gate whose upstream is `url`, with what the scenario says that was agreed on beforehand."""
    agreed = login(os.environ.get("MCP_CONFORMANCE_SCENARIO"), url, scratch, context)
    return f"""
[listen]
address = "127.0.0.1:{port}"
[policy.default]
mode = "observe"
[oauth]
vault = "{scratch}/vault"
vault_key = {{ env = "CONFORMANCE_VAULT_KEY" }}
open_browser = true
login_wait_seconds = {LOGIN_SECONDS}
allow_loopback_http = true
client_document = "https://conformance-test.local/client-metadata.json"
[upstream.it.http]
url = "{url}"
[upstream.it.http.oauth]
{agreed}
"""


def login(name, url, scratch, context):
    def file(name, text):
        path = scratch / name
        path.touch(0o600)
        path.write_text(text)
        return json.dumps(str(path))

    if "client_id" not in context:
        return ""
    lines = [f'issuer = "{issuer(url)}"', f'client_id = "{context["client_id"]}"']
    if "client_secret" in context:
        lines.append(f"client_secret = {{ file = {file('client.secret', context['client_secret'])} }}")
    if "private_key_pem" in context:
        lines.append(f"client_key = {file('client.pem', context['private_key_pem'])}")
    if name.startswith("auth/client-credentials"):
        lines.append('grant = "client_credentials"')
    if "idp_issuer" in context:
        lines.append(
            f'grant = {{ enterprise = {{ issuer = "{context["idp_issuer"]}", client_id = "{context["idp_client_id"]}", '
            f'token_endpoint = "{context["idp_token_endpoint"]}", id_token_file = {file("id.token", context["idp_id_token"])} }} }}'
        )
    return "\n".join(lines)


def issuer(url):
    """The authorization server that an operator was registered with: the one that the resource names."""
    origin, _, path = url.partition("/mcp")
    with urllib.request.urlopen(f"{origin}/.well-known/oauth-protected-resource/mcp{path}", timeout=10) as answer:
        return json.load(answer)["authorization_servers"][0]


if __name__ == "__main__":
    main(*sys.argv[1:])
