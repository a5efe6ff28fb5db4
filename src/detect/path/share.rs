//! Shares of other machines: `\\\\host\\share\\x`. Windows authenticates to any host that a path
//! names, and sends it a hash of the user's password.

/// Administrative shares, which open a whole drive or the machine.
const ADMINISTRATIVE_SHARES: [&str; 3] = ["admin$", "ipc$", "print$"];
/// Suffixes of names that exist only in a private network.
const PRIVATE_SUFFIXES: [&str; 6] = [
    ".local",
    ".internal",
    ".lan",
    ".corp",
    ".home",
    ".localhost",
];

/// Reports whether a path is on a share of an external host, or on an administrative share.
pub(super) fn is_foreign(path: &str) -> bool {
    let Some(rest) = path.trim_start().strip_prefix("\\\\") else {
        return false;
    };
    let unc = rest.get(..6).filter(|start| {
        start.eq_ignore_ascii_case("?\\unc\\") || start.eq_ignore_ascii_case(".\\unc\\")
    });
    let rest = unc.and_then(|_| rest.get(6..)).unwrap_or(rest);
    let mut parts = rest.split(['\\', '/']);
    let (Some(host), Some(share)) = (parts.next(), parts.next().filter(|share| !share.is_empty()))
    else {
        return false;
    };
    // `host@80` and `host@SSL` use WebDAV.
    let host = host.split('@').next().unwrap_or(host).to_ascii_lowercase();
    let share = share.to_ascii_lowercase();
    let drive = share.len() == 2 && share.ends_with('$');
    let is_external = host.contains('.')
        && host.len() > 2
        && !PRIVATE_SUFFIXES.iter().any(|end| host.ends_with(end))
        && !is_private(&host);
    let is_local = matches!(
        host.as_str(),
        "?" | "." | "localhost" | "127.0.0.1" | "wsl$" | "wsl.localhost"
    );
    !is_local && (is_external || drive || ADMINISTRATIVE_SHARES.contains(&share.as_str()))
}

/// Reports whether an address belongs to a private network.
fn is_private(host: &str) -> bool {
    host.parse::<std::net::Ipv4Addr>()
        .is_ok_and(|address| address.is_private() || address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_foreign;

    #[test]
    fn shares_outside_and_of_administrators() {
        for path in [
            r"\\evil.example\share\x",
            r"\\203.0.113.5\s\x",
            r"\\10.0.0.5\c$\x",
            r"\\srv\ADMIN$\x",
            r"\\evil.example@SSL\s\x",
            r"\\?\UNC\evil.example\s\x",
        ] {
            assert!(is_foreign(path), "{path}");
        }
        for path in [
            r"\\fileserver\team\x",
            r"\\nas.local\x\y",
            r"\\10.0.0.5\team\x",
            r"\\?\C:\x\y",
            r"\\.\pipe\x",
            r"\\wsl$\Debian\x",
            r"\\host",
            "//a.b/c",
            r"\x",
        ] {
            assert!(!is_foreign(path), "{path}");
        }
    }
}
