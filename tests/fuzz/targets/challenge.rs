//! Parses any `WWW-Authenticate` header: in bounded time, without a panic. Returned values are
//! valid for their use, challenges of other schemes change nothing, and quoted values are returned
//! unescaped.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, header};
use lychgate::oauth::challenge::{Challenge, parse};

const MOST: Duration = Duration::from_secs(1);

pub fn fuzz(input: (Vec<Vec<u8>>, String)) {
    let (lines, url) = input;
    let began = Instant::now();
    let challenge = read(&lines);
    assert!(began.elapsed() < MOST, "{:?}", began.elapsed());
    for text in [&challenge.resource_metadata, &challenge.error]
        .into_iter()
        .flatten()
    {
        assert!(
            text.len() <= 2048 && text.bytes().all(|b| b.is_ascii_graphic()),
            "{text:?}"
        );
    }
    if let Some(scopes) = &challenge.scope {
        assert!(!scopes.0.is_empty());
        assert!(scopes.0.iter().all(|scope| {
            scope
                .bytes()
                .all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
        }));
    }

    let others = [b"Basic realm=\"Bearer error=x\", Negotiate YWJj==".to_vec()];
    assert_eq!(
        read(&[&others[..], &lines].concat()),
        challenge,
        "another scheme before"
    );
    assert_eq!(
        read(&[&lines[..], &others].concat()),
        challenge,
        "another scheme behind"
    );

    let quoted: String = url
        .chars()
        .flat_map(|c| ['\\', c].into_iter().skip(usize::from(c.is_alphanumeric())))
        .collect();
    let line = format!("Digest a=b, bearer x=\"y, \\\"\", RESOURCE_metadata = \"{quoted}\"");
    let fits = !url.is_empty() && url.len() <= 2048 && url.bytes().all(|b| b.is_ascii_graphic());
    assert_eq!(
        read(&[line.into_bytes()]).resource_metadata,
        fits.then_some(url)
    );
}

fn read(lines: &[Vec<u8>]) -> Challenge {
    let mut headers = HeaderMap::new();
    for line in lines {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(header::WWW_AUTHENTICATE, value);
        }
    }
    parse(&headers)
}
