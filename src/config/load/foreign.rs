//! Detection of MCP client configs that are passed by mistake instead of the gate's own.

use crate::document::Fault;

/// Keys of server tables in client configs, and the clients that use them.
const TABLES: [(&str, &str); 4] = [
    (
        "\"mcpServers\"",
        "`mcpServers`: Claude Code, Claude Desktop, Cursor, Windsurf, Gemini CLI, Cline",
    ),
    ("\"context_servers\"", "`context_servers`: Zed"),
    ("\"servers\"", "`servers`: VS Code"),
    ("\"mcp\"", "`mcp`: OpenCode and others"),
];
const CODEX: &str = "`mcp_servers`: Codex";

/// Returns the fault of a config that was written for another program; `None` if it may be the
/// gate's.
pub(super) fn check(file: &str, text: &str) -> Option<Fault> {
    let text = text.trim_start_matches('\u{feff}');
    let first = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("//"))?;
    let client = if first.starts_with('{') {
        TABLES
            .iter()
            .find(|(key, _)| text.contains(key))
            .map(|(_, client)| *client)
    } else if text
        .lines()
        .any(|line| line.trim_start().starts_with("[mcp_servers"))
    {
        Some(CODEX)
    } else {
        return None;
    };
    let message = match client {
        Some(client) => format!("this is the config of an MCP client ({client}), not of lychgate"),
        None => "this is JSON; the config of lychgate is TOML".to_owned(),
    };
    let hint = match client {
        Some(_) => {
            "`lychgate install CLIENT` moves the client's servers behind the gate; `--config` names the gate's own file"
        }
        None => "deploy/lychgate.toml explains every option",
    };
    Some(Fault::of_file(file, message, Some(hint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configs_of_clients_are_named() {
        for (text, part) in [
            (
                "{ \"mcpServers\": { \"files\": { \"command\": \"npx\" } } }",
                "Cursor",
            ),
            ("// settings\n{\n  \"context_servers\": {} }", "Zed"),
            ("\u{feff}{ \"servers\": {} }", "VS Code"),
            (
                "model = \"o3\"\n[mcp_servers.files]\ncommand = \"npx\"\n",
                "Codex",
            ),
            ("{ \"listen\": 1 }", "TOML"),
        ] {
            let fault = check("x.json", text).unwrap().to_string();
            assert!(
                fault.starts_with("x.json: this is ")
                    && fault.contains(part)
                    && fault.contains("hint: "),
                "{fault}"
            );
        }
        for text in [
            "",
            "[upstream.a]\nhttp = { url = \"https://a\" }\n",
            "# { \"mcpServers\" }\n[pins]\n",
        ] {
            assert_eq!(check("lychgate.toml", text), None, "{text}");
        }
    }
}
