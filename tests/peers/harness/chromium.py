"""`lychgate demo --oauth` from the link to the end, with a person at headless Chromium."""

import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading

from places import HERE, SCRATCH, gate, node

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 90
LOGIN_PAGE = "Log in to the sample server"


def demo(only):
    """Runs the demo; gives (name, fault or None) one after the other."""
    name = "browser: the demo's login, renewal and further scope in Chromium"
    if only not in name:
        return
    if chrome := program():
        yield name, shown(chrome)


def program():
    """The browser's; None where there is none, and tests of it are skipped."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        if os.environ.get("CI") == "true":
            sys.exit("peers: CI has no Chromium, and nothing is skipped there")
        print("peers: skipped, for want of Chromium")
    return found


def shown(program):
    """Does what the demo asks for, page by page; what went wrong."""
    process = subprocess.Popen(
        [gate(), "demo", "--oauth", "--once"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    lines, told, words, links = queue.Queue(), [], {}, []
    reader = threading.Thread(target=read, args=(process.stdout, lines), daemon=True)
    reader.start()
    try:
        while (line := lines.get(timeout=SECONDS)) is not None:
            told.append(line)
            if pair := re.fullmatch(r"  (name|password|open) +(\S+)\n", line):
                if pair[1] == "open":
                    links.append(pair[2])
                    titles = visit(program, pair[2], words)
                    if LOGIN_PAGE not in titles:
                        return f"the browser saw {titles}"
                else:
                    words[pair[1]] = pair[2]
        code = process.wait(timeout=SECONDS)
    except (queue.Empty, subprocess.SubprocessError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}\n   {''.join(told)}"
    finally:
        process.kill()
    if code or len(links) != 2:
        return f"ended with {code} after {len(links)} links:\n{''.join(told)}"
    return None


def read(stream, lines):
    for line in stream:
        lines.put(line)
    lines.put(None)


def visit(program, link, words):
    """Has the person follow a link; the titles of the pages."""
    # One that is still about to end has its profile locked.
    profile = tempfile.mkdtemp(prefix="chromium-", dir=SCRATCH)
    command = [node(), str(HERE / "clients/chromium.mjs"), program, profile, link]
    done = subprocess.run(command, input=json.dumps(words), capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise RuntimeError(done.stderr[-1500:])
    return json.loads(done.stdout)
