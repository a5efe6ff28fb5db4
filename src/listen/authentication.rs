//! Authenticates callers: by a token of their own, by a token from an issuer, or by a certificate.

use std::sync::Arc;
use std::time::Instant;

use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use prometheus::IntCounter;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::admit::{Rejection, reject, single_header};
use super::certificate::CertificateNames;
use super::connections::Connection;
use super::failed_logins::FailedLogins;
use super::identity::{CredentialKind, Identity};
use crate::config::{AccessConfig, Agent, Config, IssuerConfig};
use crate::oauth::assertion::{Claims, issuer_of};
use crate::oauth::issuer::{Issuer, TokenRefused};
use crate::oauth::{TokenDigest, unix_now};
use crate::protocol::{AgentName, Caller};
use crate::upstream::canary::{self, Canary};

/// Maximum length of the name of a user or group from a token, in bytes, and maximum number of
/// groups.
const NAME_BYTES: usize = 512;
const GROUPS: usize = 256;

/// Which callers are admitted, and what they may use.
pub struct Authenticator {
    open: bool,
    agents: Vec<ConfiguredAgent>,
    /// The identity of all callers if authentication is off.
    local_identity: Identity,
    issuers: Vec<Arc<Issuer>>,
    access: Vec<Arc<AccessConfig>>,
}

/// An agent of the config.
struct ConfiguredAgent {
    config: Agent,
    /// Its identity, apart from the credential.
    base_identity: Identity,
}

impl ConfiguredAgent {
    fn identity(&self, by: CredentialKind) -> Identity {
        Identity {
            credential: by,
            ..self.base_identity.clone()
        }
    }
}

impl Authenticator {
    /// Creates the authenticator of a config. Issuers in `previous` keep their keys if their
    /// configs are unchanged; their tokens are verified again. `evicted` counts verified tokens
    /// that are dropped to make room for others.
    ///
    /// # Errors
    /// No connection to the issuers can be set up.
    pub(super) fn new(
        config: &Config,
        previous: Option<&Self>,
        evicted: &IntCounter,
    ) -> Result<Self, String> {
        let access = &config.access;
        let find_existing = |config: &IssuerConfig| {
            previous?
                .issuers
                .iter()
                .find(|issuer| issuer.config() == config)
                .cloned()
        };
        let issuer = |issuer_config: &IssuerConfig| match find_existing(issuer_config) {
            Some(issuer) => {
                issuer.forget_verified();
                Ok(issuer)
            }
            None => Issuer::new(
                issuer_config.clone(),
                &config.oauth,
                config.limits.verified_tokens,
                evicted.clone(),
            )
            .map(Arc::new),
        };
        let issuers = config
            .issuers
            .iter()
            .map(issuer)
            .collect::<Result<_, _>>()?;
        let identity = |name: &str, config: Option<&Agent>| {
            Identity::new(
                AgentName(name.into()),
                config,
                None,
                Vec::new(),
                access,
                CredentialKind::Nothing,
            )
        };
        let agent = |agent: &Agent| ConfiguredAgent {
            config: agent.clone(),
            base_identity: identity(&agent.name, Some(agent)),
        };
        let agents = config.agents.iter().map(agent).collect();
        Ok(Self {
            open: config.is_open(),
            agents,
            local_identity: identity("local", None),
            issuers,
            access: access.clone(),
        })
    }

    /// Reports whether callers need no credential.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Returns the identity that sends a canary: the holder of the gate's own token, who may use
    /// only built-in upstreams.
    pub(super) fn prover_identity(canary: Option<&Canary>) -> Identity {
        let caller = Caller {
            user: canary.map(|canary| canary.id.into()),
            ..Caller::default()
        };
        Identity {
            agent: AgentName(canary::AGENT.into()),
            caller,
            upstreams: None,
            credential: CredentialKind::Nothing,
        }
    }

    /// Reports whether a caller that was admitted by `previous` would be admitted again, with the
    /// same access.
    pub(super) fn still_admits(&self, identity: &Identity, previous: &Self) -> bool {
        let own_agent = self.agent(&identity.agent.0);
        let is_valid = match &identity.credential {
            CredentialKind::Nothing => self.open,
            CredentialKind::Token(hash) => {
                own_agent.is_some_and(|agent| agent.tokens.contains(hash))
            }
            CredentialKind::Certificate(name) => {
                own_agent.is_some_and(|agent| agent.certificate.as_ref() == Some(name))
            }
            CredentialKind::Issuer(issuer, until) => {
                self.issuers().any(|config| config.issuer == *issuer) && unix_now() < *until
            }
        };
        let grants = |agent: Option<&Agent>| {
            agent.map(|agent| (agent.groups.clone(), agent.upstreams.clone()))
        };
        is_valid
            && grants(own_agent) == grants(previous.agent(&identity.agent.0))
            && self.access == previous.access
    }

