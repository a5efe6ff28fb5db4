//! `lychgate completions` and `lychgate man`, both generated from the definition of the command
//! line.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;

/// Arguments of `lychgate completions`.
#[derive(clap::Args)]
#[command(after_help = "\
bash:  lychgate completions bash > ~/.local/share/bash-completion/completions/lychgate
zsh:   lychgate completions zsh > _lychgate, in a folder of `$fpath`
fish:  lychgate completions fish > ~/.config/fish/completions/lychgate.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Arguments of `lychgate man`.
#[derive(clap::Args)]
#[command(after_help = "\
lychgate man | man -l -                          show the main page
lychgate man --folder ~/.local/share/man/man1    install a page for each command")]
pub(super) struct ManArgs {
    /// Write one page per command to this folder; without it, the main page goes to standard output
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Additional sections of the main page, in roff (man(7)).
const SECTIONS: &str = r#".SH EXAMPLES
.TP
\fBlychgate demo\fR
See the gateway in action with a sample agent and server.
.TP
\fBlychgate install claude\-code\fR
Put the servers of Claude Code behind the gateway.
.TP
\fBlychgate init \-\-upstream docs=https://mcp.example.com/mcp && lychgate run\fR
Create a config with one upstream, and serve it.
.TP
\fBlychgate audit tail \-\-verdict block\fR
Follow the blocked messages.
.SH FILES
.TP
\fI./lychgate.toml\fR, \fI~/.config/lychgate/lychgate.toml\fR, \fI/etc/lychgate/lychgate.toml\fR
Config file: the first that exists. \fBlychgate wrap\fR does not read \fI./lychgate.toml\fR.
.TP
\fI~/.local/state/lychgate/\fR
State: pinned definitions, logins, quarantine, evidence and the admin token, unless the config sets other paths.
.SH ENVIRONMENT
.TP
\fBLYCHGATE_CONFIG\fR
Config file, if \fB\-\-config\fR is not given.
.TP
\fBLYCHGATE_LOG\fR
Log filter, such as \fBdebug\fR or \fBwarn,lychgate=debug\fR.
.TP
\fBXDG_STATE_HOME\fR
Replaces \fI~/.local/state\fR.
.TP
\fBBROWSER\fR
Program that opens the browser.
.TP
\fBNO_COLOR\fR
Disables colors on the terminal, if not empty.
"#;

/// Writes the completions.
pub(super) fn completions(
    args: &CompletionsArgs,
    mut command: Command,
    out: &mut dyn Write,
) -> io::Result<u8> {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut command, "lychgate", &mut script);
    out.write_all(&script)?;
    Ok(0)
}

/// Writes the manual pages; exit code 2 if the folder cannot be written.
pub(super) fn man(
    args: &ManArgs,
    command: Command,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let Some(folder) = &args.folder else {
        return main_page(command, out).map(|()| 0);
    };
    let result = fs::create_dir_all(folder).and_then(|()| {
        clap_mangen::generate_to(command.clone(), folder)?;
        main_page(command, &mut fs::File::create(folder.join("lychgate.1"))?)
    });
    match result {
        Ok(()) => Ok(0),
        Err(error) => {
            writeln!(
                err,
                "`{}`: {error}\n  hint: pass a writable folder",
                folder.display()
            )?;
            Ok(2)
        }
    }
}

fn main_page(command: Command, out: &mut dyn Write) -> io::Result<()> {
    clap_mangen::Man::new(command).render(out)?;
    out.write_all(SECTIONS.as_bytes())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, ValueEnum};

    use super::*;

    #[test]
    fn every_shell_knows_every_verb() {
        for shell in Shell::value_variants() {
            let mut out = vec![];
            completions(
                &CompletionsArgs { shell: *shell },
                crate::cli::Cli::command(),
                &mut out,
            )
            .unwrap();
            let script = String::from_utf8(out).unwrap();
            for verb in crate::cli::Cli::command().get_subcommands() {
                assert!(
                    script.contains(verb.get_name()),
                    "{shell}: {}",
                    verb.get_name()
                );
            }
        }
    }

    #[test]
    fn every_verb_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let args = ManArgs {
            folder: Some(folder.path().join("man1")),
        };
        assert_eq!(
            man(
                &args,
                crate::cli::Cli::command(),
                &mut io::sink(),
                &mut io::sink()
            )
            .unwrap(),
            0
        );
        for verb in crate::cli::Cli::command().get_subcommands() {
            let page = fs::read_to_string(
                folder
                    .path()
                    .join(format!("man1/lychgate-{}.1", verb.get_name())),
            );
            assert!(
                page.unwrap().contains(".SH SYNOPSIS"),
                "{}",
                verb.get_name()
            );
        }
        let mut page = vec![];
        man(
            &ManArgs { folder: None },
            crate::cli::Cli::command(),
            &mut page,
            &mut io::sink(),
        )
        .unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains("lychgate\\-wrap"));
        for section in ["EXAMPLES", "FILES", "ENVIRONMENT"] {
            assert!(page.contains(&format!(".SH {section}\n")), "{section}");
        }
        let installed = fs::read_to_string(folder.path().join("man1/lychgate.1")).unwrap();
        assert!(installed.contains(".SH FILES"), "{installed}");
    }
}
