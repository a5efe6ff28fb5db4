//! Paths as the file system resolves them, and the classes that rules name them by.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::glob;

/// Classes of paths, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Classes(u32);

impl Classes {
    pub(super) const NONE: Self = Self(0);

    /// The set that holds the class of this name only.
    pub(super) fn named(name: &str) -> Option<Self> {
        CLASSES.iter().position(|(known, _)| *known == name).map(|at| Self(1 << at))
    }

    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        CLASSES.iter().map(|(name, _)| *name)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn join(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Each class and its patterns, over normalised paths: `~` is any user's home, `*` and `?` stay within a
/// component, a last `**` is anything below (or the folder itself), a first `**` is any folder.
const CLASSES: [(&str, &[&str]); 19] = [
    ("root", &["/", "/*$", "?:", "?:/*$"]),
    ("home", &["~", "~/*$", "/home", "/home/*$", "/Users", "/Users/*$", "c:/users", "c:/users/*$"]),
    (
        "system",
        &[
            "/bin",
            "/bin/*",
            "/boot",
            "/boot/*",
            "/dev",
            "/dev/*",
            "/etc",
            "/etc/*",
            "/lib",
            "/lib/*",
            "/lib32",
            "/lib64",
            "/lib64/*",
            "/opt",
            "/opt/*$",
            "/proc",
            "/proc/*$",
            "/run",
            "/run/*$",
            "/sbin",
            "/sbin/*",
            "/srv",
            "/srv/*$",
            "/sys",
            "/sys/*$",
            "/usr",
            "/usr/*$",
            "/usr/bin",
            "/usr/bin/*",
            "/usr/lib",
            "/usr/lib/*$",
            "/usr/lib64",
            "/usr/sbin",
            "/usr/sbin/*",
            "/usr/local",
            "/usr/local/*$",
            "/usr/local/bin",
            "/usr/local/lib",
            "/usr/share",
            "/usr/share/*$",
            "/usr/include",
            "/usr/libexec",
            "/var",
            "/var/*$",
            "/var/lib",
            "/var/lib/*$",
            "/var/lib/dpkg",
            "/var/lib/docker",
            "/var/lib/mysql",
            "/var/lib/postgresql",
            "/var/log",
            "/var/www",
            "/var/spool",
            "/var/mail",
            "/var/backups",
            "/etc/ssh",
            "/etc/ssl",
            "/etc/pam.d",
            "/etc/systemd",
            "/System",
            "/System/**",
            "/Library",
            "/Applications",
            "/Applications/*$",
            "/private",
            "/private/etc",
            "/private/var",
            "/Volumes",
            "/Volumes/*$",
            "/mnt",
            "/mnt/*$",
            "/media",
            "/media/*$",
            "/snap",
            "/nix",
            "/nix/store",
            "/efi",
            "/boot/efi/**",
            "?:/windows/**",
            "?:/program files*/**",
            "?:/programdata",
            "?:/users",
            "?:/recovery/**",
        ],
    ),
    ("etc", &["/etc/**"]),
    (
        "binary",
        &[
            "/bin/*",
            "/sbin/*",
            "/usr/bin/*",
            "/usr/sbin/*",
            "/usr/local/bin/*",
            "/usr/local/sbin/*",
            "/lib/**",
            "/usr/lib/**",
            "/boot/**",
        ],
    ),
    (
        "device",
        &[
            "/dev/sd*",
            "/dev/hd*",
            "/dev/vd*",
            "/dev/xvd*",
            "/dev/nvme*",
            "/dev/mmcblk*",
            "/dev/disk/**",
            "/dev/disk*",
            "/dev/rdisk*",
            "/dev/mapper/**",
            "/dev/dm-*",
            "/dev/md*",
            "/dev/ram*",
            "/dev/zd*",
            "/dev/nbd*",
            "/dev/mtd*",
            "/dev/mem",
            "/dev/kmem",
            "/dev/port",
            "/dev/block/**",
            "/dev/drbd*",
            "/dev/bcache*",
        ],
    ),
    ("null-device", &["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/full"]),
    (
        "accounts",
        &[
            "/etc/passwd",
            "/etc/passwd-",
            "/etc/shadow",
            "/etc/shadow-",
            "/etc/gshadow",
            "/etc/gshadow-",
            "/etc/group",
            "/etc/group-",
            "/etc/master.passwd",
            "/etc/sudoers",
            "/etc/sudoers.d",
            "/etc/sudoers.d/*",
            "/etc/doas.conf",
            "/etc/pam.d/**",
            "/etc/pam.conf",
            "/etc/security/**",
            "/etc/subuid",
            "/etc/subgid",
            "/etc/nsswitch.conf",
            "/etc/polkit-1/**",
            "/etc/login.defs",
        ],
    ),
    (
        "credential",
        &[
            "**/etc/shadow",
            "**/etc/shadow-",
            "**/etc/gshadow",
            "**/etc/gshadow-",
            "/etc/master.passwd",
            "/etc/security/opasswd",
            "/etc/sudoers",
            "/etc/krb5.keytab",
            "/etc/ssh/ssh_host_*_key",
            "/etc/ipsec.secrets",
            "/etc/ppp/*-secrets",
            "/etc/ssl/private/**",
            "/etc/kubernetes/admin.conf",
            "/etc/kubernetes/pki/**",
            "/etc/rancher/k3s/k3s.yaml",
            "/etc/openvpn/**",
            "/etc/wireguard/**",
            "/etc/NetworkManager/system-connections/**",
            "**/.ssh",
            "**/.ssh/id_*",
            "**/.ssh/*_key",
            "**/.ssh/*.pem",
            "**/.ssh/identity",
            "**/.ssh/*",
            "**/id_rsa",
            "**/id_dsa",
            "**/id_ecdsa",
            "**/id_ed25519",
            "**/.gnupg",
            "**/.gnupg/**",
            "**/.aws",
            "**/.aws/credentials",
            "**/.aws/config",
            "**/.aws/sso/**",
            "**/.aws/cli/cache/**",
            "**/.azure",
            "**/.azure/**",
            "**/.config/gcloud",
            "**/.config/gcloud/**",
            "**/.kube",
            "**/.kube/config",
            "**/.docker/config.json",
            "**/.netrc",
            "**/_netrc",
            "**/.npmrc",
            "~/.pypirc",
            "**/.pypirc",
            "**/.git-credentials",
            "**/.config/git/credentials",
            "**/.config/gh/hosts.yml",
            "**/.config/hub",
            "**/.config/glab-cli/**",
            "**/.vault-token",
            "**/.terraform.d/credentials.tfrc.json",
            "**/.terraformrc",
            "**/.pgpass",
            "**/.my.cnf",
            "**/.mylogin.cnf",
            "**/.s3cfg",
            "**/.boto",
            "**/.dockercfg",
            "**/.htpasswd",
            "**/.cargo/credentials",
            "**/.cargo/credentials.toml",
            "**/.gem/credentials",
            "**/.m2/settings.xml",
            "**/.gradle/gradle.properties",
            "**/.config/doctl/**",
            "**/.config/rclone/rclone.conf",
            "**/.oci/**",
            "**/.bluemix/**",
            "**/.databrickscfg",
            "**/.snowsql/config",
            "**/.huggingface/token",
            "**/.cache/huggingface/token",
            "**/.config/op/**",
            "**/.password-store",
            "**/.password-store/**",
            "**/.local/share/keyrings/**",
            "**/Library/Keychains",
            "**/Library/Keychains/**",
            "**/.electrum/**",
            "**/.bitcoin/wallet.dat",
            "**/wallet.dat",
            "**/key3.db",
            "**/key4.db",
            "**/logins.json",
            "**/.mozilla/firefox/**",
            "**/Login Data",
            "**/.claude/.credentials.json",
            "**/.codex/auth.json",
            "**/.config/github-copilot/**",
            "/var/run/secrets/**",
            "/run/secrets/**",
            "/proc/*/environ",
            "/proc/*/mem",
            "/proc/kcore",
            "/var/lib/kubelet/pki/**",
            "**/.rhosts",
            "**/ntds.dit",
            "**/config/sam",
            "**/config/security",
            "**/config/system",
            "**/.remmina/**",
            "**/.config/filezilla/**",
            "**/.config/remmina/**",
            "**/.subversion/auth/**",
            "**/.fetchmailrc",
            "**/.msmtprc",
            "**/.ansible/vault*",
            "**/.config/solana/id.json",
            "**/.ethereum/keystore/**",
            "**/unattend.xml",
        ],
    ),
    (
        "personal",
        &[
            "~",
            "~/*$",
            "/home",
            "/home/*$",
            "/Users",
            "/var/mail/**",
            "**/.bash_history",
            "**/.zsh_history",
            "**/.Mail/**",
            "~/Documents",
            "~/Desktop",
            "~/Pictures",
            "**/.thunderbird/**",
            "/etc",
            "/etc/passwd",
            "/var/backups/**",
        ],
    ),
    (
        "history",
        &[
            "**/.bash_history",
            "**/.zsh_history",
            "**/.zhistory",
            "**/.sh_history",
            "**/.ash_history",
            "**/.ksh_history",
            "**/.history",
            "**/.python_history",
            "**/.mysql_history",
            "**/.psql_history",
            "**/.node_repl_history",
            "**/.rediscli_history",
            "**/.lesshst",
            "**/.viminfo",
            "**/fish_history",
            "**/.local/share/fish/fish_history",
            "**/consolehost_history.txt",
            "**/.wget-hsts",
            "**/.tcsh_history",
        ],
    ),
    (
        "startup",
        &[
            "~/.bashrc",
            "~/.bash_profile",
            "~/.bash_login",
            "~/.bash_logout",
            "~/.bash_aliases",
            "~/.profile",
            "~/.zshrc",
            "~/.zshenv",
            "~/.zprofile",
            "~/.zlogin",
            "~/.kshrc",
            "~/.cshrc",
            "~/.tcshrc",
            "~/.login",
            "~/.xinitrc",
            "~/.xprofile",
            "~/.xsession",
            "~/.xsessionrc",
            "~/.inputrc",
            "~/.config/fish/**",
            "~/.config/autostart/**",
            "/etc/profile",
            "/etc/profile.d/**",
            "/etc/bash.bashrc",
            "/etc/bashrc",
            "/etc/zshrc",
            "/etc/zshenv",
            "/etc/zsh/**",
            "/etc/environment",
            "/etc/skel/**",
            "/etc/rc.local",
            "/etc/rc.d/**",
            "/etc/rc*.d/**",
            "/etc/update-motd.d/**",
            "/etc/xdg/autostart/**",
            "/etc/csh.*",
            "~/.pam_environment",
            "~/.ssh/rc",
            "/etc/ssh/sshrc",
        ],
    ),
    (
        "authorized-keys",
        &[
            "**/.ssh/authorized_keys",
            "**/.ssh/authorized_keys2",
            "/etc/ssh/authorized_keys",
            "/etc/ssh/authorized_keys/**",
            "/etc/ssh/sshd_config",
            "/etc/ssh/sshd_config.d/**",
        ],
    ),
    (
        "cron",
        &[
            "/etc/crontab",
            "/etc/cron.*/**",
            "/etc/cron.*",
            "/etc/anacrontab",
            "/var/spool/cron/**",
            "/var/spool/cron",
            "/var/spool/at/**",
            "/var/at/**",
            "/etc/cron.allow",
        ],
    ),
    (
        "service",
        &[
            "/etc/systemd/system/**",
            "/etc/systemd/user/**",
            "/lib/systemd/**",
            "/usr/lib/systemd/**",
            "/run/systemd/system/**",
            "~/.config/systemd/**",
            "/etc/init.d/**",
            "/etc/init/**",
            "/etc/inittab",
            "/etc/xinetd.d/**",
            "~/Library/LaunchAgents/**",
            "/Library/LaunchAgents/**",
            "/Library/LaunchDaemons/**",
            "/System/Library/LaunchDaemons/**",
            "/etc/udev/rules.d/**",
            "/lib/udev/rules.d/**",
            "/etc/modules-load.d/**",
            "/etc/modprobe.d/**",
            "/etc/modules",
            "/etc/apt/apt.conf.d/**",
            "/etc/emond.d/**",
            "/etc/NetworkManager/dispatcher.d/**",
            "/etc/network/if-up.d/**",
        ],
    ),
    ("loader", &["/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/ld.so.conf.d/**"]),
    (
        "log",
        &[
            "/var/log",
            "/var/log/**",
            "/var/run/utmp",
            "/run/utmp",
            "/var/audit/**",
            "/var/account/**",
            "/private/var/log/**",
            "~/Library/Logs",
        ],
    ),
    (
        "kernel",
        &[
            "/proc/sys/**",
            "/proc/sysrq-trigger",
            "/sys/kernel/**",
            "/sys/power/**",
            "/sys/fs/**",
            "/sys/firmware/**",
            "/sys/module/**",
            "/boot/**",
            "/proc/*/mem",
        ],
    ),
    (
        "env-file",
        &[
            "**/.env",
            "**/.env.*",
            "**/.envrc",
            "**/secrets.y*ml",
            "**/credentials.json",
            "**/*.pem",
            "**/*.p12",
            "**/*.pfx",
            "**/*.kdbx",
            "**/*.key",
            "**/*.jks",
            "**/*.keystore",
            "**/service-account*.json",
            "**/.secrets",
        ],
    ),
];

type Patterns = Vec<(Vec<&'static str>, Classes)>;

/// Patterns by their first component; those that may start anywhere under `**`.
static BY_FIRST: LazyLock<HashMap<&'static str, Patterns>> = LazyLock::new(|| {
    let mut map: HashMap<&'static str, Patterns> = HashMap::new();
    for (at, (_, patterns)) in CLASSES.iter().enumerate() {
        for pattern in *patterns {
            let parts: Vec<&str> = pattern.trim_start_matches('/').split('/').collect();
            let first = match parts.first() {
                Some(first) if !first.contains(['*', '?']) || *first == "**" => first,
                _ => "*",
            };
            map.entry(first).or_default().push((parts, Classes(1 << at)));
        }
    }
    map
});

/// Every path a pattern names outright: what a glob in a command may stand for.
static WELL_KNOWN: LazyLock<Vec<String>> = LazyLock::new(|| {
    let plain =
        CLASSES.iter().flat_map(|(_, patterns)| patterns.iter()).filter(|p| !p.contains(['*', '?']) && p.starts_with(['/', '~']));
    let hidden = [
        "~/.ssh/id_rsa",
        "~/.ssh/id_ed25519",
        "~/.aws/credentials",
        "~/.netrc",
        "~/.kube/config",
        "/dev/sda",
        "/dev/nvme0n1",
        "/etc/shadow",
        "~/.bash_history",
    ];
    plain.map(|p| (*p).to_owned()).chain(hidden.map(String::from)).collect()
});

/// A path in one form: home as `~`, no `//`, `.` or `..`, no end slash; `/*` and its kin as `*`.
/// `None` if the text is not a path that is worth a look.
pub(super) fn normal(text: &str, folder: Option<&str>) -> Option<String> {
    let text = text.strip_prefix("file://").unwrap_or(text);
    if text.is_empty() || text.len() > 4096 || text.contains("://") || text.starts_with('-') {
        return None;
    }
    let mut text = text.replace('\\', "/");
    let drive = text.get(1..2) == Some(":") && text.starts_with(|c: char| c.is_ascii_alphabetic());
    if drive {
        text = text.to_ascii_lowercase();
    }
    let rooted = text.starts_with(['/', '~']) || drive;
    if !rooted && let Some(folder) = folder {
        text = format!("{folder}/{text}");
    }
    let climbs = !rooted && text.starts_with("../");
    let mut parts: Vec<&str> = Vec::new();
    let mut climbed = 0;
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    climbed += 1;
                }
            }
            part => parts.push(part),
        }
    }
    // Any process's root or folder may be the root.
    while let ["proc", _, "root" | "cwd", ..] = parts.as_slice() {
        parts.drain(..3);
    }
    if let Some(last) = parts.last_mut()
        && last.chars().all(|c| matches!(c, '*' | '?' | '.' | '[' | ']' | '!' | '^'))
        && last.contains(['*', '?'])
    {
        *last = "*";
    }
    let absolute = text.starts_with('/')
        || (climbs
            && climbed >= 2
            && parts.first().is_some_and(|p| matches!(*p, "etc" | "root" | "home" | "var" | "proc" | "usr" | "dev")));
    let joined = match (absolute, parts.as_slice()) {
        (true, ["root", rest @ ..]) | (true, ["home" | "Users", _, rest @ ..])
            if !matches!(parts.as_slice(), ["home" | "Users", "*"]) =>
        {
            home(rest)
        }
        (true, ["var", "root", rest @ ..] | ["private", "var", "root", rest @ ..]) => home(rest),
        (true, parts) => format!("/{}", parts.join("/")),
        (false, [first, rest @ ..]) if first.starts_with('~') => home(rest),
        (false, parts) => parts.join("/"),
    };
    Some(joined)
}

