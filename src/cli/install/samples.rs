//! Realistic sample files of each client.

use super::client::Client;

/// For each client, a realistic file: its path, its text, and what it must contain after its
/// servers are moved.
pub(super) const FILES: [(Client, &str, &str, &[&str]); 16] = [
    (
        Client::ClaudeCode,
        ".claude.json",
        r#"{"numStartups":3,"mcpServers":{"files":{"type":"stdio","command":"npx","args":["-y","server-filesystem","/tmp"],"env":{"KEY":"hunter2"}},
 "docs":{"type":"http","url":"https://docs.example/mcp","headers":{"Authorization":"Bearer hunter2"}}},
 "projects":{"/home/me/p":{"history":[],"mcpServers":{"db":{"command":"uvx","args":[]}}}}}"#,
        &[
            r#""command":"/opt/lychgate","args":[WRAP(files) "npx", "-y","server-filesystem","/tmp"],"env":{"KEY":"hunter2"}"#,
            r#"{"type":"http","url":"http://127.0.0.1:8800/mcp/docs"}"#,
            r#"{"command":"/opt/lychgate","args":[WRAP(db-p) "uvx"]}"#,
        ],
    ),
    (
        Client::ClaudeDesktop,
        ".config/Claude/claude_desktop_config.json",
        "{\n  \"mcpServers\": {\n    \"files\": {\n      \"command\": \"npx\",\n      \"args\": [\n        \"-y\",\n        \"server\"\n      ]\n    }\n  }\n}\n",
        &["\"args\": [WRAP(files) \"npx\",\n        \"-y\","],
    ),
    (
        Client::Cursor,
        ".cursor/mcp.json",
        "{ \"mcpServers\": { \"a\": { \"url\": \"https://a.example/sse\" }, \"b\": { \"command\": \"b\" } } }",
        &[
            r#""url": "http://127.0.0.1:8800/mcp/a""#,
            r#"{ "command": "/opt/lychgate", "args": [WRAP(b) "b"] }"#,
        ],
    ),
    (
        Client::VsCode,
        ".config/Code/User/mcp.json",
        "{\n\t// my servers\n\t\"servers\": {\n\t\t\"gh\": { \"type\": \"http\", \"url\": \"https://gh.example/mcp/\", /* mine */ },\n\t\t\"x\": { \"type\": \"stdio\", \"command\": \"x\", \"args\": [\"${workspaceFolder}\",], },\n\t},\n\t\"inputs\": [],\n}\n",
        &[
            "// my servers",
            "/* mine */",
            r#""args": [WRAP(x) "x", "${workspaceFolder}",]"#,
        ],
    ),
    (
        Client::Windsurf,
        ".codeium/windsurf/mcp_config.json",
        r#"{"mcpServers":{"w":{"serverUrl":"https://w.example/mcp","headers":{"X-Region":"eu"},"disabled":true}}}"#,
        &[r#"{"serverUrl":"http://127.0.0.1:8800/mcp/w","disabled":true}"#],
    ),
    (
        Client::GeminiCli,
        ".gemini/settings.json",
        r#"{"theme":"x","mcpServers":{"g":{"httpUrl":"https://g.example/mcp","timeout":5}}}"#,
        &[r#"{"httpUrl":"http://127.0.0.1:8800/mcp/g","timeout":5}"#],
    ),
    (
        Client::Codex,
        ".codex/config.toml",
        "model = \"o\" # mine\n\n[mcp_servers.files]\ncommand = \"npx\" # node\nargs = [\"-y\", \"server\"]\n\n[mcp_servers.files.env]\nKEY = \"hunter2\"\n\n[mcp_servers.docs]\nurl = \"https://docs.example/mcp\"\nbearer_token_env_var = \"DOCS\"\ntool_timeout_sec = 9\n[mcp_servers.bare]\ncommand = 'c'\n",
        &[
            "command = \"/opt/lychgate\" # node\nargs = [WRAP(files) \"npx\", \"-y\", \"server\"]",
            "url = \"http://127.0.0.1:8800/mcp/docs\"\ntool_timeout_sec = 9\n",
            "command = \"/opt/lychgate\"\nargs = [WRAP(bare) \"c\"]\n",
        ],
    ),
    (
        Client::Zed,
        ".config/zed/settings.json",
        "// Zed\n{\n  \"theme\": \"One\",\n  \"context_servers\": {\n    \"old\": { \"command\": { \"path\": \"o\", \"args\": [\"1\"], \"env\": null } },\n    \"new\": { \"source\": \"custom\", \"command\": \"n\", \"args\": [] },\n  },\n}\n",
        &[
            r#"{ "path": "/opt/lychgate", "args": [WRAP(old) "o", "1"], "env": null }"#,
            r#""args": [WRAP(new) "n"]"#,
        ],
    ),
    (
        Client::Cline,
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        r#"{"mcpServers":{"c":{"type":"sse","url":"https://c.example/events","autoApprove":["x"]}}}"#,
        &[r#"{"type":"sse","url":"http://127.0.0.1:8800/mcp/c","autoApprove":["x"]}"#],
    ),
    (
        Client::OpenCode,
        ".config/opencode/opencode.jsonc",
        "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n    // mine\n    \"files\": { \"type\": \"local\", \"command\": [\"npx\", \"-y\", \"server\"], \"environment\": { \"KEY\": \"hunter2\" }, \"enabled\": true },\n    \"docs\": { \"type\": \"remote\", \"url\": \"https://docs.example/mcp\", \"headers\": { \"Authorization\": \"Bearer {env:DOCS}\" } },\n  },\n}\n",
        &[
            "// mine",
            r#""command": ["/opt/lychgate", WRAP(files) "npx", "-y", "server"], "environment": { "KEY": "hunter2" }"#,
            r#"{ "type": "remote", "url": "http://127.0.0.1:8800/mcp/docs" }"#,
        ],
    ),
    (
        Client::CopilotCli,
        ".copilot/mcp-config.json",
        r#"{"mcpServers":{"p":{"type":"local","command":"npx","args":["-y","p"],"tools":["*"],"env":{"KEY":"hunter2"}},
"s":{"type":"sse","url":"https://s.example/events","tools":["a"]}}}"#,
        &[
            r#"{"type":"local","command":"/opt/lychgate","args":[WRAP(p) "npx", "-y","p"],"tools":["*"]"#,
            r#"{"type":"sse","url":"http://127.0.0.1:8800/mcp/s","tools":["a"]}"#,
        ],
    ),
    (
        Client::Junie,
        ".junie/mcp/mcp.json",
        r#"{"mcpServers":{"j":{"command":"j","args":[]},"r":{"url":"https://r.example/mcp","headers":{"Authorization":"Bearer hunter2"}}}}"#,
        &[
            r#"{"command":"/opt/lychgate","args":[WRAP(j) "j"]}"#,
            r#""r":{"url":"http://127.0.0.1:8800/mcp/r"}"#,
        ],
    ),
    (
        Client::Kiro,
        ".kiro/settings/mcp.json",
        r#"{"mcpServers":{"k":{"command":"uvx","args":["k"],"disabled":false,"autoApprove":["a"]},
"u":{"url":"https://u.example/mcp","headers":{"Authorization":"Bearer ${TOKEN}","X-Key":"hunter2"},"disabledTools":["d"]}}}"#,
        &[
            r#""args":[WRAP(k) "uvx", "k"],"disabled":false,"autoApprove":["a"]"#,
            r#"{"url":"http://127.0.0.1:8800/mcp/u","disabledTools":["d"]}"#,
        ],
    ),
    (
        Client::AmazonQ,
        ".aws/amazonq/cli-agents/reviewer.json",
        r#"{"name":"reviewer","mcpServers":{"q":{"command":"uvx","args":["q"],"env":{"KEY":"hunter2"},"timeout":60000}},"tools":["*"]}"#,
        &[
            r#"{"command":"/opt/lychgate","args":[WRAP(q) "uvx", "q"],"env":{"KEY":"hunter2"},"timeout":60000}"#,
        ],
    ),
    (
        Client::RooCode,
        ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        r#"{"mcpServers":{"r":{"type":"streamable-http","url":"https://r.example/mcp","headers":{"X-Key":"hunter2"},"alwaysAllow":["a"]},
"s":{"command":"s","args":["1"],"disabled":true}}}"#,
        &[
            r#"{"type":"streamable-http","url":"http://127.0.0.1:8800/mcp/r","alwaysAllow":["a"]}"#,
            r#""args":[WRAP(s) "s", "1"],"disabled":true"#,
        ],
    ),
    (
        Client::Amp,
        ".config/amp/settings.json",
        "{\n  // Amp\n  \"amp.notifications.enabled\": true,\n  \"amp.mcpServers\": {\n    \"a\": { \"command\": \"npx\", \"args\": [\"-y\", \"a\"] },\n    \"b\": { \"url\": \"https://b.example/mcp\", \"headers\": { \"X-Key\": \"${B_KEY}\" } }\n  }\n}\n",
        &[
            "// Amp",
            r#""args": [WRAP(a) "npx", "-y", "a"]"#,
            r#""b": { "url": "http://127.0.0.1:8800/mcp/b" }"#,
        ],
    ),
];
