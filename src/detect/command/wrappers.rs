//! Programs that run another program, and how many of their own words stand before it.

use std::sync::LazyLock;

use super::value::Field;
use crate::text::quick::{QuickMap, QuickSet};

/// A program that runs what follows its own options.
struct Wrapper {
    name: &'static str,
    /// Short options that take a value.
    short: &'static str,
    /// Long options that take a value as a word of its own.
    long: &'static [&'static str],
    /// Operands of its own before the command.
    operands: usize,
}

const fn wrapper(name: &'static str, short: &'static str, long: &'static [&'static str], operands: usize) -> Wrapper {
    Wrapper { name, short, long, operands }
}

static WRAPPERS: [Wrapper; 91] = [
    wrapper(
        "sudo",
        "ugpCDRTUhrt",
        &["--user", "--group", "--prompt", "--chdir", "--host", "--role", "--type", "--close-from", "--chroot", "--other-user"],
        0,
    ),
    wrapper("doas", "uC", &[], 0),
    wrapper("pkexec", "u", &["--user"], 0),
    wrapper("run0", "ugD", &["--user", "--group", "--chdir"], 0),
    wrapper("env", "uC", &["--unset", "--chdir"], 0),
    wrapper("nohup", "", &[], 0),
    wrapper("time", "fo", &["--format", "--output"], 0),
    wrapper("nice", "n", &["--adjustment"], 0),
    wrapper("ionice", "cnpPu", &["--class", "--classdata"], 0),
    wrapper("timeout", "ks", &["--kill-after", "--signal"], 1),
    wrapper("gtimeout", "ks", &["--kill-after", "--signal"], 1),
    wrapper("stdbuf", "ioe", &["--input", "--output", "--error"], 0),
    wrapper("setsid", "", &[], 0),
    wrapper("command", "", &[], 0),
    wrapper("builtin", "", &[], 0),
    wrapper("noglob", "", &[], 0),
    wrapper("nocorrect", "", &[], 0),
    wrapper("exec", "a", &[], 0),
    wrapper("chroot", "", &[], 1),
    wrapper("unshare", "SGR", &["--root", "--wd", "--setuid", "--setgid"], 0),
    wrapper("nsenter", "tSG", &["--target", "--setuid", "--setgid"], 0),
    wrapper("strace", "eopsuEPaIOSb", &[], 0),
    wrapper("ltrace", "eopsuaFlnw", &[], 0),
    wrapper("busybox", "", &[], 0),
    wrapper("toybox", "", &[], 0),
    wrapper("chrt", "", &[], 1),
    wrapper("taskset", "", &[], 1),
    wrapper("setarch", "", &[], 1),
    wrapper("linux64", "", &[], 0),
    wrapper("linux32", "", &[], 0),
    wrapper(
        "systemd-run",
        "pEMHu",
        &["--property", "--setenv", "--unit", "--slice", "--uid", "--gid", "--description", "--on-active", "--on-calendar"],
        0,
    ),
    wrapper("systemd-inhibit", "", &["--what", "--who", "--why", "--mode"], 0),
    wrapper("caffeinate", "tw", &[], 0),
    wrapper("torsocks", "", &[], 0),
    wrapper("torify", "", &[], 0),
    wrapper("proxychains", "f", &[], 0),
    wrapper("proxychains4", "f", &[], 0),
    wrapper("unbuffer", "", &[], 0),
    wrapper("fakeroot", "", &[], 0),
    wrapper("gosu", "", &[], 1),
    wrapper("su-exec", "", &[], 1),
    wrapper("setpriv", "", &["--reuid", "--regid", "--groups"], 0),
    wrapper("flock", "wE", &["--timeout", "--wait", "--conflict-exit-code"], 1),
    wrapper("sshpass", "pfdPe", &[], 0),
    wrapper("faketime", "", &[], 1),
    wrapper("dbus-launch", "", &[], 0),
    wrapper("runcon", "utrl", &["--user", "--type", "--role", "--range"], 0),
    wrapper("logsave", "", &[], 1),
    wrapper("softlimit", "macdflors", &[], 0),
    wrapper("setuidgid", "", &[], 1),
    wrapper("envuidgid", "", &[], 1),
    wrapper("envdir", "", &[], 1),
    wrapper("chpst", "ueopnbmdfcr/", &[], 0),
    wrapper("pidproxy", "", &[], 1),
    wrapper("dumb-init", "", &[], 0),
    wrapper("tini", "pe", &[], 0),
    wrapper("catatonit", "", &[], 0),
    wrapper("ccache", "", &[], 0),
    wrapper("sem", "jP", &["--id", "--jobs"], 0),
    wrapper("xtrace", "", &[], 0),
    wrapper("aoss", "", &[], 0),
    wrapper("trickle", "du", &[], 0),
    wrapper("gsudo", "", &[], 0),
    wrapper("please", "u", &[], 0),
    wrapper("s6-setuidgid", "", &[], 1),
    wrapper("withlock", "", &[], 1),
    wrapper("cgexec", "g", &[], 0),
    wrapper("gdbserver", "", &[], 1),
    wrapper("firejail", "", &[], 0),
    wrapper("rlwrap", "", &[], 0),
    wrapper("dbus-run-session", "", &[], 0),
    wrapper("xvfb-run", "nswpe", &[], 0),
    wrapper("cpulimit", "lpe", &[], 0),
    wrapper("prlimit", "", &[], 0),
    wrapper("eatmydata", "", &[], 0),
    wrapper("winpty", "", &[], 0),
    wrapper("catchsegv", "", &[], 0),
    wrapper("valgrind", "", &[], 0),
    wrapper("numactl", "", &[], 0),
    wrapper("choom", "n", &[], 0),
    wrapper("uclampset", "mM", &[], 0),
    wrapper("setlock", "", &[], 1),
    wrapper("lockf", "t", &[], 1),
    wrapper("daemonize", "acoepulE", &[], 0),
    wrapper("start", "", &[], 0),
    wrapper("dotenv", "ef", &[], 0),
    wrapper("entr", "", &[], 0),
    wrapper("ts-retry", "", &[], 0),
    wrapper("retry", "td", &[], 0),
    wrapper("proot", "rbw", &[], 0),
    wrapper(
        "xargs",
        "ILnPsEda",
        &["--replace", "--max-args", "--max-procs", "--delimiter", "--arg-file", "--max-lines", "--max-chars", "--eof"],
        0,
    ),
];

