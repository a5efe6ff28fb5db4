"""Where things are, and how to start them."""

import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PYTHON = str(HERE / ".venv/bin/python")
PEER = str(TARGET / "debug/lychgate-peer")
MODULES = HERE / "node_modules"
SCRATCH = pathlib.Path(tempfile.mkdtemp(prefix="lychgate-peers-"))
START_SECONDS = 30


def node():
    """A Node.js of version 22 or later: the conformance suite needs one."""
    packaged = sorted(MODULES.glob("node-*/bin/node"))
    return str(packaged[0]) if packaged else shutil.which("node") or sys.exit("peers: no Node.js")


def gate():
    """The gate to try: LYCHGATE, or the newest build."""
    named = os.environ.get("LYCHGATE")
    if named:
        return named
    built = [path for path in (TARGET / "release/lychgate", TARGET / "debug/lychgate") if path.exists()]
    if not built:
        sys.exit("peers: no gate: run `cargo build` first, or set LYCHGATE")
    return str(max(built, key=lambda path: path.stat().st_mtime))


PORTS = itertools.chain(range(20_000 + os.getpid() % 5_000, 32_000), range(10_000, 20_000))


def free_port():
    """A port for a program that has to be told one. Not one that the system gave and took back: it may give that to the
    next connection. These are below those (Linux: from 32768 on), and each is given once."""
    for port in PORTS:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    sys.exit("peers: no port is free")


def wait_for_port(port, process):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args[0]} ended with {process.returncode} before it listened")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port} after {START_SECONDS} s")


class Background:
    """Processes that run while a block runs, each with its output in a file."""

    def __init__(self):
        self.running = []

    def start(self, name, command, port=None, **environment):
        log = open(SCRATCH / f"{name}.log", "wb")
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=HERE,
            env={**os.environ, **environment}, start_new_session=True,
        )
        self.running.append(process)
        if port is not None:
            try:
                wait_for_port(port, process)
            except RuntimeError as error:
                sys.exit(f"peers: {name}: {error}\n{tail(name)}")
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.running:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def tail(name, lines=20):
    path = SCRATCH / f"{name}.log"
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""


def agent(command, plan, seconds=90):
    """Has an agent follow a plan; its account, or a RuntimeError with its last words."""
    done = subprocess.run(
        command, input=json.dumps(plan), capture_output=True, text=True, timeout=seconds, cwd=HERE,
        env={**os.environ, "RUST_BACKTRACE": "0"},
    )
    if done.returncode != 0:
        last = [line for line in done.stderr.splitlines() if line.strip()]
        raise RuntimeError("\n".join(last[-12:]) or f"ended with {done.returncode}")
    return json.loads(done.stdout)
