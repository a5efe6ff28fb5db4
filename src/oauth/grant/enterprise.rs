//! Tokens in exchange for assertions by other parties: enterprise-managed authorization, workload
//! identity.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use zeroize::Zeroizing;

use super::GrantError;
use super::tokens::Tokens;
use super::wire::TokenClient;
use crate::config::EnterpriseConfig;
use crate::oauth::{AuthorizationServer, Client, ClientAuth, Origin, SecretText, TokenGrant};

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const SAML: &str = "urn:ietf:params:oauth:token-type:saml2";
/// Maximum length of a subject token, in bytes: SAML assertions are long.
const MOST_SUBJECT_BYTES: u64 = 256 << 10;

impl TokenClient<'_> {
    /// Obtains a token through the organisation's own login server: the ID token (or SAML
    /// assertion) is exchanged there for an ID-JAG (RFC 8693), and that is exchanged at the MCP
    /// server's authorization server for a token (RFC 7523), without user interaction (extension
    /// `enterprise-managed-authorization`).
    ///
    /// # Errors
    /// Returns the error with which either server responds; `Subject` if there is no ID token.
    pub async fn enterprise(
        &self,
        idp_token_endpoint: &str,
        idp: &EnterpriseConfig,
    ) -> Result<TokenGrant, GrantError> {
        let subject = read_subject_token(&idp.subject_token_file).await?;
        let secret = idp.client_secret.as_ref();
        let idp_client = Client {
            id: idp.client_id.clone(),
            secret: secret.map(|secret| SecretText::new(secret.0.clone())),
            secret_expires_unix: None,
            auth: secret.map_or(ClientAuth::None, |_| ClientAuth::Basic),
            origin: Origin::Preregistered,
            redirect_uris: vec![],
        };
        let idp_server = AuthorizationServer {
            issuer: idp.issuer.clone(),
            ..AuthorizationServer::default()
        };
        let at_idp = TokenClient {
            server: &idp_server,
            client: &idp_client,
            key: None,
            ..*self
        };
        let parameters = [
            ("grant_type", EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("audience", self.server.issuer.as_str()),
            ("resource", self.resource),
            ("subject_token", subject.expose()),
            ("subject_token_type", if idp.saml { SAML } else { ID_TOKEN }),
        ];
        let answer = at_idp.ask(idp_token_endpoint, &parameters).await?;
        let assertion = Tokens::read(&answer)?.into_exchanged_token(ID_JAG)?;
        self.redeem_assertion(&assertion).await
    }

    /// Obtains a token for an assertion signed by a party that the server trusts (RFC 7523, section
    /// 2.1). A refusal is final: the request is not repeated, and no other grant is tried.
    ///
    /// # Errors
    /// Returns the error with which the server responds.
    pub async fn redeem_assertion(&self, assertion: &SecretText) -> Result<TokenGrant, GrantError> {
        let parameters = [
            ("grant_type", JWT_BEARER),
            ("assertion", assertion.expose()),
            ("resource", self.resource),
        ];
        let answer = self.ask(&self.server.token_endpoint, &parameters).await?;
        Tokens::read(&answer)?.into_grant(self.scopes, None)
    }
}

/// Reads the subject token. It is read each time, since the program that writes it there also
/// renews it.
async fn read_subject_token(path: &Path) -> Result<SecretText, GrantError> {
    let path = path.to_owned();
    let read_file = move || -> std::io::Result<(usize, SecretText)> {
        let mut text = Zeroizing::new(String::new());
        let length = File::open(path)?
            .take(MOST_SUBJECT_BYTES + 1)
            .read_to_string(&mut text)?;
        Ok((length, SecretText::new(text.trim().to_owned())))
    };
    let outcome = tokio::task::spawn_blocking(read_file)
        .await
        .map_err(|_| GrantError::Subject)?;
    let (length, token) = outcome.map_err(|_| GrantError::Subject)?;
    let fits = u64::try_from(length).is_ok_and(|read| read <= MOST_SUBJECT_BYTES);
    if fits && !token.expose().is_empty() {
        Ok(token)
    } else {
        Err(GrantError::Subject)
    }
}
