//! The operator's own secrets: values that must never be sent. They are recognized by fingerprints
//! of the values and of their encodings.

use std::fmt;
use std::fmt::Write as _;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::Zeroize;

use super::fingerprint::{Fingerprints, VALUE_BYTES};
use crate::message::hex;

/// Minimum length of a line, in bytes, for it to be guarded separately if it is part of a value of
/// several lines.
const LINE_BYTES: usize = 24;

/// The values that a policy guards. Contains no values or names of values.
#[derive(Clone, Default)]
pub struct GuardedValues {
    fingerprints: Fingerprints,
    count: usize,
}

impl fmt::Debug for GuardedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Own({})", self.count)
    }
}

impl GuardedValues {
    /// Minimum length of a value that can be guarded, in bytes: shorter values occur in ordinary
    /// texts by chance.
    pub const LEAST_BYTES: usize = VALUE_BYTES;

    /// Guards a value and its encodings. Returns `false` if it is shorter than
    /// [`Self::LEAST_BYTES`].
    pub fn guard(&mut self, value: &str) -> bool {
        if value.len() < Self::LEAST_BYTES {
            return false;
        }
        self.count += 1;
        for_each_form(value, |form| {
            self.fingerprints.add(form.as_bytes(), 0);
        });
        let lines = value
            .lines()
            .map(str::trim)
            .filter(|line| line.len() >= LINE_BYTES && !line.starts_with("-----"));
        for line in lines.filter(|line| line.len() < value.len()) {
            for_each_form(line, |form| {
                self.fingerprints.add(form.as_bytes(), 0);
            });
        }
        true
    }

    /// Returns the number of guarded values.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Reports whether no values are guarded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Calls `report` for each place in `text` that contains a guarded value, as written or
    /// encoded.
    pub fn find(&self, text: &str, mut report: impl FnMut(Range<usize>)) {
        self.fingerprints
            .find(text.as_bytes(), |span, _| report(span));
    }
}

/// Calls `take` with each form in which a value may be written: unchanged, reversed, in base64 (at
/// any offset within the encoded text), in hex, percent-encoded, and escaped in JSON. Each form is
/// wiped after use.
pub(in crate::detect) fn for_each_form(value: &str, mut take: impl FnMut(&str)) {
    let bytes = value.as_bytes();
    let mut emit = |mut form: String| {
        take(&form);
        form.zeroize();
    };
    emit(value.to_owned());
    emit(value.chars().rev().collect());
    let hex = hex(bytes);
    emit(hex.to_ascii_uppercase());
    emit(hex);
    for before in 0..3 {
        // Preceding bytes shift the base64 digits. Digits that encode bits of preceding or
        // following bytes are left out.
        let skipped = (3 - before) % 3;
        let aligned = bytes.get(skipped..).unwrap_or_default();
        let aligned = aligned.get(..aligned.len() / 3 * 3).unwrap_or_default();
        emit(STANDARD_NO_PAD.encode(aligned));
        emit(URL_SAFE_NO_PAD.encode(aligned));
    }
    for upper in [true, false] {
        emit(percent_encode(value, upper));
    }
    emit(crate::message::quote(value).trim_matches('"').to_owned());
}

/// Percent-encodes all bytes except the unreserved ones (RFC 3986, 2.3).
fn percent_encode(value: &str, upper: bool) -> String {
    value
        .bytes()
        .fold(String::with_capacity(value.len() * 3), |mut out, byte| {
            let _infallible = match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    write!(out, "{}", char::from(byte))
                }
                _ if upper => write!(out, "%{byte:02X}"),
                _ => write!(out, "%{byte:02x}"),
            };
            out
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;

    const VALUE: &str = "p\"ss/wörd+42~!";

    fn holds(guarded: &GuardedValues, text: &str) -> bool {
        let mut found = false;
        guarded.find(text, |_| found = true);
        found
    }

    #[test]
    fn a_value_is_known_in_every_dress() {
        let mut guarded = GuardedValues::default();
        assert!(guarded.is_empty() && guarded.guard(VALUE) && !guarded.guard("short"));
        assert_eq!(guarded.len(), 1);
        for before in ["", "x", "xy", "xyz"] {
            let whole = format!("{before}{VALUE} and more");
            assert!(holds(&guarded, &whole));
            assert!(
                holds(&guarded, &STANDARD.encode(&whole)),
                "{before:?} in base64"
            );
            assert!(
                holds(&guarded, &URL_SAFE_NO_PAD.encode(&whole)),
                "{before:?} in base64url"
            );
        }
        let hex = hex(VALUE.as_bytes());
        let reversed: String = VALUE.chars().rev().collect();
        for text in [
            hex.to_uppercase(),
            hex,
            reversed,
            percent_encode(VALUE, true),
            crate::message::quote(VALUE),
        ] {
            assert!(holds(&guarded, &text), "{text}");
        }
        assert!(!holds(&guarded, "p\"ss/wörd+42~?"));
    }

    #[test]
    fn lines_of_a_file_are_known_by_themselves() {
        let mut guarded = GuardedValues::default();
        guarded.guard(
            "-----BEGIN THING-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nshort\n-----END THING-----",
        );
        assert!(holds(&guarded, "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"));
        assert!(!holds(&guarded, "-----BEGIN THING-----"));
    }

    #[test]
    fn nothing_is_shown() {
        let mut own = GuardedValues::default();
        own.guard(VALUE);
        assert_eq!(format!("{own:?}"), "Own(1)");
    }
}
