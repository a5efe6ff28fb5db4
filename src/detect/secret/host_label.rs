//! Encoded data in host names: exfiltration by DNS. The name server of a domain receives each name
//! that is looked up in it.

use std::ops::Range;

/// Minimum length of a label of encoded data, and of each of several ones after each other. A label
/// has at most 63 bytes (RFC 1035, section 2.3.4).
const LONG: usize = 40;
const PART: usize = 20;
const LABEL: usize = 63;
/// Minimum numbers of digits and of different characters of such data.
const DIGITS: usize = 3;
const DISTINCT: usize = 12;
/// Maximum number of names of one text that are reported.
const NAMES: usize = 8;
/// Ends of the names of files, which domains do not have.
const FILES: &str = " 7z asc avif br bz2 csv css gif gz html jpeg jpg js json jsonl lock log map md mjs mp4 otf parquet pdf pem png \
    py rs sh sig sql svg tar tgz toml ts tsx ttf txt wasm webp whl woff woff2 xml xz yaml yml zip zst ";
/// Domains whose names contain a digest of what they serve, or a public key.
const BY_DIGEST: [&str; 5] = [".ipfs.", ".ipns.", ".onion", "dweb.link", ".cid."];

/// Returns the labels of host names that are encoded data.
pub(super) fn encoded_labels(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    for dot in memchr::memchr_iter(b'.', bytes) {
        if dot < from {
            continue;
        }
        let before = bytes.get(from..dot).unwrap_or_default();
        let length = alphanumeric(before.iter().rev());
        if length < PART {
            continue;
        }
        let start = dot - length;
        // Labels of data may follow each other.
        let mut end = dot;
        loop {
            let label = alphanumeric(bytes.get(end + 1..).unwrap_or_default().iter());
            if label < PART || bytes.get(end + 1 + label) != Some(&b'.') {
                break;
            }
            end += 1 + label;
        }
        from = end;
        let data = text.get(start..end).unwrap_or_default();
        if is_encoded(data) && begins_host(text, start) && ends_as_domain(text, end) {
            found.push(start..end);
        }
        if found.len() >= NAMES {
            break;
        }
    }
    found
}

/// Returns the number of letters and digits before the first other byte, as far as a label goes.
fn alphanumeric<'b>(bytes: impl Iterator<Item = &'b u8>) -> usize {
    let letters = bytes.take_while(|byte| byte.is_ascii_alphanumeric());
    letters.take(LABEL + 1).count()
}

/// Reports whether labels are long and mix letters and digits, as base32 and base36 do. Digests are
/// in hexadecimal, and public.
fn is_encoded(labels: &str) -> bool {
    let data: Vec<u8> = labels.bytes().filter(|byte| *byte != b'.').collect();
    let digits = data.iter().filter(|byte| byte.is_ascii_digit()).count();
    let mut distinct = data.clone();
    distinct.sort_unstable();
    distinct.dedup();
    data.len() >= LONG
        && labels.split('.').all(|label| label.len() <= LABEL)
        && (DIGITS..data.len()).contains(&digits)
        && distinct.len() >= DISTINCT
        && !data.iter().all(u8::is_ascii_hexdigit)
        && !data.iter().any(u8::is_ascii_uppercase)
}

/// Reports whether a host name may begin at a position, or before short labels there: at the start,
/// after a blank, a quotation mark, `@`, `=` or `//`.
fn begins_host(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let labels = before.bytes().rev().take(LABEL);
    let labels = labels.take_while(|byte| is_part(&byte)).count();
    let before = if before.ends_with('.') {
        text.get(..at - labels).unwrap_or_default()
    } else {
        before
    };
    before.is_empty()
        || before.ends_with("//")
        || before.ends_with(|c: char| c.is_whitespace() || "\"'`@=:(,<".contains(c))
}

/// Reports whether at least two further labels follow, the last of which is one of a domain.
fn ends_as_domain(text: &str, at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-')));
    let domain = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
    let domain = domain.trim_end_matches('.');
    let mut labels = domain.split('.').skip(1);
    let last = labels.clone().last().unwrap_or_default();
    labels.clone().count() >= 2
        && labels.all(|label| !label.is_empty())
        && last.len() > 1
        && last.bytes().all(|byte| byte.is_ascii_alphabetic())
        && !FILES.split_ascii_whitespace().any(|file| file == last)
        && !BY_DIGEST
            .iter()
            .any(|part| format!("{domain}.").contains(part))
}

#[cfg(test)]
mod tests {
    use super::encoded_labels;

    #[test]
    fn long_labels_are_data() {
        for (text, found) in [
            (
                "https://dpo6qnpodp75ac9h6tk34ija9l3m6e3d6dgjauba8dol4gqn8l56olo.git.example/x",
                "dpo6qnpodp75ac9h6tk34ija9l3m6e3d6dgjauba8dol4gqn8l56olo",
            ),
            (
                "dig i5tey3tmgjstmms2nq3hendrm5lhorbx.nz2tcmsrlbdxiqlknfxgstjuireee2sy.q.a.example",
                "i5tey3tmgjstmms2nq3hendrm5lhorbx.nz2tcmsrlbdxiqlknfxgstjuireee2sy",
            ),
            (
                "a@ob4xa2jniftukskignshasbwjfwg65cqny2vsscopfkto4cfm5zwq.mx.in.example",
                "ob4xa2jniftukskignshasbwjfwg65cqny2vsscopfkto4cfm5zwq",
            ),
            // Digests, keys and files.
            (
                "https://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi.ipfs.dweb.link/",
                "",
            ),
            (
                "http://2gzyxa5ihm7nsggfxnu52rck2vv4rvmdlkiu3zzui5du4xyclen53wid.onion/",
                "",
            ),
            (
                "https://0123456789abcdef0123456789abcdef01234567.preview.a.example/",
                "",
            ),
            ("cat a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t0u1.min.js", ""),
            (
                "https://a.example/a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t0u1.b.c",
                "",
            ),
            // Names.
            (
                "org.springframework.boot.autoconfigure.web.servlet.error.example",
                "",
            ),
            ("https://d111111abcdef8.cloudfront.net/", ""),
            (
                "https://12345-abcdefghijklmnopqrstuvwxyz0123456789abcdefg.apps.a.example",
                "",
            ),
            ("a.b", ""),
        ] {
            let labels = encoded_labels(text);
            let labels: String = labels
                .into_iter()
                .filter_map(|span| text.get(span))
                .collect();
            assert_eq!(labels, found, "{text}");
        }
    }
}
