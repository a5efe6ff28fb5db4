//! The objects within a line, each with its members.

use super::kind::{Kind, ListOf, Millis, Number, Score, Text, True, Word};
#[cfg(test)]
use super::schema::CAPTIONS;
#[cfg(test)]
use crate::detect::Surface;
#[cfg(test)]
use crate::inspect::SkipReason;
use crate::message::Value;
#[cfg(test)]
use crate::rules::Action;

/// Defines an object: a module with its members and its kind, and a struct that writes it.
macro_rules! object {
    ($(#[doc = $text:literal])+ $object:ident $struct:ident {$(
        $(#[doc = $about:literal])+
        $how:ident $member:ident: $kind:ty = $name:literal $(from $from:expr)? $(, in $words:expr)? $(, like $pattern:literal)?;
    )+}) => {
        $(#[doc = $text])+
        pub mod $object {
            #![allow(non_camel_case_types, unused_imports, reason = "as for the members of a line; each object uses some kinds")]

            use super::*;

            members! {
                $($(#[doc = $about])+ $member: $kind = $name $(from $from)? $(, in $words)? $(, like $pattern)?;)+
            }

            /// The kind of such an object.
            pub struct Object;

            impl Kind for Object {
                type Written<'a> = $struct<'a>;
                type Read<'e> = crate::record::entry::Object<'e>;

                fn write(value: Self::Written<'_>, out: &mut String) {
                    out.push('{');
                    crate::record::entry::Fields::write(value, out);
                    out.push('}');
                }

                fn read(value: Value<'_>) -> Option<Self::Read<'_>> {
                    Some(crate::record::entry::Object(value))
                }

                #[cfg(test)]
                fn schema() -> String {
                    format!(r##""$ref": "#/$defs/{}""##, stringify!($object))
                }
            }

            /// The object, as the schema describes it.
            #[cfg(test)]
            pub(in crate::record) fn described() -> crate::record::entry::schema::Group {
                crate::record::entry::schema::Group {
                    name: stringify!($object),
                    text: vec![$($text),+],
                    parts: <$struct<'static> as crate::record::entry::Fields>::PARTS,
                }
            }
        }

        fields! { $(#[doc = $text])+ $struct of $object: $($how $member,)+ }
    };
}

object! {
    /// A finding.
    finding Finding {
        /// The rule.
        need rule: Text = "rule";
        /// Severity of the rule.
        need severity: Word = "severity" from "OCSF 1.6 (`severity`)", in CAPTIONS;
        /// The action of the rule, in increasing order of how much is withheld from the receiver.
        need action: Word = "action", in Action::NAMES;
        /// The config suppresses it: it is recorded and has no consequence.
        may suppressed: True = "suppressed";
        /// The action that it would have had.
        may suppressed_action: Word = "suppressed_action", in Action::NAMES;
        /// The reason for the suppression, from the config.
        may suppressed_reason: Text = "suppressed_reason";
        /// The end of the suppression, from the config.
        may suppressed_until: Text = "suppressed_until";
        /// The part of the message.
        need surface: Word = "surface", in Surface::NAMES;
        /// The place: a JSON pointer (RFC 6901) from the body's root.
        need at: Text = "at";
        /// The reading of the text: `raw` as received, or after decoding and normalization.
        need reading: Word = "reading";
        /// The matched text, by digest and length.
        need evidence: super::evidence::Object = "evidence";
        /// Score of an external classifier.
        may score: Score = "score";
        /// The classifier, by name and version.
        may by: Text = "by";
        /// The servers that the matched piece came from.
        may source: ListOf<Text> = "source";
        /// Age of the matched piece, in seconds.
        may source_age: Number = "source_age_s";
    }
}

object! {
    /// A part that no rule inspected.
    uninspected Uninspected {
        /// The place: a JSON pointer (RFC 6901) from the body's root.
        need at: Text = "at";
        /// The reason, a stable identifier, as in `lychgate_uninspected_bytes_total`.
        need reason: Word = "reason", in SkipReason::NAMES;
        /// Its length in bytes.
        need bytes: Number = "bytes";
    }
}

object! {
    /// The result of an external classifier, or the reason why it gave none.
    classifier Classifier {
        /// Its name.
        may name: Text = "name";
        /// Its version.
        may version: Text = "version";
        /// Number of texts that it scored.
        may texts: Number = "texts";
        /// The highest score.
        may highest: Score = "highest";
        /// Why there is no score.
        may failed: Word = "failed";
        /// Its response time, in milliseconds.
        need ms: Millis = "ms";
    }
}

object! {
    /// The matched text, by digest and length.
    evidence Evidence {
        /// SHA-256 of the matched text.
        need sha256: Text = "sha256";
        /// Its length in bytes.
        need length: Number = "length";
    }
}
