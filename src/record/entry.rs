//! The definition of audit log lines, from which writers, readers, the schema and the console's names are made.
//!
//! [`member`] and [`object`] have a row for each member, [`event`] one for each event with its members in the order in
//! which they are written. The macros below make of these rows what writes a line (a struct for each event), what reads
//! it (the types that `review::Entry::get` takes), the names that everything else uses, and two generated files:
//! `deploy/audit.schema.json` and `members.js` of the console, which `UPDATE=1 cargo test --lib record::entry` writes.
//! The comment above a row is its description in the schema.

use crate::message::Value;

use kind::Kind;

/// Defines members: a type for each, named as it is in code.
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
                /// The name in a line.
                pub const NAME: &'static str = $name;
            }

            impl $crate::record::entry::Member for $member {
                type Kind = $kind;
                const KEY: &'static str = concat!(",\"", $name, "\":");
            }
        )+

        /// Every member, as the schema describes it.
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

/// Defines a struct of members as they are written. `need` is a member that is always there, `may` one that is left out
/// where there is nothing to say, `with` all members of another struct, in its place.
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

/// The type of a field.
macro_rules! field {
    (need $members:ident $member:ident $a:lifetime) => { $crate::record::entry::Written<$a, $members::$member> };
    (may $members:ident $member:ident $a:lifetime) => { Option<$crate::record::entry::Written<$a, $members::$member>> };
    (with $members:ident who $a:lifetime) => { Who<$a> };
}

/// Writes a field.
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

/// A field as the schema has it.
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

/// A member of a line, or of an object within one.
pub trait Member {
    /// What its value is.
    type Kind: Kind;
    /// How it is written after another member: a comma, its quoted name and a colon.
    const KEY: &'static str;
}

/// A struct of members as they are written.
pub(super) trait Fields {
    /// Its members as the schema has them.
    #[cfg(test)]
    const PARTS: &'static [schema::Part];

    /// Adds its members to the object that was begun in `out`.
    fn write(self, out: &mut String);
}

/// A member's value as it is written.
pub(super) type Written<'a, M> = <<M as Member>::Kind as Kind>::Written<'a>;
/// A member's value as it is read.
pub type Read<'e, M> = <<M as Member>::Kind as Kind>::Read<'e>;

/// Adds a member to the object that was begun in `out`.
pub(super) fn add<M: Member>(value: Written<'_, M>, out: &mut String) {
    // No value ends in an opening brace.
    let key = if out.ends_with('{') {
        M::KEY.get(1..).unwrap_or_default()
    } else {
        M::KEY
    };
    out.push_str(key);
    M::Kind::write(value, out);
}

/// An object of a line that is read: the line itself, a finding and so on.
#[derive(Clone, Copy)]
pub struct Object<'e>(pub Value<'e>);

impl<'e> Object<'e> {
    /// The value of a member; `None` if the line has no such member, or one of another type.
    pub fn get<M: Member>(self, _: M) -> Option<Read<'e, M>> {
        let key = M::KEY.get(2..M::KEY.len() - 2)?;
        M::Kind::read(self.0.get(key)?)
    }
}
