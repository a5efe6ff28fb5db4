//! Code of interpreters: what it hands to a shell, deletes, reads, writes and connects to, told as commands.

use std::collections::HashMap;

use super::code_lex::{self, Token};
use super::facts::{Behaviour, Facts};
use super::programs;
use super::reader::{Around, Reader};
use super::simulate;
use super::value::{Field, Taint, Value};

/// Calls whose text a shell or the system runs.
const RUN: [&str; 40] = [
    "system",
    "popen",
    "popen2",
    "popen3",
    "popen4",
    "run",
    "call",
    "check_call",
    "check_output",
    "Popen",
    "getoutput",
    "getstatusoutput",
    "execSync",
    "exec",
    "spawn",
    "spawnSync",
    "execFile",
    "execFileSync",
    "shell_exec",
    "passthru",
    "proc_open",
    "execl",
    "execle",
    "execlp",
    "execv",
    "execve",
    "execvp",
    "execvpe",
    "spawnl",
    "spawnv",
    "spawnvp",
    "posix_spawn",
    "capture2",
    "capture2e",
    "capture3",
    "execute",
    "create_subprocess_shell",
    "create_subprocess_exec",
    "pcntl_exec",
    "ShellExecute",
];
/// Calls that run code of their own language.
const EVALUATE: [&str; 8] = ["eval", "exec", "compile", "Function", "instance_eval", "class_eval", "create_function", "assert"];
const DELETE_TREE: [&str; 14] = [
    "rmtree",
    "rm_rf",
    "rm_r",
    "rmSync",
    "rmdirSync",
    "rimraf",
    "removeSync",
    "remove_tree",
    "remove_dir_all",
    "deleteRecursively",
    "emptyDirSync",
    "remove_entry_secure",
    "rmtree_p",
    "remove_entry",
];
const DELETE: [&str; 6] = ["unlink", "remove", "unlinkSync", "delete", "removedirs", "rmdir"];
const READ: [&str; 14] = [
    "open",
    "readFileSync",
    "readFile",
    "read",
    "file_get_contents",
    "fopen",
    "readlines",
    "read_text",
    "slurp",
    "readfile",
    "file",
    "binread",
    "createReadStream",
    "read_bytes",
];
const WRITE: [&str; 12] = [
    "writeFileSync",
    "writeFile",
    "appendFileSync",
    "appendFile",
    "file_put_contents",
    "write",
    "createWriteStream",
    "write_text",
    "truncate",
    "truncateSync",
    "copyFileSync",
    "binwrite",
];
const COPY: [&str; 9] = ["copy", "copy2", "copyfile", "copytree", "move", "rename", "symlink", "cp", "cp_r"];
const DECODE: [&str; 12] = [
    "b64decode",
    "atob",
    "base64_decode",
    "decode_base64",
    "decode64",
    "strict_decode64",
    "urlsafe_b64decode",
    "fromhex",
    "unhexlify",
    "hex2bin",
    "from",
    "decodebytes",
];
const FETCH: [&str; 9] =
    ["urlopen", "urlretrieve", "fetch", "get_response", "axios", "http_get", "getstore", "curl_exec", "DownloadString"];
/// Marks of a connection, and of a shell at its end.
const CONNECTS: [&str; 14] = [
    "socket.socket",
    "socket(",
    "Socket",
    "fsockopen",
    "net.connect",
    "net.createConnection",
    "create_connection",
    "stream_socket_client",
    "socket.tcp",
    "TCPSocket",
    "require('net')",
    "require(\"net\")",
    "tcp.connect",
    "TcpClient",
];
const SHELLS: [&str; 14] = [
    "dup2",
    "pty.spawn",
    "/bin/sh",
    "/bin/bash",
    "/bin/zsh",
    "cmd.exe",
    "sh -i",
    "IO.popen",
    "proc_open",
    "exec(\"sh",
    "exec('sh",
    "spawn('sh",
    "spawn(\"sh",
    "fdopen(",
];

