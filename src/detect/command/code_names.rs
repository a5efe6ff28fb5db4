//! Names of calls in the languages of interpreters, and behaviour that no single call shows.

use super::code_lex::Language;
use super::facts::{Behaviour, Facts};
use super::reader::Reader;
use super::term;
use crate::text::quick::WordSet;

/// The name of the value that walking through a folder yields: the folder and its content.
pub(super) const WALK: &str = "everything in a folder";

/// Calls whose text a shell or the system runs.
pub(super) static RUN: WordSet = WordSet::new(
    "doShellScript system popen popen2 popen3 popen4 run call check_call check_output Popen \
     getoutput getstatusoutput execSync exec spawn spawnSync execFile execFileSync shell_exec \
     passthru proc_open execl execle execlp execv execve execvp execvpe spawnl spawnle spawnlp \
     spawnv spawnvp posix_spawn posix_spawnp capture2 capture2e capture3 execute \
     create_subprocess_shell create_subprocess_exec pcntl_exec ShellExecute Command command \
     commandSync execa execaSync execaCommand execaCommandSync $ exec_command sudo local_run qx \
     pipeline backtick spawnvpe spawnve startfile readpipe getoutputstatus",
);
/// Calls that run code of their own language.
pub(super) static EVALUATE: WordSet = WordSet::new(
    "eval exec Function instance_eval class_eval module_eval create_function assert \
     runInThisContext runInNewContext runInContext load loadstring dostring execfile runpy",
);
pub(super) static DELETE_TREE: WordSet = WordSet::new(
    "rmtree rm_rf rm_r rmSync rmdirSync rimraf removeSync remove_tree remove_dir_all \
     deleteRecursively emptyDirSync remove_entry_secure remove_dir remove_entry rm removedirs \
     emptyDir rmtree_p",
);
pub(super) static DELETE: WordSet =
    WordSet::new("unlink remove unlinkSync delete rmdir safe_unlink unlink_p rm_f truncateSync");
pub(super) static READ: WordSet = WordSet::new(
    "open readFileSync readFile read file_get_contents fopen readlines read_text slurp readfile \
     file binread createReadStream read_bytes readTextFileSync readTextFile openSync fromfile \
     loadtxt foreach",
);
pub(super) static WRITE: WordSet = WordSet::new(
    "writeFileSync writeFile appendFileSync appendFile file_put_contents write createWriteStream \
     write_text truncate write_bytes binwrite writeTextFileSync writeTextFile outputFileSync \
     touch",
);
pub(super) static COPY: WordSet = WordSet::new(
    "copy copy2 copyfile copytree move rename symlink cp cp_r copyFileSync renameSync \
     replace_file link symlinkSync",
);
pub(super) static FETCH: WordSet = WordSet::new(
    "urlopen urlretrieve fetch get_response axios http_get getstore curl_exec DownloadString \
     curl_init URI.open wget getprint Request",
);
/// Calls that send their arguments.
pub(super) static SEND: WordSet = WordSet::new(
    "post put patch request send sendall sendto sendmail write end urlopen fetch send_message \
     post_form",
);
pub(super) static CONNECT: WordSet = WordSet::new(
    "socket create_connection open_connection createConnection fsockopen pfsockopen \
     stream_socket_client connect tcp TCPSocket Socket createServer create_server start_server \
     TCPServer socketpair socket_create accept",
);

/// Further functions that act on the text after their names.
static ACT_ON_TEXT: WordSet = WordSet::new(
    "open chmod chown kill require include read decode_base64 reverse readfile join pack",
);
static KEYWORDS: WordSet = WordSet::new(
    "for while with return await const let var if elif else class not and or new yield async try \
     except catch lambda nonlocal raise throw print",
);
/// Further keywords of languages whose calls need no parentheses.
static LOOSE_KEYWORDS: WordSet = WordSet::new(
    "my our local global do end then echo puts unless foreach begin ensure rescue p say scalar int \
     elsif",
);

/// Reports whether a function acts on the text after its name, in a language where parentheses are
/// optional.
pub(super) fn acts_on_text(name: &str) -> bool {
    let last = last_part(name);
    [&RUN, &EVALUATE, &DELETE, &DELETE_TREE, &ACT_ON_TEXT]
        .into_iter()
        .any(|names| names.contains(last))
}

pub(super) fn is_keyword(name: &str, language: Language) -> bool {
    KEYWORDS.contains(name)
        || (LOOSE_KEYWORDS.contains(name) && language.calls_loosely())
        || (name == "range" && language == Language::Compiled)
}

pub(super) fn last_part(name: &str) -> &str {
    name.rsplit(['.', ':', '>']).next().unwrap_or(name)
}

/// Reports behaviour that no single call shows: a shell connected to a socket, a program that
/// starts itself repeatedly.
pub(super) fn report_behaviour(reader: &mut Reader<'_>, text: &str) {
    const CONNECTS: [&str; 11] = [
        "socket.socket",
        "Socket",
        "fsockopen",
        "net.connect",
        "net.createConnection",
        "create_connection",
        "stream_socket_client",
        "socket.tcp",
        "require('net')",
        "require(\"net\")",
        "/inet/tcp",
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
    let contains_any = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
    if contains_any(&CONNECTS) && contains_any(&SHELLS) {
        reader.facts.push(Facts::new(Behaviour::ReverseShell));
    }
    let loops = contains_any(&[
        "while",
        "loop",
        "for(;;)",
        "for (;;)",
        "until",
        "for(",
        "for _ in iter(",
        "setInterval",
    ]);
    let forks = text.contains("fork") && !contains_any(&["accept", "wait", "forked", "fork("])
        || contains_any(&[
            "os.fork()",
            "fork()",
            "fork while",
            "cluster.fork",
            ".fork(__filename",
            "Process(target",
        ]) && !contains_any(&["accept", "wait", "join("]);
    let bounded = contains_any(&["range(", "i <", "i<", "cpus()", "isMaster", "isPrimary"]);
    if forks && loops && !bounded && text.len() < 600 {
        reader.facts.push(Facts::new(Behaviour::ForkBomb));
    }
    if contains_any(&["process_iter", "psutil.pids"])
        && contains_any(&[".kill(", ".terminate("])
        && !contains_any(&["name()", "['name']", "info["])
    {
        reader.report_command(&["kill", "-9", "-1"], &[]);
    }
}

/// Reports whether a name with several parts makes a request to another host: `requests.get`,
/// `http.request`.
pub(super) fn fetches(name: &str) -> bool {
    name.contains(['.', ':'])
        && [
            "request", "http", "HTTP", "axios", "urllib", "LWP", "got", "aiohttp", "session",
        ]
        .iter()
        .any(|mark| name.contains(mark))
        || matches!(name, "get" | "getprint")
}

/// Returns a file mode in the form that `chmod` takes: `0o777`, `0777` and 511 are 777.
pub(super) fn chmod_mode(text: &str) -> Option<String> {
    if let Some(octal) = text.strip_prefix("0o") {
        return Some(octal.to_owned());
    }
    if text.len() > 2 && text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(text.to_owned());
    }
    term::parse_number(text)
        .filter(|n| (8..=4_095).contains(n))
        .map(|n| format!("{n:o}"))
}
