"""Agents straight to their servers and through the gate: the accounts have to be equal."""

import collections
import concurrent.futures
import json
import subprocess
import urllib.request

from matrix import DANGER, MODERN_AGENTS, SHELF, SSE_AGENTS, agents, servers
from places import Background, SCRATCH, agent, free_port, gate, tail

# How long before the end of its call a live notification has to be there, at the least: what is held back comes with the end.
LIVE_MS = 30
NOT_LIVE = "not live"
AT_ONCE = 2


def agents_compared(only):
    """Runs every pair; gives (name, fault or None) one after the other."""
    SHELF.mkdir(parents=True, exist_ok=True)
    (SHELF / "plants.txt").write_text("Fern, ivy, sage.\n")
    with Background() as background:
        urls = start_servers(background)
        front = start_gate(background, urls)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            pairs = [(name, key, plan) for name, key, plan in through(front) if only in name]
            needed = {key for _, key, _ in pairs}
            straight = {key: pool.submit(attempt, key[0], plan) for key, plan in references(urls).items() if key in needed}
            running = [(name, pool.submit(judge, straight[key], key[0], plan)) for name, key, plan in pairs]
            for name, pair in running:
                yield name, pair.result()
        for name, fault in dangers(front, only):
            yield name, fault
        yield "gate: audit and metrics tell of it", evidence(front)
        yield "gate: ends on SIGTERM", ends(front["process"])


def start_servers(background):
    urls = {}
    for server in servers():
        for transport, start in (("http", server.http), ("sse", server.sse)):
            if start:
                port = free_port()
                command, path = start(port)
                background.start(f"{server.name}-{transport}", command, port, PORT=str(port))
                urls[server.name, transport] = f"http://127.0.0.1:{port}{path}"
    return urls


def start_gate(background, urls):
    port, admin = free_port(), free_port()
    lines = [
        f'[listen]\naddress = "127.0.0.1:{port}"',
        f'[admin]\naddress = "127.0.0.1:{admin}"',
        f'[audit]\nfile = "{SCRATCH}/audit.jsonl"',
        '[policy.observe]\nmode = "observe"',
    ]
    for (name, transport), url in urls.items():
        lines.append(f'[upstream.{name}-{transport}]\n{transport} = {{ url = "{url}" }}')
    lines.append(f'[upstream.python-observed]\nhttp = {{ url = "{urls["python", "http"]}" }}\npolicy = "observe"')
    for server in servers():
        command = json.dumps(server.stdio)
        # Long enough for an interpreter to start on a machine that is busy with something else.
        lines.append(
            f'[upstream.{server.name}-stdio]\nstdio = {{ command = {command}, env = ["PATH", "HOME"] }}\n'
            "initialize_timeout_seconds = 60"
        )
    config = SCRATCH / "lychgate.toml"
    config.write_text("\n\n".join(lines) + "\n")
    process = background.start("gate", [gate(), "run", "--config", str(config)], port)
    return {"url": f"http://127.0.0.1:{port}", "admin": f"http://127.0.0.1:{admin}", "process": process}


def eras(name, server, transport):
    return ["legacy", "modern"] if name in MODERN_AGENTS and transport in server.modern else ["legacy"]


def reaches(name, transport):
    return transport != "sse" or name in SSE_AGENTS


def references(urls):
    """A plan for each agent, server, transport and era, without the gate."""
    plans = {}
    for server in servers():
        for transport in server_transports(server):
            for name in agents():
                # An agent without the old transport is compared with what it sees by the newer one.
                used = transport if reaches(name, transport) else "http"
                target = {"stdio": server.stdio} if used == "stdio" else {used: urls[server.name, used]}
                for era in eras(name, server, transport):
                    plans[name, server.name, transport, era] = server.plan(era, target)
    return plans


def server_transports(server):
    return [transport for transport in ("http", "sse", "stdio") if getattr(server, transport)]


def through(front):
    """(name, key of the reference, plan) for every way through the gate."""
    for server in servers():
        for transport in server_transports(server):
            upstream = f"{server.name}-{transport}"
            for name in agents():
                for era in eras(name, server, transport):
                    key = (name, server.name, transport, era)
                    targets = {"http": {"http": f"{front['url']}/mcp/{upstream}"}}
                    if era == "legacy" and name in SSE_AGENTS:
                        targets["sse"] = {"sse": f"{front['url']}/sse/{upstream}"}
                    if transport == "stdio":
                        targets["wrap"] = {"stdio": [gate(), "wrap", "--", *server.stdio]}
                    for way, target in targets.items():
                        yield f"{name} by {way} to {upstream}, {era}", key, server.plan(era, target)