impl Reader<'_> {
    /// Reads code of the language that `program` runs.
    pub(super) fn code(&mut self, program: &str, text: &str, taint: Taint) {
        self.spend_bytes(text.len());
        if !self.spend_command() || !self.go_deeper() {
            return;
        }
        self.scripts.push(text.to_owned());
        self.behaviour(text);
        let language = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let Some(tokens) = code_lex::lex(text, language) else {
            self.give_up();
            return;
        };
        let mut flow = Flow { taint, ..Flow::default() };
        let mut at = 0;
        while at < tokens.len() && !self.is_spent() {
            at = self.code_step(language, &tokens, at, &mut flow);
        }
        let executes = if flow.evaluates { flow.taint } else { Taint::NONE };
        let sends = if flow.posts { flow.taint.without(Taint::DOWNLOAD | Taint::DECODED) } else { Taint::NONE };
        if executes != Taint::NONE || sends != Taint::NONE {
            self.facts.push(Facts { program: program.to_owned(), executes, sends, ..Facts::default() });
        }
        self.come_up();
    }

    fn behaviour(&mut self, text: &str) {
        let any = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
        if any(&CONNECTS) && any(&SHELLS) {
            self.facts.push(Facts::of(Behaviour::ReverseShell));
        }
        let loops = any(&["while", "loop", "for(;;)", "for (;;)", "until", "for(", "setInterval"]);
        let forks = text.contains("fork") && !any(&["accept", "wait", "forked", "fork("])
            || any(&["os.fork()", "fork()", "fork while", "cluster.fork"]) && !any(&["accept", "wait"]);
        if forks && loops && text.len() < 600 {
            self.facts.push(Facts::of(Behaviour::ForkBomb));
        }
    }

    fn code_step(&mut self, language: &str, tokens: &[Token], at: usize, flow: &mut Flow) -> usize {
        match tokens.get(at) {
            Some(Token::Command(script)) => {
                self.inner_script(script, &Value::nothing());
                at + 1
            }
            Some(Token::Text(text)) => {
                let pipes = |at: usize| matches!(tokens.get(at), Some(Token::Sign('|')));
                if language.ends_with("awk") && (pipes(at + 1) || pipes(at.wrapping_sub(1))) {
                    self.inner_script(text, &Value::nothing());
                }
                at + 1
            }
            Some(Token::Name(name)) => {
                if matches!(tokens.get(at + 1), Some(Token::Sign('=')))
                    && let Some(Token::Text(text)) = tokens.get(at + 2)
                {
                    if flow.texts.len() < 256 {
                        flow.texts.insert(name.clone(), text.clone());
                    }
                    return at + 3;
                }
                self.code_call(language, name, tokens, at + 1, flow);
                at + 1
            }
            _ => at + 1,
        }
    }

    /// A name and what may be its arguments.
    fn code_call(&mut self, language: &str, name: &str, tokens: &[Token], at: usize, flow: &mut Flow) {
        let last = name.rsplit(['.', ':', '>', '$']).next().unwrap_or(name);
        if name.contains("environ") || name.contains("process.env") || last == "ENV" {
            flow.taint |= Taint::ENVIRONMENT;
        }
        if FETCH.contains(&last)
            || (matches!(last, "get" | "post")
                && name.contains(['.', ':'])
                && (name.contains("request") || name.contains("http") || name.contains("HTTP") || name.contains("axios")))
        {
            flow.taint |= Taint::DOWNLOAD;
            flow.posts |= last == "post"
                || tokens
                    .iter()
                    .any(|t| matches!(t, Token::Name(n) if matches!(n.as_str(), "data" | "method" | "body" | "json" | "files")));
        }
        let (arguments, next) = code_lex::arguments(tokens, at, &flow.texts);
        let opens = matches!(tokens.get(at), Some(Token::Sign('(')));
        if EVALUATE.contains(&last) && (opens || !arguments.is_empty()) && (last != "exec" || language.starts_with("py")) {
            flow.evaluates = true;
            if let Some(code) = arguments.first() {
                self.code(language, code, flow.taint);
            }
            return;
        }
        if RUN.contains(&last) && opens && arguments.is_empty() {
            flow.evaluates = true;
        }
        if !opens && !matches!(language, "perl" | "ruby" | "lua" | "php" | "osascript") {
            return;
        }
        let Some(first) = arguments.first().cloned() else { return };
        if first.starts_with("http://") || first.starts_with("https://") {
            flow.taint |= Taint::DOWNLOAD;
        }
        if DECODE.contains(&last) {
            let text = if matches!(last, "fromhex" | "unhexlify" | "hex2bin") {
                simulate::hex_text(&first)
            } else {
                simulate::base64_text(&first)
            };
            flow.taint |= Taint::DECODED;
            if let Some(text) = text.filter(|text| text.len() > 3) {
                self.code(language, &text, Taint::DECODED);
                self.inner_script(&text, &Value::nothing());
            }
            return;
        }
        if RUN.contains(&last) {
            let rest = if last.starts_with("execl") || last.starts_with("spawnl") {
                arguments.iter().skip(1).collect::<Vec<_>>()
            } else {
                arguments.iter().collect()
            };
            match rest.as_slice() {
                [script] | [script, ..] if script.contains(' ') => {
                    let script = (*script).clone();
                    self.inner_script(&script, &Value::nothing());
                }
                words => {
                    let fields: Vec<Field> = words.iter().map(|word| Field::plain((*word).clone())).collect();
                    self.told(fields);
                }
            }
            return;
        }
        let words: &[&str] = if DELETE_TREE.contains(&last) {
            &["rm", "-r", "-f"]
        } else if DELETE.contains(&last) {
            &["rm", "-f"]
        } else if COPY.contains(&last) && arguments.len() > 1 {
            &["cp"]
        } else if WRITE.contains(&last) {
            &["tee"]
        } else if last == "Path" {
            match tokens.get(next) {
                Some(Token::Name(after)) if after.contains("write") => &["tee"],
                Some(Token::Name(after)) if after.contains("read") || after.contains("open") => &["cat"],
                Some(Token::Name(after)) if after.contains("unlink") => &["rm", "-f"],
                _ => return,
            }
        } else if READ.contains(&last) {
            let mode = arguments.get(1).or(arguments.first()).map_or("", |mode| mode.trim());
            if (arguments.len() > 1 && mode.len() <= 4 && mode.starts_with(['w', 'a', 'x', '>', '+'])) || first.starts_with('>') {
                &["tee"]
            } else {
                &["cat"]
            }
        } else {
            return;
        };
        let mut fields: Vec<Field> = words.iter().map(|word| Field::plain(*word)).collect();
        let count = if words == ["cp"] { 2 } else { 1 };
        let paths: Vec<&String> = if first.len() <= 2 && first.starts_with(['>', '<', '+']) {
            arguments.iter().skip(1).collect()
        } else {
            arguments.iter().collect()
        };
        fields.extend(paths.into_iter().take(count).map(|path| Field::plain(path.trim_start_matches(['>', '<', ' ']))));
        flow.taint |= self.told(fields).taint;
    }

    fn told(&mut self, fields: Vec<Field>) -> Value {
        if fields.is_empty() || !self.go_deeper() {
            return Value::nothing();
        }
        let out = self.command(fields.into(), Around::default());
        self.come_up();
        out
    }
}

/// Whether `program` runs code that can be looked into.
pub(super) fn is_interpreter(program: &str) -> bool {
    programs::interpreter(program) == Some(programs::Runs::Code)
}

/// What is known while code is read.
#[derive(Default)]
struct Flow {
    texts: HashMap<String, String>,
    taint: Taint,
    evaluates: bool,
    posts: bool,
}
