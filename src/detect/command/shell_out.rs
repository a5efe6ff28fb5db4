//! Programs that pass part of their arguments to a shell, each in its own way.

use super::cwd::is_this_machine;
use super::facts::{self, Facts};
use super::find;
use super::reader::{CommandContext, Reader};
use super::value::{Field, Value, join_words, taint_of_fields};
use super::wrappers::{joined_value, value_of};
use crate::text::quick::WordSet;

impl Reader<'_> {
    /// Reads the text that the program of `facts` passes to a shell. Returns whether it is known
    /// what the program does with its arguments.
    pub(super) fn read_shell_out(
        &mut self,
        facts: &mut Facts,
        arguments: &[Field],
        context: &CommandContext,
    ) -> bool {
        match facts.program.as_str() {
            "source" | "." => {
                if let Some(file) = arguments.iter().find(|f| !f.text.starts_with('-')) {
                    facts.executes |= file.taint;
                    facts
                        .runs
                        .extend(facts::read_path(&file.text, self.folder.as_deref()));
                    let streamed = matches!(file.text.as_str(), "/dev/stdin" | "/dev/fd/0" | "-");
                    let value = if streamed {
                        Some(context.input.clone())
                    } else {
                        self.file_to_run(&file.text)
                    };
                    if let Some(value) = value {
                        facts.executes |= value.taint;
                        self.read_known_script(&value);
                    }
                } else {
                    // fish: `curl … | source`
                    facts.executes |= context.input.taint;
                    self.read_known_script(&context.input);
                }
            }
            "eval" => facts.executes |= taint_of_fields(arguments),
            "find" | "gfind" => self.run_by_find(arguments),
            "fd" | "fdfind" => self.run_by_find(&find::arguments_of_fd(arguments)),
            "ssh" | "rsh" | "mosh" | "autossh" => self.read_remote(arguments, &context.input),
            "su" | "runuser" | "sg" | "newgrp" | "script" | "vagrant" | "nix-shell" | "bwrap"
            | "start-stop-daemon" | "capsh" | "scriptreplay" | "login" => {
                self.read_as_user(facts, arguments, &context.input)
            }
            "parallel" => self.read_parallel(arguments, &context.input),
            "watch" | "chronic" | "hyperfine" | "rsh-redone" | "concurrently" | "nodemon"
            | "wsl" | "pdsh" | "pssh" | "clush" | "dsh" | "entr" => {
                // Options, and the numbers that are their values.
                let words = arguments
                    .iter()
                    .skip_while(|f| f.text.starts_with('-') || f.text.parse::<f64>().is_ok());
                if arguments.iter().any(|f| f.text.contains(' ')) {
                    for field in arguments.iter().filter(|f| f.text.contains(' ')).take(16) {
                        self.read_inner_script(&field.text, &Value::empty());
                    }
                } else {
                    self.read_joined_script(words, &Value::empty());
                }
            }
            "npx" | "bunx" | "pnpx" => self.read_package_run(arguments, context),
            "at" | "batch"
                if !arguments
                    .iter()
                    .any(|f| matches!(f.text.as_str(), "-l" | "-d" | "-r" | "-c")) =>
            {
                self.read_known_script(&context.input);
            }
            "tmux" | "screen" | "byobu" => {
                for field in arguments.iter().filter(|f| f.text.contains(' ')) {
                    self.read_inner_script(&field.text, &Value::empty());
                }
                self.read_unknown_wrapper(facts, arguments, context);
            }
            "tar" | "gtar" | "bsdtar" | "rsync" | "zip" | "git" | "ssh-keygen" | "scp" | "sftp"
            | "nmap" | "make" | "gmake" | "socat" | "ncat" | "nc" => {
                self.read_option_values(facts, arguments);
                match facts.program.as_str() {
                    "git" => self.read_git(arguments, context),
                    "make" | "gmake" => self.read_make(facts, arguments, &context.input),
                    "nmap" => self.read_marked_input(context),
                    _ => {}
                }
            }
            "curl" => self.read_curl_config(arguments, context),
            "go" | "zig" | "java" | "dotnet" | "nim" => self.run_source(facts, arguments),
            "cargo" | "mono" | "kotlin" | "rust-script" | "tcc" | "rdmd" | "scala-cli"
            | "dotnet-script" | "csi" => {
                self.run_source(facts, arguments);
                self.read_unknown_wrapper(facts, arguments, context);
            }
            "cmake" | "ctest" => self.read_cmake_script(facts, arguments),
            "sed" | "gsed" => self.read_sed(facts, arguments),
            "vim" | "vi" | "nvim" | "view" | "vimdiff" | "ex" | "ed" | "red" | "less" | "more"
            | "man" | "sqlite3" | "psql" | "mysql" | "mariadb" | "mongo" | "gdb" | "lldb"
            | "ftp" | "lftp" | "sftp-interactive" | "dc" | "bc" | "mutt" | "telnet" => {
                for field in arguments {
                    let text = field.text.trim_start_matches(['+', '-', ':', '\'', '"']);
                    let script = text
                        .strip_prefix('P')
                        .filter(|_| facts.program == "man" && field.text.starts_with("-P"));
                    match script {
                        Some(script) if !script.is_empty() => self.read_joined_script(
                            [&Field::plain(script)].into_iter(),
                            &Value::empty(),
                        ),
                        _ => self.read_escape_lines(text),
                    }
                }
                // `gdb --args rm -rf /`: the program to debug.
                if let "gdb" | "lldb" = facts.program.as_str()
                    && let Some(at) = arguments
                        .iter()
                        .position(|f| matches!(f.text.as_str(), "--args" | "-args" | "--"))
                {
                    self.read_command_words(arguments.get(at + 1..).unwrap_or_default(), context);
                }
                if facts.program == "man" {
                    self.read_option_script(arguments, &["-P", "--pager", "-H", "--html"]);
                }
                self.read_marked_input(context);
            }
            program @ ("emacs" | "aws") => {
                let mark = if program == "aws" { "commands" } else { "(" };
                for field in arguments.iter().filter(|f| f.text.contains(mark)) {
                    self.read_rare_code(&field.text);
                }
            }
            _ => return false,
        }
        true
    }

    /// Reads `npx -y package arguments`: the words after the options are one command.
    fn read_package_run(&mut self, arguments: &[Field], context: &CommandContext) {
        self.read_option_script(arguments, &["-c", "--call"]);
        let mut words = arguments;
        while let Some((option, rest)) = words.split_first() {
            let takes_value = matches!(option.text.as_str(), "-p" | "--package" | "-c" | "--call");
            words = match option.text.as_str() {
                "--" => rest,
                _ if takes_value => rest.get(1..).unwrap_or_default(),
                text if text.starts_with('-') => rest,
                _ => break,
            };
        }
        self.read_command_words(words, context);
    }

    /// Reads the input of an editor or a client.
    fn read_marked_input(&mut self, context: &CommandContext) {
        if let Some(text) = context.input.as_text() {
            self.read_escape_lines(text);
        }
    }

    /// Reads `su -c script`, `sg group script`, or the input of the shell that is started.
    fn read_as_user(&mut self, facts: &Facts, arguments: &[Field], input: &Value) {
        let flags = ["-c", "--command", "--session-command", "--run"];
        let dashes = arguments
            .iter()
            .position(|f| f.text == "--")
            .filter(|_| facts.program == "runuser");
        if let Some(at) = dashes {
            self.read_command_words(
                arguments.get(at + 1..).unwrap_or_default(),
                &CommandContext::default(),
            );
        } else if arguments.iter().any(|f| {
            flags.iter().any(|flag| f.text.starts_with(flag))
                || f.text.ends_with('c') && f.text.len() < 5
        }) {
            self.read_option_script(arguments, &flags);
        } else if let Some(script) = arguments.iter().find(|f| f.text.contains(' ')) {
            self.read_inner_script(&script.text, &Value::empty());
        } else if matches!(
            facts.program.as_str(),
            "su" | "newgrp" | "sg" | "runuser" | "login" | "script"
        ) {
            self.read_known_script(input);
        }
    }

    /// Reads `parallel command ::: arguments`: the command, or each argument if there is no
    /// command.
    fn read_parallel(&mut self, arguments: &[Field], input: &Value) {
        static VALUED: WordSet =
            WordSet::new("-j -P -I -n -N -S -L -d -C --jobs --max-procs --delay");
        let marks = [":::", "::::", ":::+"];
        let end = arguments
            .iter()
            .position(|f| marks.contains(&f.text.as_str()))
            .unwrap_or(arguments.len());
        let (command_words, item_words) = arguments.split_at(end);
        let mut files: Vec<&str> = Vec::new();
        let mut words = command_words.iter().map(|f| f.text.as_str()).peekable();
        while let Some(option) = words.next_if(|word| word.starts_with('-')) {
            if matches!(option, "-a" | "--arg-file") {
                files.extend(words.next());
            } else if let Some(file) = option.strip_prefix("--arg-file=") {
                files.push(file);
            } else if VALUED.contains(&option) {
                words.next();
            }
        }
        let command: Vec<&str> = words.collect();
        let mut kind = "";
        let mut items: Vec<String> = Vec::new();
        for word in item_words.iter().map(|f| f.text.as_str()) {
            match word {
                mark if marks.contains(&mark) => kind = mark,
                file if kind == "::::" => files.push(file),
                item => items.push(item.to_owned()),
            }
        }
        let inputs: Vec<Value> = match (files.is_empty(), item_words.is_empty()) {
            (true, true) => vec![input.clone()],
            _ => files
                .iter()
                .take(4)
                .filter_map(|file| self.file_content(file))
                .collect(),
        };
        items.extend(
            inputs
                .iter()
                .filter_map(Value::as_text)
                .flat_map(str::lines)
                .map(String::from),
        );
        items.truncate(16);
        let command = command.join(" ");
        let scripts: Vec<String> = match (command.is_empty(), items.is_empty()) {
            (true, _) => items.clone(),
            (false, true) => vec![command],
            // An item is one word, unless the command is a shell's `-c`, which parses it again.
            (false, false) if command.contains("{}") => items
                .iter()
                .map(|item| command.replace("{}", item))
                .collect(),
            (false, false) => items
                .iter()
                .map(|item| format!("{command} '{}'", item.replace('\'', "'\\''")))
                .collect(),
        };
        for script in scripts {
            self.read_inner_script(&script, &Value::empty());
        }
    }

    /// Reads options and verbs of `git` that run something.
    fn read_git(&mut self, arguments: &[Field], context: &CommandContext) {
        let mut verbs = arguments
            .iter()
            .enumerate()
            .filter(|(_, f)| !f.text.starts_with('-'));
        let Some((at, verb)) = verbs.find(|(_, f)| !f.text.contains('=')) else {
            return;
        };
        let rest = arguments.get(at + 1..).unwrap_or_default();
        // A remote helper runs the text that follows, with each word quoted by `%`
        // (git-remote-ext).
        for remote in rest.iter().filter_map(|f| f.text.strip_prefix("ext::")) {
            self.read_inner_script(&remote.replace('%', ""), &Value::empty());
        }
        match verb.text.as_str() {
            "rebase" => self.read_option_script(rest, &["--exec", "-x"]),
            "bisect" if rest.first().is_some_and(|f| f.text == "run") => {
                self.read_command_words(rest.get(1..).unwrap_or_default(), context)
            }
            "submodule" => {
                let at = rest
                    .iter()
                    .position(|f| f.text == "foreach")
                    .map_or(rest.len(), |at| at + 1);
                self.read_command_words(rest.get(at..).unwrap_or_default(), context);
            }
            "filter-branch" | "difftool" | "mergetool" | "clone" | "fetch" | "pull" | "push"
            | "ls-remote" | "archive" => {
                for (name, value) in rest.iter().zip(rest.iter().skip(1)) {
                    let script_flags = [
                        "-filter",
                        "--extcmd",
                        "-x",
                        "--upload-pack",
                        "-u",
                        "--receive-pack",
                        "--exec",
                    ];
                    let (name, value) = name
                        .text
                        .split_once('=')
                        .unwrap_or((&name.text, &value.text));
                    if script_flags
                        .iter()
                        .any(|flag| name == *flag || name.ends_with("-filter"))
                    {
                        self.read_inner_script(value, &Value::empty());
                    }
                }
            }
            "config" => {
                if let [.., name, value] = rest
                    && runs_value(&name.text)
                {
                    self.read_inner_script(value.text.trim_start_matches('!'), &Value::empty());
                }
            }
            "grep" => self.read_option_script(rest, &["-O", "--open-files-in-pager"]),
            _ => {}
        }
    }

    fn read_known_script(&mut self, value: &Value) {
        if let Some(text) = value.as_text() {
            self.read_inner_script(text, &Value::empty());
        }
    }

    fn read_option_script(&mut self, arguments: &[Field], flags: &[&str]) {
        if let Some(script) = joined_value(arguments, flags)
            .or_else(|| value_of(arguments, flags).map(|f| f.text.as_str()))
        {
            self.read_inner_script(script, &Value::empty());
        }
    }

    fn read_joined_script<'f>(&mut self, fields: impl Iterator<Item = &'f Field>, input: &Value) {
        let mut fields = fields.peekable();
        if fields.peek().is_some() {
            self.read_inner_script(&join_words(fields), input);
        }
    }

    /// Reads `find … -exec`: the command runs on the files found, which are all files if there is
    /// no filter.
    fn run_by_find(&mut self, arguments: &[Field]) {
        let listed = find::listed_in_file(
            value_of(arguments, &["-files0-from"])
                .and_then(|file| self.file_content(&file.text))
                .as_ref(),
        );
        let starts: Vec<&Field> = find::start_folders(arguments).chain(&listed).collect();
        if starts.len() > find::MAX_STARTS {
            return self.give_up();
        }
        let filtered = find::narrows_at(arguments, &starts);
        if !filtered && arguments.iter().any(|field| field.text == "-delete") {
            let removed = ["rm", "-R"]
                .map(Field::plain)
                .into_iter()
                .chain(starts.iter().map(|start| (*start).clone()));
            self.read_command(removed.collect(), CommandContext::default());
        }
        let mut at = 0;
        while let Some(field) = arguments.get(at) {
            at += 1;
            if !find::runs_command(&field.text) {
                continue;
            }
            let body: Vec<Field> = arguments
                .iter()
                .skip(at)
                .take_while(|f| f.text != ";" && f.text != "+")
                .cloned()
                .collect();
            at += body.len();
            // `fd` appends the files that it finds.
            let bare = !filtered
                && !body.iter().any(|part| part.text.contains("{}"))
                && find::runs_by_fd(&field.text);
            let mut words: Vec<Field> = Vec::with_capacity(body.len() + starts.len());
            for (n, part) in body.iter().enumerate() {
                if part.text.contains("{}") && !filtered {
                    words.extend(starts.iter().map(|start| Field {
                        text: part.text.replace("{}", &start.text),
                        ..part.clone()
                    }));
                } else {
                    words.push(part.clone());
                }
                if n == 0
                    && !filtered
                    && matches!(
                        part.text.rsplit('/').next(),
                        Some("rm" | "chmod" | "chown" | "chgrp")
                    )
                {
                    words.push(Field::plain("-R"));
                }
            }
            if bare {
                words.extend(starts.iter().take(16).map(|start| (*start).clone()));
            }
            if !words.is_empty() {
                self.read_command(words.into(), CommandContext::default());
            }
        }
    }

    /// Reads `ssh host command`: the remote shell parses the joined words.
    fn read_remote(&mut self, arguments: &[Field], input: &Value) {
        const VALUED: &str = "BbcDEeFIiJLlmOopQRSWw";
        let mut at = 0;
        let mut has_host = false;
        while let Some(field) = arguments.get(at) {
            if let Some(option) = field.text.strip_prefix('-') {
                let valued = option.len() == 1 && option.chars().all(|c| VALUED.contains(c));
                if option == "o"
                    && let Some(value) = arguments.get(at + 1)
                {
                    self.read_proxy_command(&value.text);
                } else if let Some(value) = option.strip_prefix('o') {
                    self.read_proxy_command(value);
                }
                at += 1 + usize::from(valued);
            } else if has_host {
                break;
            } else {
                has_host = true;
                at += 1;
            }
        }
        let was_elsewhere = self.location.is_elsewhere;
        let operands = arguments
            .get(..at)
            .unwrap_or_default()
            .iter()
            .filter(|f| !f.text.starts_with('-'));
        self.location.is_elsewhere |=
            has_host && !operands.into_iter().any(|f| is_this_machine(&f.text));
        if at < arguments.len() {
            self.read_joined_script(arguments.iter().skip(at), input);
        } else if has_host {
            // Without a command, the remote shell reads the input.
            self.read_known_script(input);
        }
        self.location.is_elsewhere = was_elsewhere;
    }

    fn read_proxy_command(&mut self, text: &str) {
        if let Some((name, script)) = text.split_once(['=', ' '])
            && matches!(
                name.to_ascii_lowercase().as_str(),
                "proxycommand" | "localcommand" | "remotecommand" | "knownhostscommand"
            )
        {
            self.read_inner_script(script, &Value::empty());
        }
    }

    /// Reads options whose values are commands: `--checkpoint-action=exec=…`, `-c core.pager=…`,
    /// `EXEC:…`.
    fn read_option_values(&mut self, facts: &Facts, arguments: &[Field]) {
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
                    runs_value(name).then(|| value.trim_start_matches('!').to_owned())
                }),
                "--checkpoint-action" => {
                    next().and_then(|v| v.strip_prefix("exec=").map(str::to_owned))
                }
                "-o" if matches!(program, "scp" | "sftp") => {
                    if let Some(value) = next() {
                        self.read_proxy_command(&value);
                    }
                    None
                }
                "-e" | "--rsh" | "-TT" | "-I" | "-F"
                    if matches!(program, "rsync" | "zip" | "tar") =>
                {
                    next().filter(|v| v.contains(' '))
                }
                "-c" | "--sh-exec" if matches!(program, "nc" | "ncat") => next(),
                _ if program == "socat" => ["EXEC:", "SYSTEM:", "exec:", "system:"]
                    .iter()
                    .find_map(|p| text.strip_prefix(p))
                    .map(str::to_owned),
                _ if program == "make" || program == "gmake" => text
                    .split_once("$(shell ")
                    .map(|(_, s)| s.split(')').next().unwrap_or(s).to_owned()),
                _ => text.strip_prefix("--").and_then(|option| {
                    NAMES.iter().find_map(|name| {
                        option
                            .strip_prefix(name)?
                            .strip_prefix('=')
                            .map(str::to_owned)
                    })
                }),
            };
            if let Some(script) = script {
                self.read_inner_script(&script, &Value::empty());
            }
        }
    }
}

/// Reports whether `git` runs the value of this configuration key.
fn runs_value(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let suffixes = [
        "pager",
        "editor",
        "sshcommand",
        "helper",
        "fsmonitor",
        "askpass",
        "program",
        ".cmd",
        "textconv",
        "clean",
        "smudge",
        "driver",
    ];
    name.starts_with("alias.")
        || name.starts_with("pager.")
        || suffixes.iter().any(|end| name.ends_with(end))
}