fn home(rest: &[&str]) -> String {
    if rest.is_empty() { "~".to_owned() } else { format!("~/{}", rest.join("/")) }
}

/// The classes of a normalised path.
pub(super) fn classes(path: &str) -> Classes {
    let mut found = Classes::NONE;
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let absolute = path.starts_with(['/', '~']) || path.get(1..2) == Some(":");
    let first = parts.first().copied().unwrap_or("");
    for key in [first, "*"] {
        if absolute && let Some(patterns) = BY_FIRST.get(key) {
            for (pattern, class) in patterns {
                if !found.meets(*class) && fits(pattern, &parts) {
                    found = found.join(*class);
                }
            }
        }
    }
    if let Some(patterns) = BY_FIRST.get("**") {
        for (pattern, class) in patterns {
            if found.meets(*class) {
                continue;
            }
            let tail = pattern.get(1..).unwrap_or_default();
            let open_end = tail.last() == Some(&"**");
            let fixed = tail.len() - usize::from(open_end);
            // Anchored at its end, or for an open one at any folder whose name is the pattern's first.
            let starts =
                if open_end { 0..parts.len() } else { parts.len().saturating_sub(fixed)..parts.len().saturating_sub(fixed) + 1 };
            if starts.into_iter().take(64).any(|start| parts.get(start..).is_some_and(|rest| fits(tail, rest))) {
                found = found.join(*class);
            }
        }
    }
    // What is public or merely listed among the keys.
    if let Some(last) = parts.last()
        && (last.ends_with(".pub")
            || matches!(
                *last,
                "known_hosts"
                    | "known_hosts.old"
                    | "authorized_keys"
                    | "authorized_keys2"
                    | ".env.example"
                    | ".env.sample"
                    | ".env.template"
                    | ".env.test"
                    | ".env.dist"
            )
            || (parts.contains(&".ssh") && *last == "config"))
        && let Some(secret) = Classes::named("credential").zip(Classes::named("env-file")).map(|(a, b)| a.join(b))
    {
        found = Classes(found.0 & !secret.0);
    }
    found
}

