"""The official conformance suite against the fixture server, straight and through the gate.

Nothing that passes straight may fail through the gate: neither a scenario nor a single check of one.
"""

import json
import re
import subprocess

from places import Background, MODULES, SCRATCH, free_port, gate, node

REVISIONS = {"2025-11-25": 30, "2026-07-28": 37}
SECONDS = 600
GOOD = ("SUCCESS", "INFO", "SKIPPED")


def conformance(only):
    """Runs the suites; gives (name, fault or None) one after the other."""
    with Background() as background:
        port, front = free_port(), free_port()
        background.start("fixture-conformance", [node(), "servers/fixture.mjs", str(port)], port)
        config = SCRATCH / "conformance.toml"
        config.write_text(
            f'[listen]\naddress = "127.0.0.1:{front}"\n[policy.default]\nmode = "observe"\n'
            f'[upstream.fixture]\nhttp = {{ url = "http://127.0.0.1:{port}/mcp" }}\n'
        )
        background.start("gate-conformance", [gate(), "run", "--config", str(config)], front)
        for revision, required in REVISIONS.items():
            if only not in revision:
                continue
            straight = suite(revision, f"http://127.0.0.1:{port}/mcp", "straight")
            mine = suite(revision, f"http://127.0.0.1:{front}/mcp/fixture", "through")
            counts = [len(straight["required"]), len(mine["required"])]
            print(f"conformance {revision}: {counts[0]} straight, {counts[1]} through the gate, of {required}")
            fault = None if counts[0] == required else f"{counts[0]} of {required} pass straight"
            yield f"conformance {revision}: all required pass straight", fault
            for scenario in sorted(straight["checks"]):
                yield f"conformance {revision}: {scenario}", worse(straight, mine, scenario)


def suite(revision, url, way):
    """Runs the suite; which required scenarios pass, and the state of every check of every scenario."""
    out = SCRATCH / f"conformance-{revision}-{way}"
    command = [node(), str(MODULES / ".bin/conformance"), "server", "--url", url, "--requirements", revision, "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    (SCRATCH / f"conformance-{revision}-{way}.log").write_text(done.stdout + done.stderr)
    summary, _, unscored = done.stdout.partition("=== SUMMARY ===")[2].partition("Not scored")
    passed = set(re.findall(r"^✓ ([^\s:]+):", summary, re.M)) - set(re.findall(r"^\s+. (\S+) \(", unscored, re.M))
    checks = {}
    for file in sorted(out.glob("*/checks.json")):
        scenario = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT.*", file.parent.name).group(1)
        checks[scenario] = [(check["id"], check["status"], check.get("errorMessage")) for check in json.loads(file.read_text())]
    return {"required": passed, "checks": checks}


def worse(straight, mine, scenario):
    """What passes straight and fails through the gate."""
    faults = []
    if scenario in straight["required"] and scenario not in mine["required"]:
        faults.append("the scenario passes straight")
    through = {}
    for check, status, message in mine["checks"].get(scenario, []):
        if status not in GOOD:
            through[check] = f"{status}: {message}"
    seen = {check for check, _, _ in mine["checks"].get(scenario, [])}
    bad = {check for check, status, _ in straight["checks"][scenario] if status not in GOOD}
    for check in dict.fromkeys(check for check, _, _ in straight["checks"][scenario]):
        if check in bad:
            continue
        if check in through:
            faults.append(f"{check}: {through[check]}")
        elif check not in seen:
            faults.append(f"{check}: not run")
    return "\n   ".join(faults) or None
