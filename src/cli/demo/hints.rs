//! Instructions for connecting agents to the gate.

/// A client, and the command or config that connects it to a URL.
pub(super) struct Hint {
    pub(super) client: &'static str,
    /// Where the text is entered.
    pub(super) place: &'static str,
    pub(super) text: String,
}

/// Returns how common clients are connected to `url` under the name `sample`.
pub(super) fn hints(url: &str) -> Vec<Hint> {
    let hint = |client, place, text| Hint {
        client,
        place,
        text,
    };
    vec![
        hint(
            "Claude Code",
            "in a shell",
            format!("claude mcp add --transport http sample {url}"),
        ),
        hint(
            "Cursor",
            ".cursor/mcp.json",
            format!(r#"{{ "mcpServers": {{ "sample": {{ "url": "{url}" }} }} }}"#),
        ),
        hint(
            "VS Code",
            ".vscode/mcp.json",
            format!(r#"{{ "servers": {{ "sample": {{ "type": "http", "url": "{url}" }} }} }}"#),
        ),
        hint(
            "Python",
            "package `mcp`",
            format!(
                "async with streamable_http_client(\"{url}\") as (read, write, *_):\n    async with ClientSession(read, write) as session:\n        await session.initialize()"
            ),
        ),
        hint(
            "TypeScript",
            "package `@modelcontextprotocol/sdk`",
            format!("await client.connect(new StreamableHTTPClientTransport(new URL(\"{url}\")))"),
        ),
    ]
}
