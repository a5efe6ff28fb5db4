"""An agent on the Python SDK: reads a plan on standard input, prints what it saw as JSON.

plan: {target: {http|sse: URL} | {stdio: [COMMAND, …]}, era: legacy|modern, steps: [step, …]}
step: {list: tools|prompts|resources} | {call: NAME, arguments} | {read: URI} | {prompt: NAME, arguments}
"""

import asyncio
import json
import sys
import time

import mcp.types as types
from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

MODERN = "2026-07-28"


def plain(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def given(schema):
    """An answer that a form with this schema accepts."""
    if "default" in schema:
        return schema["default"]
    for key in ("enum", "oneOf"):
        if key in schema:
            first = schema[key][0]
            return first["const"] if isinstance(first, dict) else first
    kind = schema.get("type")
    return {"boolean": True, "integer": 1, "number": 1.5, "array": []}.get(kind, "given")


class Agent:
    def __init__(self, plan):
        self.plan = plan
        self.events = []
        self.began = time.monotonic()

    def saw(self, method, params):
        self.events.append({"method": method, "params": params, "ms": round((time.monotonic() - self.began) * 1000)})

    async def sampled(self, _context, params):
        self.saw("sampling/createMessage", plain(params))
        content = types.TextContent(type="text", text="Paris")
        return types.CreateMessageResult(role="assistant", content=content, model="a-model", stop_reason="endTurn")

    async def elicited(self, _context, params):
        self.saw("elicitation/create", plain(params))
        schema = params.requested_schema
        content = {name: given(schema["properties"][name]) for name in schema.get("required", [])}
        return types.ElicitResult(action="accept", content=content)

    async def rooted(self, _context):
        self.saw("roots/list", {})
        return types.ListRootsResult(roots=[types.Root(uri="file:///tmp", name="tmp")])

    async def progressed(self, progress, total, message):
        self.saw("notifications/progress", {"progress": progress, "total": total, "message": message})

    async def logged(self, params):
        self.saw("notifications/message", plain(params))

    def server(self):
        target = self.plan["target"]
        if "http" in target:
            return target["http"]
        if "sse" in target:
            return sse_client(target["sse"])
        command, *arguments = target["stdio"]
        return StdioServerParameters(command=command, args=arguments)

    async def step(self, client, step):
        arguments = step.get("arguments", {})
        if "call" in step:
            return await client.call_tool(step["call"], arguments, progress_callback=self.progressed)
        if "read" in step:
            return await client.read_resource(step["read"])
        if "prompt" in step:
            return await client.get_prompt(step["prompt"], arguments)
        return await getattr(client, f"list_{step['list']}")()

    async def run(self):
        modern = self.plan["era"] == "modern"
        done = []
        async with Client(
            self.server(),
            mode=MODERN if modern else "legacy",
            sampling_callback=self.sampled,
            elicitation_callback=self.elicited,
            list_roots_callback=self.rooted,
            logging_callback=self.logged,
            log_level="info" if modern else None,
            read_timeout_seconds=30,
            cache=None,
        ) as client:
            for step in self.plan["steps"]:
                self.events, self.began = [], time.monotonic()
                try:
                    outcome = {"result": plain(await self.step(client, step))}
                except MCPError as error:
                    outcome = {"error": plain(error.error)}
                outcome["ms"] = round((time.monotonic() - self.began) * 1000)
                done.append({"step": step, **outcome, "events": self.events})
            return {"protocol": client.protocol_version, "steps": done}


print(json.dumps(asyncio.run(Agent(json.load(sys.stdin)).run())))