fn fits(pattern: &[&str], parts: &[&str]) -> bool {
    for (at, wanted) in pattern.iter().enumerate() {
        if *wanted == "**" {
            return true;
        }
        let Some(part) = parts.get(at) else { return false };
        // `*$` takes a bare star in the command only: the folder's whole content, not one thing in it.
        let same = match *wanted {
            "*$" => *part == "*",
            wanted if wanted.contains(['*', '?']) => glob::matches(wanted, part),
            wanted => wanted == *part,
        };
        if !same {
            return false;
        }
    }
    pattern.len() == parts.len()
}

/// Whether a path fits a rule's own glob (`/etc/foo*`, `**/x`, `/boot/**`).
pub(super) fn fits_glob(pattern: &str, path: &str) -> bool {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match pattern.strip_prefix("**/") {
        Some(tail) => {
            let tail: Vec<&str> = tail.split('/').collect();
            parts.len() >= tail.len() && parts.get(parts.len() - tail.len()..).is_some_and(|rest| fits(&tail, rest))
        }
        None => {
            let pattern_parts: Vec<&str> = pattern.trim_start_matches('/').split('/').collect();
            pattern.starts_with('/') == path.starts_with('/') && fits(&pattern_parts, &parts)
        }
    }
}

/// The well-known path that a glob stands for, if it spells enough of it to mean it.
pub(super) fn resolve_glob(path: &str) -> Option<&'static str> {
    let spelt = path.chars().filter(|c| c.is_alphanumeric()).count();
    if !path.starts_with(['/', '~']) || path.ends_with("/*") || spelt == 0 && !path.contains("???") {
        return None;
    }
    WELL_KNOWN
        .iter()
        .find(|known| {
            let same_depth = known.matches('/').count() == path.matches('/').count();
            same_depth && !(known.len() < 6) && glob::matches(path, known)
        })
        .map(String::as_str)
}
