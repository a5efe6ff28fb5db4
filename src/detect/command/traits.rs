//! What is known of programs: who fetches, who sends, who only names files.

use std::sync::LazyLock;

use super::value::Field;
use crate::text::quick::QuickMap;

/// What is known of a program, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traits(u16);

impl Traits {
    /// Brings in what another host serves.
    pub(super) const FETCHES: Self = Self(1);
    /// Sends what it reads on its standard input.
    pub(super) const SENDS_STREAM: Self = Self(2);
    /// Sends the files that it is told to send, if some operand is another host.
    pub(super) const SENDS_FILES: Self = Self(4);
    /// Names files without showing what is in them.
    pub(super) const NAMES: Self = Self(8);
    /// Writes to its last operand.
    pub(super) const COPIES: Self = Self(16);
    /// Writes to every operand.
    pub(super) const WRITES: Self = Self(32);
    /// May pass on, or make, text that was encoded: see [`decodes`].
    pub(super) const DECODES: Self = Self(64);
    /// Connects to the hosts among its operands.
    pub(super) const CONNECTS: Self = Self(128);

    /// Takes text that it does not run, whatever its options are called.
    pub(super) const TAKES_TEXT: Self = Self(256);

    /// What is known of the program of this name.
    pub(super) fn of(program: &str) -> Self {
        TRAITS.get(program).copied().unwrap_or_default()
    }

    /// Both sets in one.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it has one of the traits of `other`.
    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

static TRAITS: LazyLock<QuickMap<&'static str, Traits>> = LazyLock::new(|| {
    let mut map = QuickMap::default();
    let lists: [(&[&'static str], Traits); 8] = [
        (&FETCHERS, Traits::FETCHES),
        (&STREAM_SENDERS, Traits::SENDS_STREAM),
        (&FILE_SENDERS, Traits::SENDS_FILES),
        (&NAMERS, Traits::NAMES),
        (&COPIERS, Traits::COPIES),
        (&WRITERS, Traits::WRITES),
        (&CONNECTORS, Traits::CONNECTS),
        (&TEXT_TAKERS, Traits::TAKES_TEXT),
    ];
    for (programs, known) in lists {
        for program in programs {
            map.entry(*program).or_insert_with(Traits::default).0 |= known.0;
        }
    }
    for (program, _) in DECODERS {
        map.entry(program).or_insert_with(Traits::default).0 |= Traits::DECODES.0;
    }
    map
});

/// Whether a program that may decode is told to.
pub(super) fn decodes(program: &str, arguments: &[Field]) -> bool {
    let short = |text: &str, flag: &str| {
        let letter = flag.strip_prefix('-').filter(|letter| letter.len() == 1);
        text.len() > 2 && text.starts_with('-') && !text.starts_with("--") && letter.is_some_and(|letter| text.ends_with(letter))
    };
    DECODERS.iter().filter(|(name, _)| *name == program).any(|(_, flags)| {
        flags.is_empty() || arguments.iter().any(|a| flags.iter().any(|flag| a.text == *flag || short(&a.text, flag)))
    })
}

/// Programs that take texts which mention commands, and the shell's own words that are read elsewhere.
const TEXT_TAKERS: [&str; 65] = [
    "echo",
    "printf",
    "grep",
    "egrep",
    "fgrep",
    "zgrep",
    "rg",
    "ag",
    "ack",
    "pgrep",
    "gh",
    "glab",
    "jq",
    "yq",
    "cat",
    "logger",
    "wall",
    "notify-send",
    "say",
    "mail",
    "mailx",
    "mutt",
    "sendmail",
    "figlet",
    "toilet",
    "cowsay",
    "which",
    "type",
    "whereis",
    "apropos",
    "whatis",
    "man",
    "info",
    "tldr",
    "test",
    "[",
    "[[",
    "expr",
    "export",
    "alias",
    "declare",
    "local",
    "readonly",
    "typeset",
    "unset",
    "true",
    "false",
    ":",
    "sed",
    "gsed",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "trap",
    "eval",
    "source",
    ".",
    "cd",
    "ls",
    "diff",
    "wc",
    "sort",
    "curl",
    "shellcheck",
];

/// Programs that connect to the hosts among their operands, beside those that fetch or send.
const CONNECTORS: [&str; 14] = [
    "ping",
    "ping6",
    "traceroute",
    "tracepath",
    "mtr",
    "nmap",
    "mosh",
    "rsh",
    "autossh",
    "sshpass",
    "whois",
    "host",
    "rdesktop",
    "nping",
];

/// Programs that bring in what another host serves.
const FETCHERS: [&str; 37] = [
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
    "lwp-download",
    "lwp-mirror",
    "lwp-rget",
    "links2",
    "telnet",
    "socat",
    "tftp",
    "lftp",
    "lftpget",
    "ncftpget",
    "httrack",
    "saldl",
    "snarf",
];

/// Programs that send what they read on their standard input to another host.
const STREAM_SENDERS: [&str; 24] = [
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
const FILE_SENDERS: [&str; 22] = [
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
const NAMERS: [&str; 58] = [
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
const COPIERS: [&str; 10] = ["cp", "mv", "install", "ln", "rsync", "scp", "rename", "link", "ditto", "gcp"];

/// Programs that write to every operand.
const WRITERS: [&str; 8] = ["tee", "truncate", "sponge", "ed", "ex", "mkswap", "vipw", "split"];

/// Programs that pass on, or make, text that was encoded, with the flag that says so (none: always).
const DECODERS: [(&str, &[&str]); 19] = [
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
