"""The official conformance suites against the fixture server, straight and through the gate, over each transport.

The suites speak streamable HTTP. So the fixture is tried straight over that, and through the gate as an upstream over streamable
HTTP, over stdio and over HTTP+SSE. Nothing that passes straight may fail through the gate: neither a scenario nor a single check
of one. `LESS` names what cannot pass over another transport, with the reason.
"""

import json
import re
import subprocess

from places import Background, HERE, MODULES, SCRATCH, free_port, gate, node

SECONDS = 600
GOOD = ("SUCCESS", "INFO", "SKIPPED")
# The newest suite, which knows the revisions, and the stable one.
NEW, STABLE = "@modelcontextprotocol/conformance", "conformance-stable"
# What is run: its name, the suite, its arguments, scenarios that have to pass straight, and the transports of the upstream.
RUNS = [
    ("2025-11-25", NEW, ["--requirements", "2025-11-25"], 30, ("http", "stdio", "sse")),
    ("2026-07-28", NEW, ["--requirements", "2026-07-28"], 37, ("http", "stdio")),
    ("stable", STABLE, [], 30, ("http", "stdio", "sse")),
]
# By transport of the upstream and by scenario: why these checks of it cannot pass.
POLLING = "event ids and streams that end early (SEP-1699) are features of streamable HTTP: these transports have no events"
STDIO_VERSION = "over stdio, the SDK's server answers `server/discover` of an unknown revision with a result"
LESS = {
    "stdio": {
        "server-sse-polling": (POLLING, [
            "incoming-sse-event", "stream-closed", "server-sse-priming-event", "server-sse-retry-field", "server-sse-disconnect-resume",
        ]),
        "server-stateless": (STDIO_VERSION, [
            "sep-2575-server-unsupported-version-error", "sep-2575-http-server-unsupported-version-400",
        ]),
    },
}
LESS["sse"] = {"server-sse-polling": LESS["stdio"]["server-sse-polling"]}


def conformance(only):
    """Runs the suites; gives (name, fault or None) one after the other."""
    with Background() as background:
        port, front, sse = free_port(), free_port(), free_port()
        background.start("fixture-conformance", [node(), "servers/fixture.mjs", str(port)], port)
        background.start("fixture-sse", [node(), "servers/fixture.mjs", "--sse", str(sse)], sse)
        config = SCRATCH / "conformance.toml"
        stdio = json.dumps([node(), str(HERE / "servers/fixture.mjs"), "--stdio"])
        config.write_text(
            f'[listen]\naddress = "127.0.0.1:{front}"\n[policy.default]\nmode = "observe"\n'
            f'[upstream.http]\nhttp = {{ url = "http://127.0.0.1:{port}/mcp" }}\n'
            f'[upstream.sse]\nsse = {{ url = "http://127.0.0.1:{sse}/sse" }}\n'
            f'[upstream.stdio]\nstdio = {{ command = {stdio} }}\n'
            f'[limits]\nchildren_per_upstream = 256\n'
        )
        background.start("gate-conformance", [gate(), "run", "--config", str(config)], front)
        for name, package, arguments, required, transports in RUNS:
            if only not in name:
                continue
            straight = suite(name, package, arguments, f"http://127.0.0.1:{port}/mcp", "straight")
            passed = len(straight["required"])
            fault = None if passed == required else f"{passed} of {required} pass straight"
            yield f"conformance {name}: all required pass straight", fault
            for transport in transports:
                mine = suite(name, package, arguments, f"http://127.0.0.1:{front}/mcp/{transport}", transport)
                print(f"conformance {name} over {transport}: {passed} straight, {len(mine['required'])} through the gate, of {required}")
                for scenario in sorted(straight["checks"]):
                    _, less = LESS.get(transport, {}).get(scenario, ("", []))
                    fault = worse(straight, mine, scenario, less)
                    yield f"conformance {name} over {transport}: {scenario}", fault


def suite(name, package, arguments, url, way):
    """Runs a suite; which required scenarios pass, and the state of every check of every scenario."""
    out = SCRATCH / f"conformance-{name}-{way}"
    command = [node(), str(MODULES / package / "dist/index.js"), "server", "--url", url, *arguments, "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    (SCRATCH / f"conformance-{name}-{way}.log").write_text(done.stdout + done.stderr)
    summary, _, unscored = done.stdout.partition("=== SUMMARY ===")[2].partition("Not scored")
    passed = set(re.findall(r"^✓ ([^\s:]+):", summary, re.M)) - set(re.findall(r"^\s+. (\S+) \(", unscored, re.M))
    checks = {}
    for file in sorted(out.glob("*/checks.json")):
        scenario = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT.*", file.parent.name).group(1)
        checks[scenario] = [(check["id"], check["status"], check.get("errorMessage")) for check in json.loads(file.read_text())]
    return {"required": passed, "checks": checks}


def worse(straight, mine, scenario, less):
    """What passes straight and fails through the gate, apart from what `less` explains."""
    faults = []
    if scenario in straight["required"] and scenario not in mine["required"] and not less:
        faults.append("the scenario passes straight")
    through = {}
    for check, status, message in mine["checks"].get(scenario, []):
        if status not in GOOD:
            through[check] = f"{status}: {message}"
    seen = {check for check, _, _ in mine["checks"].get(scenario, [])}
    bad = {check for check, status, _ in straight["checks"][scenario] if status not in GOOD}
    for check in dict.fromkeys(check for check, _, _ in straight["checks"][scenario]):
        if check in bad or check in less:
            continue
        if check in through:
            faults.append(f"{check}: {through[check]}")
        elif check not in seen:
            faults.append(f"{check}: not run")
    return "\n   ".join(faults) or None
