"""Which servers, which agents, and what the agents do there."""

from places import MODULES, PEER, PYTHON, SCRATCH, node

PACKAGES = MODULES / "@modelcontextprotocol"
FOLDER = SCRATCH / "files"
# Agents write at the same time, by way of temporary files: what is listed is where none of them writes.
SHELF = FOLDER / "shelf"


def listing(*kinds):
    return [{"list": kind} for kind in kinds]


def call(name, live=False, **arguments):
    step = {"call": name, "arguments": arguments}
    return {**step, "live": True} if live else step


FIXTURE = [
    *listing("tools", "prompts", "resources"),
    call("test_simple_text"),
    call("test_image_content"),
    call("test_multiple_content_types"),
    call("test_error_handling"),
    call("test_headers", region="Zürich", query="two words"),
    call("test_tool_with_progress", live=True),
    call("test_input_required_result_elicitation"),
    call("test_input_required_result_multiple_inputs"),
    call("test_input_required_result_multi_round"),
    call("test_input_required_result_request_state"),
    {"read": "test://static-text"},
    {"read": "test://nothing-here"},
    {"prompt": "test_prompt_with_arguments", "arguments": {"arg1": "a", "arg2": "ü"}},
    call("no_such_tool"),
]
FIXTURE_LEGACY = [
    call("test_sampling", prompt="What is the capital of France?"),
    call("test_elicitation", message="Who are you?"),
    call("test_elicitation_sep1330_enums"),
    call("test_tool_with_logging", live=True),
]
EVERYTHING = [
    *listing("tools", "prompts", "resources"),
    call("echo", message="héllo \U0001f600"),
    call("get-sum", a=1.5, b=2),
    call("get-tiny-image"),
    call("get-structured-content", location="Chicago"),
    call("get-annotated-message", messageType="error", includeImage=False),
    call("trigger-long-running-operation", live=True, duration=0.6, steps=3),
    call("trigger-sampling-request", prompt="What is the capital of France?", maxTokens=10),
    call("trigger-elicitation-request"),
    {"prompt": "simple-prompt"},
    call("no-such-tool"),
]
FILESYSTEM = [
    *listing("tools"),
    call("write_file", path=str(FOLDER / "note.txt"), content="Water the plants.\n"),
    call("read_text_file", path=str(FOLDER / "note.txt")),
    call("list_directory", path=str(SHELF)),
    call("read_text_file", path=str(FOLDER / "missing.txt")),
]
PYTHON_SDK = [
    *listing("tools", "prompts", "resources"),
    call("echo", text="línea\n\ttwo"),
    call("add", a=1, b=2),
    call("slow", live=True),
    call("broken"),
    call("fetch_page", url="https://example.test/kettle"),
    call("run_command", command="ls -la"),
    {"read": "note://today"},
    {"prompt": "greet", "arguments": {"name": "Jo"}},
    call("no_such_tool"),
]
PYTHON_LEGACY = [call("ask", question="Who are you?")]
RMCP = [
    *listing("tools"),
    call("echo", text="hello"),
    call("slow", live=True),
    call("run_command", command="ls -la"),
    call("broken"),
]

# What must not pass in `enforce`, and what is left of it.
DANGER = [
    call("run_command", command="rm -rf / --no-preserve-root"),
    call("fetch_page", url="https://example.test/hostile"),
]


class Server:
    """One server program: how it is started for each transport, its steps, and the SDK it stands on."""

    def __init__(self, name, sdk, steps, legacy=(), stdio=None, http=None, sse=None, modern=()):
        self.name, self.sdk, self.steps, self.legacy = name, sdk, list(steps), list(legacy)
        self.stdio, self.http, self.sse, self.modern = stdio, http, sse, modern

    def plan(self, era, target):
        steps = self.steps + (self.legacy if era == "legacy" else [])
        return {"target": target, "era": era, "steps": steps}


def servers():
    everything = [node(), str(PACKAGES / "server-everything/dist/index.js")]
    fixture = [node(), "servers/fixture.mjs"]
    python = [PYTHON, "servers/python_server.py"]
    return [
        Server("fixture", "typescript_v2", FIXTURE, FIXTURE_LEGACY, modern=("http", "stdio"),
               stdio=[*fixture, "--stdio"], http=lambda port: ([*fixture, str(port)], "/mcp")),
        Server("everything", "typescript_v1", EVERYTHING, stdio=[*everything, "stdio"],
               http=lambda port: ([*everything, "streamableHttp"], "/mcp"), sse=lambda port: ([*everything, "sse"], "/sse")),
        Server("filesystem", "typescript_v1", FILESYSTEM,
               stdio=[node(), str(PACKAGES / "server-filesystem/dist/index.js"), str(FOLDER)]),
        Server("python", "python_sdk", PYTHON_SDK, PYTHON_LEGACY, modern=("http", "stdio"), stdio=[*python, "stdio"],
               http=lambda port: ([*python, "http", str(port)], "/mcp"), sse=lambda port: ([*python, "sse", str(port)], "/sse")),
        Server("rmcp", "rmcp", RMCP, stdio=[PEER, "serve"]),
    ]


def agents():
    return {
        "python_sdk": [PYTHON, "clients/python_sdk.py"],
        "typescript_v1": [node(), "clients/typescript_v1.mjs"],
        "typescript_v2": [node(), "clients/typescript_v2.mjs"],
        "rmcp": [PEER, "agent"],
    }


# Agents that know a revision without sessions, and agents that know the transport of 2024-11-05.
MODERN_AGENTS = ("python_sdk", "typescript_v2", "rmcp")
SSE_AGENTS = ("python_sdk", "typescript_v1", "typescript_v2")
