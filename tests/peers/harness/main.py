"""`tests/peers/run` after it has set itself up."""

import shutil
import signal
import sys
import time

import chromium
import client_mode
import compare
import conformance
import console
import framing
import independent
import prometheus
from places import SCRATCH, gate

PARTS = {
    "agents": compare.agents_compared,
    "framing": framing.framing,
    "conformance": conformance.conformance,
    "client": client_mode.through,
    "independent": independent.independent,
    "browser": chromium.demo,
    "console": console.console,
    "prometheus": prometheus.prometheus,
}
# Run only where they are named.
MORE = {"client-straight": client_mode.straight}


def main(words):
    """`agents[=WORD]`, with a word only what has it in its name, and so on for the others."""
    wanted = [word.partition("=") for word in words] or [(part, "", "") for part in PARTS]
    print(f"gate: {gate()}")
    outcomes = []
    for part, _, only in wanted:
        judge = {**PARTS, **MORE}.get(part)
        if judge is None:
            sys.exit(f"peers: `{part}` is none of {', '.join([*PARTS, *MORE])}")
        began, before = time.monotonic(), len(outcomes)
        for name, fault in judge(only):
            outcomes.append(fault)
            print(f"{'FAIL' if fault else 'ok  '} {name}" + (f"\n   {fault}" if fault else ""), flush=True)
        print(f"{part}: {len(outcomes) - before} in {time.monotonic() - began:.0f} s")
    failed = sum(1 for fault in outcomes if fault)
    if failed:
        print(f"logs and config are in {SCRATCH}")
    else:
        shutil.rmtree(SCRATCH)
    print(f"{len(outcomes) - failed} passed, {failed} failed")
    sys.exit(1 if failed or not outcomes else 0)


# Told to stop, it stops what it started.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
main(sys.argv[1:])
