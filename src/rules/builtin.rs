//! The rule files that are part of the binary.

/// Name and text of each. A new file is a line here.
pub const FILES: &[(&str, &str)] = &[
    ("rules/outbound/commands.toml", include_str!("../../rules/outbound/commands.toml")),
    ("rules/inbound/hidden-text.toml", include_str!("../../rules/inbound/hidden-text.toml")),
    ("rules/inbound/markup.toml", include_str!("../../rules/inbound/markup.toml")),
    ("rules/inbound/injection.toml", include_str!("../../rules/inbound/injection.toml")),
    ("rules/inbound/orders.toml", include_str!("../../rules/inbound/orders.toml")),
    ("rules/inbound/definitions.toml", include_str!("../../rules/inbound/definitions.toml")),
    ("rules/inbound/languages.toml", include_str!("../../rules/inbound/languages.toml")),
];

/// How to write a rule.
pub const README: &str = include_str!("../../rules/README.md");