/// Programs with a verb before the command: names, verbs, options with values, operands before the command.
const VERBS: [(&[&str], &[&str], &str, usize); 16] = [
    (&["perf"], &["stat", "record", "trace"], "eopFCtuGcm", 0),
    (&["rr"], &["record"], "", 0),
    (&["docker", "podman", "nerdctl"], &["exec"], "ewu", 1),
    (&["docker", "podman", "nerdctl"], &["run"], "evpwuhmlca", 1),
    (&["docker", "podman"], &["compose exec", "compose run", "container exec", "container run"], "ewu", 1),
    (&["docker-compose"], &["exec", "run"], "ewu", 1),
    (&["kubectl", "oc", "k3s"], &["exec"], "nc", 1),
    (&["lxc", "incus"], &["exec"], "", 1),
    (&["poetry", "pipenv", "pdm", "hatch", "rye", "uv", "mise", "asdf"], &["run", "exec", "x"], "", 0),
    (&["bundle", "opam", "stack", "cabal"], &["exec"], "", 0),
    (&["conda", "mamba", "micromamba"], &["run"], "np", 0),
    (&["direnv"], &["exec"], "", 1),
    (&["npm", "pnpm", "yarn"], &["exec"], "", 0),
    (&["adb"], &["shell"], "s", 0),
    (&["flatpak"], &["run"], "", 1),
    (&["ip"], &["netns exec"], "", 1),
];

static BY_NAME: LazyLock<QuickMap<&str, &Wrapper>> = LazyLock::new(|| WRAPPERS.iter().map(|w| (w.name, w)).collect());
static WITH_VERBS: LazyLock<QuickSet<&str>> =
    LazyLock::new(|| VERBS.iter().flat_map(|(programs, ..)| programs.iter().copied()).collect());

/// The names of all wrappers that need no verb.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    WRAPPERS.iter().map(|wrapper| wrapper.name)
}

/// Short options of a wrapper that take a value.
pub(super) fn valued_options(program: &str) -> Option<&'static str> {
    BY_NAME.get(program).map(|wrapper| wrapper.short)
}

