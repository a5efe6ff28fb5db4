//! The rule files that are part of the binary.

/// Name and text of each. A new file is a line here.
pub const FILES: &[(&str, &str)] = &[
    ("rules/outbound/accounts.toml", include_str!("../../rules/outbound/accounts.toml")),
    ("rules/outbound/credentials.toml", include_str!("../../rules/outbound/credentials.toml")),
    ("rules/outbound/destruction.toml", include_str!("../../rules/outbound/destruction.toml")),
    ("rules/outbound/evasion.toml", include_str!("../../rules/outbound/evasion.toml")),
    ("rules/outbound/execution.toml", include_str!("../../rules/outbound/execution.toml")),
    ("rules/outbound/ops/clusters.toml", include_str!("../../rules/outbound/ops/clusters.toml")),
    ("rules/outbound/ops/cloud.toml", include_str!("../../rules/outbound/ops/cloud.toml")),
    ("rules/outbound/ops/containers.toml", include_str!("../../rules/outbound/ops/containers.toml")),
    ("rules/outbound/ops/databases.toml", include_str!("../../rules/outbound/ops/databases.toml")),
    ("rules/outbound/ops/git.toml", include_str!("../../rules/outbound/ops/git.toml")),
    ("rules/outbound/ops/packages.toml", include_str!("../../rules/outbound/ops/packages.toml")),
    ("rules/outbound/ops/services.toml", include_str!("../../rules/outbound/ops/services.toml")),
    ("rules/outbound/ops/users.toml", include_str!("../../rules/outbound/ops/users.toml")),
    ("rules/outbound/persistence.toml", include_str!("../../rules/outbound/persistence.toml")),
    ("rules/outbound/processes.toml", include_str!("../../rules/outbound/processes.toml")),
    ("rules/outbound/paths.toml", include_str!("../../rules/outbound/paths.toml")),
    ("rules/outbound/sensitive-files.toml", include_str!("../../rules/outbound/sensitive-files.toml")),
    ("rules/outbound/urls.toml", include_str!("../../rules/outbound/urls.toml")),
    ("rules/outbound/reading.toml", include_str!("../../rules/outbound/reading.toml")),
    ("rules/outbound/windows.toml", include_str!("../../rules/outbound/windows.toml")),
    ("rules/outbound/windows-run.toml", include_str!("../../rules/outbound/windows-run.toml")),
    ("rules/outbound/secrets/general.toml", include_str!("../../rules/outbound/secrets/general.toml")),
    ("rules/outbound/secrets/ai.toml", include_str!("../../rules/outbound/secrets/ai.toml")),
    ("rules/outbound/secrets/cloud.toml", include_str!("../../rules/outbound/secrets/cloud.toml")),
    ("rules/outbound/secrets/messaging.toml", include_str!("../../rules/outbound/secrets/messaging.toml")),
    ("rules/outbound/secrets/operations.toml", include_str!("../../rules/outbound/secrets/operations.toml")),
    ("rules/outbound/secrets/payment.toml", include_str!("../../rules/outbound/secrets/payment.toml")),
    ("rules/outbound/secrets/services.toml", include_str!("../../rules/outbound/secrets/services.toml")),
    ("rules/outbound/secrets/source.toml", include_str!("../../rules/outbound/secrets/source.toml")),
    ("rules/inbound/hidden-text.toml", include_str!("../../rules/inbound/hidden-text.toml")),
    ("rules/inbound/markup.toml", include_str!("../../rules/inbound/markup.toml")),
    ("rules/inbound/injection.toml", include_str!("../../rules/inbound/injection.toml")),
    ("rules/inbound/orders.toml", include_str!("../../rules/inbound/orders.toml")),
    ("rules/inbound/definitions.toml", include_str!("../../rules/inbound/definitions.toml")),
    ("rules/inbound/languages.toml", include_str!("../../rules/inbound/languages.toml")),
];

/// How to write a rule.
pub const README: &str = include_str!("../../rules/README.md");
