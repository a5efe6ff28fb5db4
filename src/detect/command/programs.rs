//! What is known of programs: who runs what it is given, who fetches, who sends, who only names files.

/// Languages that a program runs, as far as their code is looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    Shell,
    /// PowerShell or cmd.exe.
    Windows,
    Code,
}

/// What a program runs, if it is an interpreter.
pub(super) fn interpreter(program: &str) -> Option<Runs> {
    let base = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match base {
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "mksh" | "ash" | "csh" | "tcsh" | "fish" | "rbash" | "yash" | "ksh93"
        | "pdksh" | "oksh" | "elvish" | "nu" | "xonsh" | "osh" => Some(Runs::Shell),
        "pwsh" | "powershell" | "cmd" | "powershell_ise" => Some(Runs::Windows),
        "python" | "pypy" | "python3" | "python2" | "ipython" | "perl" | "ruby" | "node" | "nodejs" | "deno" | "bun" | "php"
        | "lua" | "luajit" | "tclsh" | "wish" | "expect" | "awk" | "gawk" | "mawk" | "nawk" | "osascript" | "Rscript"
        | "julia" | "groovy" | "jjs" | "jrunscript" | "guile" | "gdb" | "irb" | "jshell" | "swift" | "elixir" | "erl"
        | "octave" | "ts-node" | "tsx" | "raku" | "sbcl" | "ghci" | "runghc" | "scala" | "crystal" | "wscript" | "cscript"
        | "mshta" => Some(Runs::Code),
        _ => None,
    }
}

/// Programs that bring in what another host serves.
pub(super) const FETCHERS: [&str; 24] = [
    "curl",
    "wget",
    "fetch",
    "aria2c",
    "axel",
    "lynx",
    "links",
    "elinks",
    "w3m",
    "http",
    "https",
    "httpie",
    "xh",
    "GET",
    "lwp-request",
    "curlie",
    "nc",
    "ncat",
    "netcat",
    "dig",
    "nslookup",
    "drill",
    "wget2",
    "ftp",
];

/// Programs that send what they read on their standard input to another host.
pub(super) const STREAM_SENDERS: [&str; 24] = [
    "nc",
    "ncat",
    "netcat",
    "nc.openbsd",
    "nc.traditional",
    "socat",
    "telnet",
    "openssl",
    "ssh",
    "mail",
    "mailx",
    "sendmail",
    "mutt",
    "swaks",
    "curl",
    "http",
    "https",
    "xh",
    "wormhole",
    "croc",
    "websocat",
    "ftp",
    "logger",
    "gsocket",
];

/// Programs that send the files they are told to send, if some operand is another host.
pub(super) const FILE_SENDERS: [&str; 22] = [
    "scp",
    "rsync",
    "sftp",
    "rclone",
    "aws",
    "gsutil",
    "gcloud",
    "az",
    "azcopy",
    "s3cmd",
    "mc",
    "lftp",
    "ftp",
    "tftp",
    "ncftpput",
    "smbclient",
    "croc",
    "wormhole",
    "transfer",
    "magic-wormhole",
    "curl",
    "wget",
];

/// Programs that name files without showing what is in them.
pub(super) const NAMERS: [&str; 58] = [
    "ls",
    "ll",
    "dir",
    "stat",
    "file",
    "chmod",
    "chown",
    "chgrp",
    "chattr",
    "lsattr",
    "setfacl",
    "getfacl",
    "test",
    "[",
    "[[",
    "mkdir",
    "touch",
    "rm",
    "rmdir",
    "unlink",
    "shred",
    "ssh",
    "ssh-add",
    "ssh-keygen",
    "ssh-copy-id",
    "echo",
    "printf",
    "export",
    "cd",
    "pushd",
    "which",
    "type",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "kubectl",
    "helm",
    "docker",
    "podman",
    "ansible",
    "ansible-playbook",
    "terraform",
    "umask",
    "du",
    "df",
    "tree",
    "find",
    "fd",
    "restorecon",
    "alias",
    "unset",
    "sftp",
    "mount",
    "umount",
    "git",
    "sudoedit",
    "visudo",
];

/// Programs whose last operand is where they write.
pub(super) const COPIERS: [&str; 10] = ["cp", "mv", "install", "ln", "rsync", "scp", "rename", "link", "ditto", "gcp"];

/// Programs that write to every operand.
pub(super) const WRITERS: [&str; 8] = ["tee", "truncate", "sponge", "ed", "ex", "mkswap", "vipw", "split"];

/// Programs that pass on, or make, text that was encoded, with the flag that says so (none: always).
pub(super) const DECODERS: [(&str, &[&str]); 19] = [
    ("base64", &["-d", "-D", "--decode", "-di"]),
    ("base32", &["-d", "-D", "--decode"]),
    ("basenc", &["-d", "--decode"]),
    ("gbase64", &["-d", "--decode"]),
    ("xxd", &["-r", "-revert"]),
    ("openssl", &["-d"]),
    ("uudecode", &[]),
    ("rev", &[]),
    ("zcat", &[]),
    ("gunzip", &[]),
    ("bzcat", &[]),
    ("xzcat", &[]),
    ("gzip", &["-d", "--decompress", "-dc", "-cd"]),
    ("bzip2", &["-d", "-dc", "-cd"]),
    ("xz", &["-d", "-dc", "-cd"]),
    ("gpg", &["-d", "--decrypt"]),
    ("unhex", &[]),
    ("ascii85", &["-d"]),
    ("b64decode", &[]),
];
