"""The console in headless Chromium, before a server that means ill. Pictures of it are kept in target/console."""

import json
import shutil
import subprocess
import tempfile
import urllib.request

import chromium
from places import HERE, SCRATCH, TARGET, Background, free_port, gate, node

SECONDS = 120


def console(only):
    """Drives the page; gives (name, fault or None) one after the other."""
    program = chromium.program()
    if program is None:
        return
    agents, admin, hostile, gone = (free_port() for _ in range(4))
    folder = SCRATCH / "console"
    folder.mkdir()
    config, token = folder / "lychgate.toml", folder / "token"
    config.write_text(
        f'[listen]\naddress = "127.0.0.1:{agents}"\n[admin]\naddress = "127.0.0.1:{admin}"\n'
        f'[approval]\ntoken_file = "{token}"\n[audit]\nfile = "{folder}/audit.jsonl"\n'
        f'[quarantine]\nfolder = "{folder}/quarantine"\n[policy.default]\n[upstream.hostile]\nhttp = {{ url = "http://127.0.0.1:{hostile}/mcp" }}\n'
        f'[upstream.gone]\nhttp = {{ url = "http://127.0.0.1:{gone}/mcp" }}\n'
    )
    pictures = TARGET / "console"
    shutil.rmtree(pictures, ignore_errors=True)
    with Background() as background:
        background.start("hostile", [node(), str(HERE / "servers/hostile.mjs"), str(hostile)], hostile)
        background.start("console-gate", [gate(), "run", "--config", str(config)], admin)
        # It answers once everything is in place, its token too.
        urllib.request.urlopen(f"http://127.0.0.1:{admin}/readyz", timeout=30).close()
        plan = {
            "gate": gate(), "config": str(config), "token": token.read_text().strip(),
            "agents": f"http://127.0.0.1:{agents}", "admin": f"http://127.0.0.1:{admin}",
        }
        profile = tempfile.mkdtemp(prefix="chromium-", dir=SCRATCH)
        command = [node(), str(HERE / "clients/console.mjs"), program, profile, str(pictures)]
        done = subprocess.run(command, input=json.dumps(plan), capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        yield "console: the browser", done.stderr[-2000:]
        return
    for name, fault, _ in json.loads(done.stdout):
        if only in name:
            yield f"console: {name}", fault
