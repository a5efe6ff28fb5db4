//! Programs that hand part of their arguments to a shell, each in its own way.

use super::facts::{self, Facts};
use super::reader::{Around, Reader};
use super::value::{Field, Value};
use super::wrappers::value_of;

impl Reader<'_> {
    /// Reads what `facts`' program hands to a shell, if it is one that does.
    pub(super) fn hand_over(&mut self, facts: &mut Facts, arguments: &[Field], around: &Around) {
        match facts.program.as_str() {
            "source" | "." => {
                if let Some(file) = arguments.iter().find(|f| !f.text.starts_with('-')) {
                    facts.executes |= file.taint;
                    facts.runs.extend(facts::see(&file.text, self.folder.as_deref()));
                    let streamed = matches!(file.text.as_str(), "/dev/stdin" | "/dev/fd/0");
                    let value = if streamed { Some(around.input.clone()) } else { self.file(&file.text) };
                    if let Some(value) = value {
                        facts.executes |= value.taint;
                        self.known_script(&value);
                    }
                }
            }
            "eval" => facts.executes |= arguments.iter().fold(facts.executes, |taint, f| taint | f.taint),
            "find" | "fd" | "fdfind" | "gfind" => self.found(arguments),
            "ssh" | "rsh" | "mosh" | "autossh" => self.remote(arguments),
            "su" | "runuser" | "sg" | "script" | "flock" | "vagrant" | "nix-shell" | "bwrap" | "start-stop-daemon"
            | "scriptreplay" => {
                self.option_script(arguments, &["-c", "--command", "--session-command", "--run"]);
            }
            "watch" | "parallel" | "chronic" | "hyperfine" | "rsh-redone" | "concurrently" | "nodemon" | "wsl" => {
                self.joined_script(arguments.iter().skip_while(|f| f.text.starts_with('-')));
            }
            "at" | "batch" if !arguments.iter().any(|f| matches!(f.text.as_str(), "-l" | "-d" | "-r" | "-c")) => {
                self.known_script(&around.input);
            }
            "tmux" | "screen" | "byobu" => {
                for field in arguments.iter().filter(|f| f.text.contains(' ')) {
                    self.inner_script(&field.text.clone(), &Value::nothing());
                }
            }
            "tar" | "gtar" | "bsdtar" | "rsync" | "zip" | "git" | "ssh-keygen" | "scp" | "sftp" | "nmap" | "make" | "gmake"
            | "socat" | "ncat" | "nc" => {
                self.option_values(facts, arguments);
            }
            "vim" | "vi" | "nvim" | "view" | "vimdiff" | "ex" | "ed" | "less" | "more" | "man" | "sqlite3" | "psql" | "mysql"
            | "mongo" | "gdb" | "ftp" | "lftp" | "nmap-interactive" | "emacs" => {
                for field in arguments {
                    for mark in ["!", ".shell ", ".system ", "system "] {
                        if let Some((before, script)) = field.text.split_once(mark)
                            && before.len() <= 8
                            && !script.starts_with('=')
                        {
                            self.inner_script(script.trim_end_matches([')', '"']), &Value::nothing());
                            break;
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn known_script(&mut self, value: &Value) {
        if let Some(text) = value.as_text() {
            self.inner_script(text, &Value::nothing());
        }
    }

    fn option_script(&mut self, arguments: &[Field], flags: &[&str]) {
        let joined = arguments
            .iter()
            .find_map(|f| flags.iter().find_map(|flag| f.text.strip_prefix(flag)?.strip_prefix('=').map(str::to_owned)));
        if let Some(script) = joined.or_else(|| value_of(arguments, flags).map(|f| f.text.clone())) {
            self.inner_script(&script, &Value::nothing());
        }
    }

    fn joined_script<'f>(&mut self, fields: impl Iterator<Item = &'f Field>) {
        let words: Vec<&str> = fields.map(|f| f.text.as_str()).collect();
        if !words.is_empty() {
            self.inner_script(&words.join(" "), &Value::nothing());
        }
    }

    /// `find … -exec`: the command runs on what is found; without a filter that is all there is.
    fn found(&mut self, arguments: &[Field]) {
        const ACTIONS: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "--exec", "-X", "--exec-batch"];
        const FILTERS: [&str; 24] = [
            "-name",
            "-iname",
            "-path",
            "-ipath",
            "-wholename",
            "-regex",
            "-iregex",
            "-mtime",
            "-mmin",
            "-atime",
            "-amin",
            "-ctime",
            "-newer",
            "-size",
            "-empty",
            "-user",
            "-group",
            "-inum",
            "-lname",
            "-perm",
            "-nouser",
            "-xtype",
            "-samefile",
            "-e",
        ];
        let filtered = arguments.iter().any(|f| FILTERS.contains(&f.text.as_str()));
        let starts: Vec<&Field> = arguments
            .iter()
            .skip_while(|f| matches!(f.text.as_str(), "-L" | "-H" | "-P"))
            .take_while(|f| !f.text.starts_with(['-', '(', '!']))
            .collect();
        let mut at = 0;
        while let Some(field) = arguments.get(at) {
            at += 1;
            if !ACTIONS.contains(&field.text.as_str()) {
                continue;
            }
            let body: Vec<Field> = arguments.iter().skip(at).take_while(|f| f.text != ";" && f.text != "+").cloned().collect();
            at += body.len();
            let mut made: Vec<Field> = Vec::with_capacity(body.len() + starts.len());
            for (n, part) in body.iter().enumerate() {
                if part.text.contains("{}") && !filtered {
                    made.extend(
                        starts.iter().take(16).map(|start| Field { text: part.text.replace("{}", &start.text), ..part.clone() }),
                    );
                } else {
                    made.push(part.clone());
                }
                if n == 0 && !filtered && matches!(part.text.rsplit('/').next(), Some("rm" | "chmod" | "chown" | "chgrp")) {
                    made.push(Field::plain("-R"));
                }
            }
            if !made.is_empty() {
                self.command(made.into(), Around::default());
            }
        }
    }

    /// `ssh host command`: the far shell reads the words joined.
    fn remote(&mut self, arguments: &[Field]) {
        const VALUED: &str = "BbcDEeFIiJLlmOopQRSWw";
        let mut at = 0;
        let mut host = false;
        while let Some(field) = arguments.get(at) {
            if let Some(option) = field.text.strip_prefix('-') {
                let valued = option.len() == 1 && option.chars().all(|c| VALUED.contains(c));
                if option == "o"
                    && let Some(value) = arguments.get(at + 1)
                {
                    self.proxy_command(&value.text.clone());
                }
                at += 1 + usize::from(valued);
            } else if host {
                break;
            } else {
                host = true;
                at += 1;
            }
        }
        self.joined_script(arguments.iter().skip(at));
    }

    fn proxy_command(&mut self, text: &str) {
        if let Some((name, script)) = text.split_once(['=', ' '])
            && matches!(
                name.to_ascii_lowercase().as_str(),
                "proxycommand" | "localcommand" | "remotecommand" | "knownhostscommand"
            )
        {
            self.inner_script(script, &Value::nothing());
        }
    }

    /// Options whose values are commands: `--checkpoint-action=exec=…`, `-c core.pager=…`, `EXEC:…`.
    fn option_values(&mut self, facts: &Facts, arguments: &[Field]) {
        const NAMES: [&str; 8] = [
            "checkpoint-action=exec",
            "to-command",
            "use-compress-program",
            "info-script",
            "new-volume-script",
            "rsh",
            "unzip-command",
            "eval",
        ];
        let program = facts.program.as_str();
        for (at, field) in arguments.iter().enumerate() {
            let text = field.text.as_str();
            let next = || arguments.get(at + 1).map(|f| f.text.clone());
            let script = match text {
                "-c" if program == "git" => next().and_then(|v| {
                    let (name, value) = v.split_once('=')?;
                    let runs = name.ends_with("pager")
                        || name.ends_with("editor")
                        || name.ends_with("sshCommand")
                        || name.starts_with("alias.")
                        || name.ends_with("helper")
                        || name.ends_with("fsmonitor");
                    runs.then(|| value.trim_start_matches('!').to_owned())
                }),
                "-o" if matches!(program, "scp" | "sftp") => {
                    if let Some(value) = next() {
                        self.proxy_command(&value);
                    }
                    None
                }
                "-e" | "--rsh" | "-TT" | "-I" | "-F" if matches!(program, "rsync" | "zip" | "tar") => {
                    next().filter(|v| v.contains(' '))
                }
                "-c" | "--sh-exec" if matches!(program, "nc" | "ncat") => next(),
                _ if program == "socat" => {
                    ["EXEC:", "SYSTEM:", "exec:", "system:"].iter().find_map(|p| text.strip_prefix(p)).map(str::to_owned)
                }
                _ if program == "make" || program == "gmake" => {
                    text.split_once("$(shell ").map(|(_, s)| s.split(')').next().unwrap_or(s).to_owned())
                }
                _ => text.strip_prefix("--").and_then(|option| {
                    NAMES.iter().find_map(|name| option.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
                }),
            };
            if let Some(script) = script {
                self.inner_script(&script, &Value::nothing());
            }
        }
    }
}