    /// Returns the agent with this name in the config.
    fn agent(&self, name: &str) -> Option<&Agent> {
        self.agents
            .iter()
            .map(|agent| &agent.config)
            .find(|config| config.name == name)
    }

    /// Reports whether callers see the same as with another authenticator.
    pub(super) fn has_same_access(&self, other: &Self) -> bool {
        self.access == other.access
    }

    /// Authenticates a request. Tokens from issuers must be for one of `audiences`, unless the
    /// issuer's table names another audience.
    ///
    /// # Errors
    /// 400 for a malformed credential, 401 without a known one, 403 if it is insufficient, 429
    /// after too many invalid ones from the same address, 503 if it cannot be verified.
    pub(super) async fn authenticate(
        &self,
        headers: &HeaderMap,
        connection: &Connection,
        audiences: impl Fn() -> Vec<String>,
        failed_logins: &FailedLogins,
    ) -> Result<Identity, Rejection> {
        let names = &connection.names;
        if self.open {
            return Ok(self.local_identity.clone());
        }
        let matches_certificate = |agent: &&ConfiguredAgent| {
            agent
                .config
                .certificate
                .as_ref()
                .is_some_and(|name| names.contains(name))
        };
        let by_certificate = self.agents.iter().find(matches_certificate);
        let Some(token) = credential(headers)? else {
            let agent = by_certificate.ok_or_else(|| self.unknown_caller(None))?;
            return Ok(agent.identity(CredentialKind::Certificate(
                agent.config.certificate.clone().unwrap_or_default(),
            )));
        };
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let from = connection.from;
        let now = Instant::now();
        let is_locked = failed_logins.is_locked(from, &hash, now);
        let identity = match self.find_by_token(&hash).filter(|_| !is_locked) {
            Some(agent) => {
                failed_logins.record_valid(from, &hash, now);
                agent.identity(CredentialKind::Token(hash))
            }
            // Signed tokens cannot be guessed: many users behind one address may present expired
            // ones.
            None => match self.find_issuer(token, &hash) {
                Some(issuer) => {
                    Box::pin(self.authenticate_by_issuer(token, &hash, issuer, &audiences()))
                        .await?
                }
                None if is_locked || failed_logins.record_failure(from, &hash, now) => {
                    return Err(too_many_failures());
                }
                None => return Err(self.unknown_caller(Some("invalid_token"))),
            },
        };
        self.check_agreement(&identity, names, by_certificate.map(|agent| &agent.config))?;
        Ok(identity)
    }

    /// Returns the agent that a token belongs to. Every token is compared, in the same time,
    /// wherever the match is.
    fn find_by_token(&self, digest: &[u8; 32]) -> Option<&ConfiguredAgent> {
        let numbered = (1u64..).zip(self.agents.iter().map(|agent| &agent.config));
        let all = numbered
            .flat_map(|(number, agent)| agent.tokens.iter().map(move |token| (number, token)));
        let index = all.fold(0u64, |found, (number, token)| {
            let is_same: Choice = token.ct_eq(digest);
            u64::conditional_select(&found, &number, is_same)
        });
        self.agents
            .get(usize::try_from(index).ok()?.checked_sub(1)?)
    }

    /// Returns the issuer that has verified a token before, or that the token names.
    fn find_issuer(&self, token: &str, digest: &TokenDigest) -> Option<&Issuer> {
        if self.issuers.is_empty() {
            return None;
        }
        let verified = self
            .issuers
            .iter()
            .find(|issuer| issuer.has_verified(digest));
        let found = verified.or_else(|| {
            let named = issuer_of(token).ok()?;
            self.issuers
                .iter()
                .find(|issuer| issuer.config().issuer == named)
        });
        found.map(Arc::as_ref)
    }

