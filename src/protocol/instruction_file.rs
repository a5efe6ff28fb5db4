//! Recognizes the paths of files that instruct agents: their authors write instructions on purpose.

/// Names of instruction files, in lower case.
#[rustfmt::skip]
const NAMES: [&str; 20] = [
    "agents.md", "agents.override.md", "agent.md", "claude.md", "claude.local.md", "gemini.md", "qwen.md", "crush.md", "warp.md",
    "skill.md", "copilot-instructions.md", ".cursorrules", ".windsurfrules", ".clinerules", ".roorules", ".goosehints", ".rules",
    ".replit.md", "replit.md", ".augment-guidelines",
];
/// Suffixes of the names of other instruction files.
const ENDINGS: [&str; 2] = [".mdc", ".instructions.md"];
/// Folders whose Markdown files are instruction files.
#[rustfmt::skip]
const FOLDERS: [&str; 13] = [
    ".cursor/rules", ".windsurf/rules", ".github/instructions", ".claude/commands", ".claude/agents", ".claude/rules",
    ".clinerules", ".roo/rules", ".kiro/steering", ".continue/rules", ".augment/rules", ".amazonq/rules", ".trae/rules",
];

/// Reports whether a path, or a URI with a path, names an instruction file: `AGENTS.md`,
/// `.cursor/rules/style.mdc`.
pub fn names_instruction_file(path: &str) -> bool {
    let path = path
        .trim()
        .split(['?', '#'])
        .next()
        .unwrap_or_default()
        .replace('\\', "/")
        .to_ascii_lowercase();
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let is_inside = |known: &str| {
        let mut rest = folder;
        while let Some(at) = rest.rfind(known) {
            let begins = rest
                .get(..at)
                .is_some_and(|before| before.is_empty() || before.ends_with('/'));
            let ends = rest
                .get(at + known.len()..)
                .is_some_and(|after| after.is_empty() || after.starts_with('/'));
            if begins && ends {
                return true;
            }
            rest = rest.get(..at).unwrap_or_default();
        }
        false
    };
    NAMES.contains(&name)
        || ENDINGS
            .iter()
            .any(|ending| name.len() > ending.len() && name.ends_with(ending))
        || name.ends_with(".md") && FOLDERS.iter().any(|known| is_inside(known))
}

#[cfg(test)]
mod tests {
    use super::names_instruction_file;

    #[test]
    fn instruction_files_are_known_by_name_and_folder() {
        for path in [
            "AGENTS.md",
            "/srv/app/packages/web/CLAUDE.md",
            "C:\\src\\app\\.github\\copilot-instructions.md",
            "skills/pdf/SKILL.md",
            ".cursorrules",
            "app/.cursor/rules/style.mdc",
            ".cursor/rules/team/style.md",
            ".github/instructions/tests.instructions.md",
            "repo:///app/GEMINI.md?ref=main",
        ] {
            assert!(names_instruction_file(path), "{path}");
        }
        for path in [
            "README.md",
            "AGENTS.md.html",
            "docs/agents.md/index.md",
            ".mdc",
            "my.cursor/rules/style.md",
            ".cursor/rules.md",
            "x.cursorrules",
            ".claude/settings.json",
        ] {
            assert!(!names_instruction_file(path), "{path}");
        }
    }
}
