//! Programs that print a credential of theirs.

use super::value::Field;

/// Programs that print a credential, and the words in their arguments that make them.
const PRINTERS: [(&str, &[&str]); 25] = [
    ("gh", &["auth", "token"]),
    ("gcloud", &["auth", "print-access-token"]),
    ("gcloud", &["auth", "print-identity-token"]),
    ("gcloud", &["secrets", "access"]),
    ("az", &["account", "get-access-token"]),
    ("az", &["keyvault", "secret", "show"]),
    ("aws", &["configure", "export-credentials"]),
    ("aws", &["secretsmanager", "get-secret-value"]),
    ("aws", &["ssm", "--with-decryption"]),
    ("aws", &["sts", "get-session-token"]),
    ("aws", &["ecr", "get-login-password"]),
    ("vault", &["kv", "get"]),
    ("vault", &["read"]),
    ("vault", &["print", "token"]),
    ("heroku", &["auth:token"]),
    ("doctl", &["auth", "token"]),
    ("git", &["credential", "fill"]),
    ("kubectl", &["create", "token"]),
    ("oc", &["whoami", "-t"]),
    ("doppler", &["secrets"]),
    ("op", &["read"]),
    ("bw", &["get", "password"]),
    ("pass", &["show"]),
    ("npm", &["token", "create"]),
    ("flyctl", &["auth", "token"]),
];

/// Whether a program prints a credential.
pub(super) fn prints_secret(program: &str, arguments: &[Field]) -> bool {
    program.starts_with("docker-credential-")
        || PRINTERS
            .iter()
            .filter(|(name, _)| *name == program)
            .any(|(_, words)| words.iter().all(|word| arguments.iter().take(16).any(|argument| argument.text == *word)))
}