    async fn authenticate_by_issuer(
        &self,
        token: &str,
        digest: &TokenDigest,
        issuer: &Issuer,
        audiences: &[String],
    ) -> Result<Identity, Rejection> {
        let invalid = || self.unknown_caller(Some("invalid_token"));
        let claims = issuer.check(token, digest, audiences).await.map_err(
            |refused| match refused {
                TokenRefused::Invalid(error) => {
                    tracing::info!(issuer = issuer.config().issuer, %error, "token rejected");
                    invalid()
                }
                TokenRefused::Unreachable => reject(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "issuer",
                    "the token cannot be verified: fetching its issuer's keys failed; try again",
                ),
            },
        )?;
        let config = issuer.config();
        if !config
            .scopes
            .iter()
            .all(|scope| claims.scopes().0.contains(scope))
        {
            let hint = "the token lacks a scope; get one with all that `WWW-Authenticate` names";
            return Err(Rejection {
                error: Some("insufficient_scope"),
                scope: Some(config.scopes.join(" ")),
                ..reject(StatusCode::FORBIDDEN, "scope", hint)
            });
        }
        self.identity_from_claims(config, &claims)
            .ok_or_else(invalid)
    }

    /// Returns the identity in a token's claims, or `None` if they contain none.
    fn identity_from_claims(&self, config: &IssuerConfig, claims: &Claims) -> Option<Identity> {
        let client = config
            .agent_claim
            .as_ref()
            .and_then(|claim| claims.text(claim));
        let agent = client.filter(|client| self.agent(client).is_some());
        let user = claims
            .text(&config.user_claim)
            .filter(|user| is_plain(user))?;
        // The user name includes the issuer: the same name from another issuer is a different user.
        let user = format!("{}#{user}", config.issuer);
        let groups = claims
            .texts(&config.groups_claim)
            .into_iter()
            .filter(|group| is_plain(group))
            .take(GROUPS);
        let agent = AgentName(agent.unwrap_or_else(|| config.agent.clone()).into());
        let expiry = claims
            .expires_unix()
            .saturating_add(config.leeway.as_secs());
        let by = CredentialKind::Issuer(config.issuer.clone(), expiry);
        let agent_config = self.agent(&agent.0);
        Some(Identity::new(
            agent,
            agent_config,
            Some(user.into()),
            groups.map(Into::into).collect(),
            &self.access,
            by,
        ))
    }

    /// Checks that a token and a certificate, if both are present, belong to the same agent.
    fn check_agreement(
        &self,
        identity: &Identity,
        names: &CertificateNames,
        by_certificate: Option<&Agent>,
    ) -> Result<(), Rejection> {
        let required = self
            .agent(&identity.agent.0)
            .and_then(|agent| agent.certificate.as_ref());
        let is_other_agent = by_certificate.is_some_and(|agent| *agent.name != *identity.agent.0);
        if is_other_agent || names.presented && required.is_some_and(|name| !names.contains(name)) {
            let hint = "the token and the certificate belong to different agents".into();
            return Err(Rejection {
                reason: "certificate",
                hint,
                ..self.unknown_caller(Some("invalid_token"))
            });
        }
        Ok(())
    }

    /// Returns the rejection of an unknown caller: without a token, or with one that is not valid
    /// here.
    fn unknown_caller(&self, error: Option<&'static str>) -> Rejection {
        let missing =
            "no token was sent; send `Authorization: Bearer TOKEN` with the agent's token";
        let wrong = "the token is not valid here: it belongs to no agent of this gate, has expired, or is for another server; \
                     send the current one (on the gate, `lychgate agent list` shows the agents)";
        Rejection {
            status: StatusCode::UNAUTHORIZED,
            reason: "token",
            hint: if error.is_some() { wrong } else { missing }.into(),
            error,
            scope: self.scope(),
        }
    }

    /// Returns the configs of the issuers.
    pub(super) fn issuers(&self) -> impl ExactSizeIterator<Item = &IssuerConfig> {
        self.issuers.iter().map(|issuer| issuer.config())
    }

    /// Returns the scopes that a token needs regardless of its issuer.
    pub(super) fn scopes(&self) -> Vec<&str> {
        let mut all = self.issuers();
        let Some(first) = all.next() else {
            return Vec::new();
        };
        let rest: Vec<&IssuerConfig> = all.collect();
        let is_required = |scope: &&String| rest.iter().all(|config| config.scopes.contains(scope));
        first
            .scopes
            .iter()
            .filter(is_required)
            .map(String::as_str)
            .collect()
    }

    fn scope(&self) -> Option<String> {
        Some(self.scopes().join(" ")).filter(|scopes| !scopes.is_empty())
    }
}

/// Returns the rejection of an address that has presented too many invalid tokens.
pub(super) fn too_many_failures() -> Rejection {
    reject(
        StatusCode::TOO_MANY_REQUESTS,
        "token",
        "too many invalid tokens from this address; try again in a minute",
    )
}