def attempt(name, plan):
    try:
        return agent(agents()[name], plan)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return str(error)


def judge(straight, name, plan):
    straight = straight.result()
    if isinstance(straight, str):
        return f"fails straight already: {straight}"
    fault = try_once(straight, name, plan)
    # A busy machine can hold up an agent for as long as a call lasts, but hardly twice.
    return try_once(straight, name, plan) if fault and fault.endswith(NOT_LIVE) else fault


def try_once(straight, name, plan):
    account = attempt(name, plan)
    if isinstance(account, str):
        return account
    if account["protocol"] != straight["protocol"]:
        return f"speaks {account['protocol']}, straight {straight['protocol']}"
    for mine, other in zip(account["steps"], straight["steps"], strict=True):
        for key in ("result", "error"):
            if mine.get(key) != other.get(key):
                gist = [shorten(step.get("result", step.get("error"))) for step in (mine, other)]
                return f"{json.dumps(mine['step'])}: {gist[0]}\n   straight: {gist[1]}"
    if told(account) != told(straight):
        lost, new = (sorted((told(a) - told(b)).elements()) for a, b in ((straight, account), (account, straight)))
        return f"not told: {shorten(lost)}; told besides: {shorten(new)}"
    for step in account["steps"]:
        ahead = step["ms"] - step["events"][0]["ms"] if step["events"] else 0
        if step["step"].get("live") and ahead < LIVE_MS:
            return f"{json.dumps(step['step'])}: the first notification came {ahead} ms before the answer: {NOT_LIVE}"
    return None


def told(account):
    """What the server sent, in whatever step.

    Not the last progress: it comes together with the answer, and some agents take no progress after that. Nor what
    servers want to know of roots on their own account: that may come after the last step.
    """
    events = [event for step in account["steps"] for event in step["events"]]
    return collections.Counter(
        json.dumps([event["method"], event["params"]], sort_keys=True) for event in events if not comes_late(event)
    )


def comes_late(event):
    method, params = event["method"], event["params"]
    if method == "notifications/progress":
        return params["progress"] == params.get("total")
    return method == "roots/list" or (method == "notifications/message" and "Roots updated" in str(params.get("data")))


def shorten(value):
    text = json.dumps(value)
    return text if len(text) < 600 else f"{text[:600]}… ({len(text)} characters)"


def dangers(front, only):
    for name, command in agents().items():
        plans = {
            "http": {"http": f"{front['url']}/mcp/python-http"},
            "stdio": {"http": f"{front['url']}/mcp/python-stdio"},
            "observe": {"http": f"{front['url']}/mcp/python-observed"},
        }
        for way, target in plans.items():
            if only not in f"{name} with harm in it, {way}":
                continue
            account = attempt(name, {"target": target, "era": "legacy", "steps": DANGER})
            fault = account if isinstance(account, str) else harm(account["steps"], observed=way == "observe")
            yield f"{name} with harm in it, {way}", fault


def harm(steps, observed):
    texts = [" ".join(block.get("text", "") for block in (step.get("result") or {}).get("content", [])) for step in steps]
    refused = (steps[0].get("result") or {}).get("isError") is True
    ran, injected = "ran: rm -rf /" in texts[0], "Ignore all previous instructions" in texts[1]
    if observed:
        return None if ran and injected and not refused else f"observe changed something: {texts}"
    if ran or not refused:
        return f"the command was not refused: {shorten(steps[0])}"
    if "rm -rf" in texts[0]:
        return f"the refusal repeats the payload: {texts[0]}"
    if injected:
        return f"the injection got through: {texts[1]}"
    if "one litre" not in texts[1]:
        return f"the rest of the page is gone: {texts[1]}"
    return None


def evidence(front):
    with urllib.request.urlopen(f"{front['admin']}/metrics", timeout=10) as answer:
        metrics = answer.read().decode()
    counted = [line for line in metrics.splitlines() if line.startswith("lychgate_commands_blocked_total")]
    if not any(float(line.rsplit(" ", 1)[1]) > 0 for line in counted):
        return f"no blocked command is counted: {counted[:5]}"
    audit = [json.loads(line) for line in (SCRATCH / "audit.jsonl").read_text().splitlines()]
    if not any(line.get("verdict") == "block" for line in audit):
        return f"none of {len(audit)} audit lines says `block`"
    return None


def ends(process):
    process.terminate()
    try:
        code = process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        return f"still there after 30 s\n{tail('gate')}"
    return None if code == 0 else f"ended with {code}\n{tail('gate')}"
