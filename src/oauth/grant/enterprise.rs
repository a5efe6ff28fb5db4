//! Tokens for what somebody else has said of whom they are for: enterprise-managed authorization, workload identity.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use zeroize::Zeroizing;

use super::GrantError;
use super::tokens::Tokens;
use super::wire::{TokenClient, read};
use crate::config::EnterpriseConfig;
use crate::oauth::assertion::SigningKey;
use crate::oauth::fetch::Fetcher;
use crate::oauth::{AuthorizationServer, Client, ClientAuth, Hidden, Origin, Scopes, TokenGrant};

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const SAML: &str = "urn:ietf:params:oauth:token-type:saml2";
/// Longest subject token: SAML assertions are long.
const MOST_SUBJECT_BYTES: u64 = 256 << 10;

/// Gets a token by the organisation's own login server: the ID token (or SAML assertion) is exchanged there for an ID-JAG
/// (RFC 8693), and that, at the MCP server's authorization server, for a token (RFC 7523); nobody is asked
/// (extension `enterprise-managed-authorization`).
///
/// # Errors
/// As either server answers; `Subject` where there is no ID token.
#[allow(
    clippy::too_many_arguments,
    reason = "each is a part of one of the two requests"
)]
pub async fn enterprise(
    fetcher: &Fetcher,
    idp_token_endpoint: &str,
    idp: &EnterpriseConfig,
    server: &AuthorizationServer,
    client: &Client,
    key: Option<&SigningKey>,
    resource: &str,
    scopes: &Scopes,
) -> Result<TokenGrant, GrantError> {
    let subject = subject(&idp.subject_token_file).await?;
    let there = Client {
        id: idp.client_id.clone(),
        secret: idp
            .client_secret
            .as_ref()
            .map(|secret| Hidden::new(secret.0.clone())),
        secret_expires_unix: None,
        auth: if idp.client_secret.is_some() {
            ClientAuth::Basic
        } else {
            ClientAuth::None
        },
        origin: Origin::Preregistered,
        redirect_uris: vec![],
    };
    let wire = TokenClient {
        fetcher,
        issuer: &idp.issuer,
        algorithms: &[],
        client: &there,
        key: None,
    };
    let mut parameters = vec![
        ("grant_type", EXCHANGE),
        ("requested_token_type", ID_JAG),
        ("audience", server.issuer.as_str()),
        ("resource", resource),
        ("subject_token", subject.expose()),
        ("subject_token_type", if idp.saml { SAML } else { ID_TOKEN }),
    ];
    let scope = scopes.parameter();
    parameters.extend(scope.as_deref().map(|scope| ("scope", scope)));
    let answer = read(&wire.post(idp_token_endpoint, &parameters).await?)?;
    let assertion = Tokens::read(&answer)?.exchanged(ID_JAG)?;
    workload(fetcher, server, client, key, &assertion, resource, scopes).await
}

/// Gets a token for an assertion that somebody whom the server trusts has signed (RFC 7523, section 2.1). A refusal is
/// final: neither the same nor another grant is tried.
///
/// # Errors
/// As the server answers.
pub async fn workload(
    fetcher: &Fetcher,
    server: &AuthorizationServer,
    client: &Client,
    key: Option<&SigningKey>,
    assertion: &Hidden,
    resource: &str,
    scopes: &Scopes,
) -> Result<TokenGrant, GrantError> {
    let wire = TokenClient::new(fetcher, server, client, key);
    let mut parameters = vec![
        ("grant_type", JWT_BEARER),
        ("assertion", assertion.expose()),
        ("resource", resource),
    ];
    let scope = scopes.parameter();
    parameters.extend(scope.as_deref().map(|scope| ("scope", scope)));
    let answer = read(&wire.post(&server.token_endpoint, &parameters).await?)?;
    Tokens::read(&answer)?.granted(scopes, None)
}

/// Read each time: who puts the token there renews it.
async fn subject(path: &Path) -> Result<Hidden, GrantError> {
    let path = path.to_owned();
    let read = move || -> std::io::Result<(usize, Hidden)> {
        let mut text = Zeroizing::new(String::new());
        let read = File::open(path)?
            .take(MOST_SUBJECT_BYTES + 1)
            .read_to_string(&mut text)?;
        Ok((read, Hidden::new(text.trim().to_owned())))
    };
    let read = tokio::task::spawn_blocking(read)
        .await
        .map_err(|_| GrantError::Subject)?;
    let (read, token) = read.map_err(|_| GrantError::Subject)?;
    let fits = u64::try_from(read).is_ok_and(|read| read <= MOST_SUBJECT_BYTES);
    if fits && !token.expose().is_empty() {
        Ok(token)
    } else {
        Err(GrantError::Subject)
    }
}