/// Returns the bearer token of a request, or `None` if it has none.
///
/// # Errors
/// 400 for a malformed credential: two of them, one without a scheme, one that is empty or contains
/// blanks.
fn credential(headers: &HeaderMap) -> Result<Option<&str>, Rejection> {
    let hint = "send one `Authorization: Bearer TOKEN`";
    let malformed = || Rejection {
        error: Some("invalid_request"),
        ..reject(StatusCode::BAD_REQUEST, "credential", hint)
    };
    let Some(value) = single_header(headers, &AUTHORIZATION).map_err(|()| malformed())? else {
        return Ok(None);
    };
    let (scheme, token) = value.trim().split_once(' ').ok_or_else(malformed)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Ok(None);
    }
    let token = token.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(malformed());
    }
    Ok(Some(token))
}

/// Reports whether an external name is safe to use unchanged in keys, logs and tables.
fn is_plain(name: &str) -> bool {
    (1..=NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut all = HeaderMap::new();
        values.iter().for_each(|value| {
            all.append(AUTHORIZATION, value.parse().unwrap());
        });
        all
    }

    fn config() -> Config {
        let agent = |name: &str, certificate: Option<&str>| Agent {
            name: name.into(),
            tokens: vec![
                Sha256::digest(format!("token-{name}")).into(),
                Sha256::digest(format!("second-{name}")).into(),
            ],
            certificate: certificate.map(Into::into),
            ..Agent::default()
        };
        Config {
            agents: vec![agent("one", None), agent("two", Some("uri:spiffe://e/two"))],
            ..Config::default()
        }
    }

    async fn asked(
        config: &Config,
        values: &[&str],
        names: &CertificateNames,
    ) -> Result<String, (u16, &'static str, Option<&'static str>)> {
        let entry = Authenticator::new(config, None, &IntCounter::new("n", "n").unwrap()).unwrap();
        let connection = Connection::testing(names.clone());
        let who = entry
            .authenticate(
                &headers(values),
                &connection,
                Vec::new,
                &FailedLogins::new(30),
            )
            .await;
        who.map(|who| who.agent.to_string())
            .map_err(|turned| (turned.status.as_u16(), turned.reason, turned.error))
    }

    #[tokio::test]
    async fn agents_show_one_of_their_tokens() {
        let config = config();
        let nobody = CertificateNames::default();
        for (shown, agent) in [
            ("Bearer token-two", "two"),
            ("bearer token-one", "one"),
            ("Bearer second-one", "one"),
            ("BEARER  second-two", "two"),
        ] {
            assert_eq!(asked(&config, &[shown], &nobody).await.unwrap(), agent);
        }
        for (shown, answer) in [
            (
                &["Bearer token-three"][..],
                (401, "token", Some("invalid_token")),
            ),
            (&["Basic token-one"], (401, "token", None)),
            (&[], (401, "token", None)),
            (&["token-one"], (400, "credential", Some("invalid_request"))),
            (&["Bearer "], (400, "credential", Some("invalid_request"))),
            (
                &["Bearer token-one x"],
                (400, "credential", Some("invalid_request")),
            ),
            (
                &["Bearer token-one", "Bearer token-one"],
                (400, "credential", Some("invalid_request")),
            ),
        ] {
            assert_eq!(
                asked(&config, shown, &nobody).await.unwrap_err(),
                answer,
                "{shown:?}"
            );
        }
        assert_eq!(
            asked(&Config::default(), &[], &nobody).await.unwrap(),
            "local"
        );
        let with_file = Config {
            agents_file: crate::config::AgentsFile {
                file: Some("agents.toml".into()),
            },
            ..Config::default()
        };
        assert_eq!(
            asked(&with_file, &[], &nobody).await.unwrap_err().0,
            401,
            "an empty file lets nobody in"
        );
    }

    #[tokio::test]
    async fn a_certificate_is_enough_and_must_agree_with_a_token() {
        let config = config();
        let two = CertificateNames::testing(&["uri:spiffe://e/two"]);
        let other = CertificateNames::testing(&["uri:spiffe://e/other"]);
        assert_eq!(asked(&config, &[], &two).await.unwrap(), "two");
        assert_eq!(
            asked(&config, &["Bearer token-two"], &two).await.unwrap(),
            "two"
        );
        assert_eq!(
            asked(&config, &["Bearer token-one"], &other).await.unwrap(),
            "one",
            "its name is nobody's"
        );
        assert_eq!(asked(&config, &[], &other).await.unwrap_err().0, 401);
        for (shown, names) in [("Bearer token-one", &two), ("Bearer token-two", &other)] {
            let (status, reason, _) = asked(&config, &[shown], names).await.unwrap_err();
            assert_eq!((status, reason), (401, "certificate"), "{shown}");
        }
    }
}
