//! lychgate: a security gateway between AI agents and MCP servers.
//!
//! `src/README.md` describes the modules and their floors.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_types,
        clippy::string_slice,
        reason = "tests read JSON with another reader than the gate's, and may panic"
    )
)]

/// Declares an enum whose variants have names: in files, metrics, the audit log or on the command
/// line.
macro_rules! enum_with_names {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $Enum:ident {
            $($(#[$variant_attribute:meta])* $Variant:ident = $name:literal,)+
        }
    ) => {
        $(#[$attribute])*
        $visibility enum $Enum {
            $($(#[$variant_attribute])* $Variant,)+
        }

        #[allow(dead_code, reason = "few enums need all of it")]
        impl $Enum {
            /// Every value, in order.
            $visibility const ALL: [Self; Self::NAMES.len()] = [$(Self::$Variant),+];
            /// The names, in the same order.
            $visibility const NAMES: [&'static str; [$($name),+].len()] = [$($name),+];
            /// The names with their values.
            $visibility const WORDS: [(&'static str, Self); Self::NAMES.len()] =
                [$(($name, Self::$Variant)),+];

            /// Returns the name.
            $visibility const fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)+
                }
            }

            /// Returns the value with this name.
            $visibility fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$Variant),)+
                    _ => None,
                }
            }
        }
    };
}

/// Makes a table of the values of a constant function, one for each byte.
macro_rules! byte_table {
    ($value_of:ident) => {{
        let mut table = [$value_of(0); 256];
        let mut byte = 0;
        while byte < 256 {
            #[allow(
                clippy::indexing_slicing,
                reason = "done by the compiler, which would say so"
            )]
            {
                table[byte] = $value_of(byte as u8);
            }
            byte += 1;
        }
        table
    }};
}

/// Panics with the whole text unless it contains each of the parts.
#[cfg(test)]
macro_rules! assert_contains {
    ($text:expr, $($part:expr),+ $(,)?) => {{
        let text = &$text;
        $(assert!(text.contains($part), "no `{}` in: {text}", $part);)+
    }};
}

/// Panics with the whole text if it contains one of the parts.
#[cfg(test)]
macro_rules! assert_lacks {
    ($text:expr, $($part:expr),+ $(,)?) => {{
        let text = &$text;
        $(assert!(!text.contains($part), "`{}` is in: {text}", $part);)+
    }};
}

pub mod app;
pub mod approval;
pub mod cli;
pub mod config;
pub mod detect;
pub mod document;
pub mod export;
pub mod inspect;
pub mod listen;
pub mod message;
pub mod oauth;
pub mod pins;
pub mod protocol;
pub mod proxy;
pub mod reach;
pub mod record;
pub mod review;
pub mod rules;
pub mod seal;
pub mod text;
pub mod trust;
pub mod upstream;
