//! `lychgate completions` and `lychgate man`: what a shell and a reader of manual pages want to know, from the verbs themselves.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;

/// Arguments of `lychgate completions`.
#[derive(clap::Args)]
#[command(after_help = "\
bash:  lychgate completions bash > ~/.local/share/bash-completion/completions/lychgate
zsh:   lychgate completions zsh > a folder of `$fpath`, as `_lychgate`
fish:  lychgate completions fish > ~/.config/fish/completions/lychgate.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Arguments of `lychgate man`.
#[derive(clap::Args)]
#[command(after_help = "\
lychgate man | man -l -                          read the page of lychgate itself
lychgate man --folder ~/.local/share/man/man1    one page for each verb: `man lychgate-run`")]
pub(super) struct ManArgs {
    /// Write a page for each verb into this folder; left out, the main page goes to standard output
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Writes the completions.
pub(super) fn completions(args: &CompletionsArgs, mut command: Command, out: &mut dyn Write) -> io::Result<u8> {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut command, "lychgate", &mut script);
    out.write_all(&script)?;
    Ok(0)
}

/// Writes manual pages; 2 where the folder cannot be written.
pub(super) fn man(args: &ManArgs, command: Command, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let Some(folder) = &args.folder else {
        clap_mangen::Man::new(command).render(out)?;
        return Ok(0);
    };
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    match written {
        Ok(()) => Ok(0),
        Err(error) => {
            writeln!(err, "`{}`: {error}\n  hint: name a folder that you can write", folder.display())?;
            Ok(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, ValueEnum};

    use super::*;

    #[test]
    fn every_shell_knows_every_verb() {
        for shell in Shell::value_variants() {
            let mut out = vec![];
            completions(&CompletionsArgs { shell: *shell }, crate::cli::Cli::command(), &mut out).unwrap();
            let script = String::from_utf8(out).unwrap();
            for verb in crate::cli::Cli::command().get_subcommands() {
                assert!(script.contains(verb.get_name()), "{shell}: {}", verb.get_name());
            }
        }
    }

    #[test]
    fn every_verb_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let args = ManArgs { folder: Some(folder.path().join("man1")) };
        assert_eq!(man(&args, crate::cli::Cli::command(), &mut io::sink(), &mut io::sink()).unwrap(), 0);
        for verb in crate::cli::Cli::command().get_subcommands() {
            let page = fs::read_to_string(folder.path().join(format!("man1/lychgate-{}.1", verb.get_name())));
            assert!(page.unwrap().contains(".SH SYNOPSIS"), "{}", verb.get_name());
        }
        let mut page = vec![];
        man(&ManArgs { folder: None }, crate::cli::Cli::command(), &mut page, &mut io::sink()).unwrap();
        assert!(String::from_utf8(page).unwrap().contains("lychgate\\-wrap"));
    }
}
