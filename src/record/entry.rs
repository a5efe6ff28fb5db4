//! Defines the lines of the audit log. Writers, readers, the schema and the names in the console
//! are generated from it.
//!
//! [`member`] and [`object`] have a row for each member; [`event`] has one for each event, with its
//! members in the order in which they are written. From these rows, the macros below generate the
//! code that writes a line (a struct for each event), the code that reads it (the types that
//! `review::Entry::get` takes), the names that all other code uses, and two files:
//! `deploy/audit.schema.json` and `members.js` of the console, which
//! `UPDATE=1 cargo test --lib record::entry` writes. The comment above a row is its description in
//! the schema.

use crate::message::Value;

use kind::Kind;

/// Defines members: one type for each, with the name that is used in code.
macro_rules! members {
    ($(
        $(#[doc = $text:literal])+
        $member:ident: $kind:ty = $name:literal $(from $from:expr)? $(, in $words:expr)? $(, like $pattern:literal)?;
    )+) => {
        $(
            $(#[doc = $text])+
            #[derive(Clone, Copy)]
            pub struct $member;

            impl $member {
                /// The name in an audit line.
                pub const NAME: &'static str = $name;
            }

            impl $crate::record::entry::Member for $member {
                type Kind = $kind;
                const KEY: &'static str = concat!(",\"", $name, "\":");
            }
        )+

        /// Returns all members with their descriptions in the schema.
        #[cfg(test)]
        pub(in crate::record) fn all() -> Vec<$crate::record::entry::schema::MemberDoc> {
            vec![$($crate::record::entry::schema::MemberDoc {
                member: stringify!($member),
                name: $name,
                text: vec![$($text),+],
                from: vec![$($from,)? "lychgate"],
                schema: <$kind as $crate::record::entry::kind::Kind>::schema(),
                words: $crate::record::entry::schema::all(&[$(&$words)?]),
                pattern: vec![$($pattern)?],
            }),+]
        }
    };
}

/// Defines a struct of members as they are written. `need` is a member that is always present,
/// `may` is one that is left out if it has no value, and `with` inserts all members of another
/// struct.
macro_rules! fields {
    ($(#[doc = $text:literal])+ $struct:ident of $members:ident: $($how:ident $member:ident,)+) => {
        $(#[doc = $text])+
        pub struct $struct<'a> {
            $(pub(in crate::record) $member: field!($how $members $member 'a),)+
        }

        impl $crate::record::entry::Fields for $struct<'_> {
            #[cfg(test)]
            const PARTS: &'static [$crate::record::entry::schema::Part] =
                &[$(part!($how $members $member)),+];

            fn write(self, out: &mut String) {
                $(put!(self out $how $members $member);)+
            }
        }
    };
}

/// Expands to the type of a field.
macro_rules! field {
    (need $members:ident $member:ident $a:lifetime) => { $crate::record::entry::Written<$a, $members::$member> };
    (may $members:ident $member:ident $a:lifetime) => { Option<$crate::record::entry::Written<$a, $members::$member>> };
    (with $members:ident who $a:lifetime) => { Who<$a> };
}

/// Expands to the code that writes a field.
macro_rules! put {
    ($self:ident $out:ident need $members:ident $member:ident) => {
        $crate::record::entry::add::<$members::$member>($self.$member, $out)
    };
    ($self:ident $out:ident may $members:ident $member:ident) => {
        if let Some(value) = $self.$member {
            $crate::record::entry::add::<$members::$member>(value, $out);
        }
    };
    ($self:ident $out:ident with $members:ident $struct:ident) => {
        $self.$struct.write($out)
    };
}

/// Expands to the description of a field in the schema.
#[cfg(test)]
macro_rules! part {
    (need $members:ident $member:ident) => {
        $crate::record::entry::schema::Part::Need($members::$member::NAME)
    };
    (may $members:ident $member:ident) => {
        $crate::record::entry::schema::Part::May($members::$member::NAME)
    };
    (with $members:ident who) => {
        $crate::record::entry::schema::Part::All(
            <Who<'static> as $crate::record::entry::Fields>::PARTS,
        )
    };
}

pub mod event;
pub mod kind;
pub mod member;
pub mod object;
#[cfg(test)]
pub(super) mod schema;

/// A member of a line or of an object within a line.
pub trait Member {
    /// The kind of its value.
    type Kind: Kind;
    /// How the member begins when it follows another one: a comma, its quoted name and a colon.
    const KEY: &'static str;
}

/// A struct of members as they are written.
pub(super) trait Fields {
    /// The members as the schema describes them.
    #[cfg(test)]
    const PARTS: &'static [schema::Part];

    /// Appends the members to the object that was begun in `out`.
    fn write(self, out: &mut String);
}

/// The value of a member in the form in which it is written.
pub(super) type Written<'a, M> = <<M as Member>::Kind as Kind>::Written<'a>;
/// The value of a member in the form in which it is read.
pub type Read<'e, M> = <<M as Member>::Kind as Kind>::Read<'e>;

/// Appends a member to the object that was begun in `out`.
pub(super) fn add<M: Member>(value: Written<'_, M>, out: &mut String) {
    // No value ends in an opening brace, so one at the end of `out` begins the object.
    let key = if out.ends_with('{') {
        M::KEY.get(1..).unwrap_or_default()
    } else {
        M::KEY
    };
    out.push_str(key);
    M::Kind::write(value, out);
}

/// An object that is read from a line: the line itself, a finding and so on.
#[derive(Clone, Copy)]
pub struct Object<'e>(pub Value<'e>);

impl<'e> Object<'e> {
    /// Returns the value of a member; `None` if it is missing or of another type.
    pub fn get<M: Member>(self, _: M) -> Option<Read<'e, M>> {
        let key = M::KEY.get(2..M::KEY.len() - 2)?;
        M::Kind::read(self.0.get(key)?)
    }
}