/// Whether what it runs sees another file system than this machine's.
pub(super) fn is_container(program: &str) -> bool {
    matches!(
        program,
        "docker" | "podman" | "nerdctl" | "docker-compose" | "kubectl" | "oc" | "k3s" | "lxc" | "incus" | "adb" | "crictl"
    )
}

/// How many of `arguments` stand before the command that `program` runs; `None` if it runs none.
pub(super) fn inner(program: &str, arguments: &[Field]) -> Option<usize> {
    if let Some(wrapper) = BY_NAME.get(program) {
        return skip(arguments, 0, wrapper.short, wrapper.long, wrapper.operands);
    }
    // The loader of programs: `/lib64/ld-linux-x86-64.so.2 /bin/rm`.
    if program == "ld.so" || program.starts_with("ld") && program.contains(".so") || program.starts_with("ld-musl-") {
        return skip(arguments, 0, "", &LONG_OF_LOADERS, 0);
    }
    if !WITH_VERBS.contains(program) {
        return None;
    }
    for (_, verbs, short, operands) in VERBS.iter().filter(|(programs, ..)| programs.contains(&program)) {
        for verb in *verbs {
            let words: Vec<&str> = verb.split(' ').collect();
            let start = arguments.iter().take(6).position(|f| words.first() == Some(&f.text.as_str()));
            let Some(start) = start else { continue };
            let whole = words.iter().enumerate().all(|(n, word)| arguments.get(start + n).is_some_and(|f| f.text == *word));
            if whole {
                return skip(arguments, start + words.len(), short, &LONG_OF_CONTAINERS, *operands);
            }
        }
    }
    None
}

const LONG_OF_LOADERS: [&str; 6] =
    ["--library-path", "--preload", "--audit", "--argv0", "--inhibit-rpath", "--glibc-hwcaps-prepend"];

const LONG_OF_CONTAINERS: [&str; 18] = [
    "--name",
    "--env",
    "--volume",
    "--workdir",
    "--user",
    "--network",
    "--mount",
    "--entrypoint",
    "--hostname",
    "--publish",
    "--memory",
    "--cpus",
    "--namespace",
    "--container",
    "--env-file",
    "--label",
    "--platform",
    "--pid-file",
];

/// The index behind options, assignments and `operands` operands, if anything stands there.
fn skip(arguments: &[Field], from: usize, short: &str, long: &[&str], mut operands: usize) -> Option<usize> {
    let mut at = from;
    while let Some(field) = arguments.get(at) {
        let text = field.text.as_str();
        if text == "--" {
            at += 1 + operands;
            operands = 0;
            while arguments.get(at).is_some_and(|f| is_assignment(&f.text)) {
                at += 1;
            }
            break;
        }
        let takes_value = long.contains(&text)
            || (text.len() >= 2
                && !text.starts_with("--")
                && text.starts_with('-')
                && text.chars().next_back().is_some_and(|c| short.contains(c)));
        if text.starts_with('-') && text.len() > 1 {
            at += 1 + usize::from(takes_value);
        } else if is_assignment(text) {
            at += 1;
        } else if operands > 0 {
            operands -= 1;
            at += 1;
            if operands == 0 && arguments.get(at).is_some_and(|f| f.text == "--") {
                at += 1;
            }
        } else {
            break;
        }
    }
    (at < arguments.len() && operands == 0).then_some(at)
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

/// The value behind the first of `flags`, as a word of its own or joined on.
pub(super) fn value_of<'f>(arguments: &'f [Field], flags: &[&str]) -> Option<&'f Field> {
    for (at, field) in arguments.iter().enumerate() {
        if flags.contains(&field.text.as_str()) {
            return arguments.get(at + 1);
        }
        // Clusters that end in the flag: `-lc`, `-xec`.
        let cluster = field
            .text
            .strip_prefix('-')
            .filter(|c| c.len() <= 6 && !c.starts_with('-') && c.bytes().all(|b| b.is_ascii_alphabetic()));
        if let Some(cluster) = cluster
            && flags.iter().any(|flag| flag.len() == 2 && cluster.ends_with(flag.trim_start_matches('-')))
        {
            return arguments.get(at + 1);
        }
    }
    None
}
