//! Logins at the command line: `lychgate login`. No call was refused before, and no gate need be
//! running.

use std::sync::Arc;

use http::{HeaderValue, Method, Request, StatusCode, header};

use super::{Authorizer, Plan, scopes};
use crate::oauth::challenge::{self, Challenge};
use crate::oauth::grant::{Answer, Attempt, DeviceAttempt};
use crate::oauth::{Client, LoginError, Principal};
use crate::protocol::{JSON, JSON_OR_EVENTS};

/// A request that has no effect, and that a server with authentication refuses.
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// A login that was begun.
pub struct StartedLogin {
    plan: Plan,
    client: Client,
    redirect_uri: String,
    attempt: Attempt,
}

impl StartedLogin {
    /// Returns the URL that the person has to visit.
    pub fn url(&self) -> &str {
        &self.attempt.url
    }

    /// Reports whether an answer belongs to this login, whatever its content.
    pub fn is_answered_by(&self, answer: &Answer) -> bool {
        answer.has_state(&self.attempt.state)
    }
}

/// A login on another device that was begun.
pub struct DeviceLogin {
    plan: Plan,
    client: Client,
    device: DeviceAttempt,
}

impl DeviceLogin {
    /// Returns what the person needs: a URL, and the code to enter there.
    pub fn device(&self) -> &DeviceAttempt {
        &self.device
    }
}

impl Authorizer {
    /// Returns what a login of this principal would be: with which authorization server, and for
    /// which scopes.
    ///
    /// # Errors
    /// Fails if no authorization server is found, or if the vault cannot be used.
    pub async fn plan(&self, principal: &Principal) -> Result<Plan, LoginError> {
        let account = self.shared.vault()?.read(&self.upstream, principal).await?;
        let challenge = self.request_challenge().await;
        let discovery = self.discover_server(&challenge, account.as_ref()).await?;
        let party = discovery.login_party(principal);
        let earlier_scopes = account
            .filter(|account| account.party == party)
            .map(|account| account.asked)
            .unwrap_or_default();
        let scopes = scopes::initial(&self.login, &challenge, &discovery).union(&earlier_scopes);
        Ok(Plan {
            party,
            server: discovery.server,
            scopes,
        })
    }

    /// Returns a link to the page on which a principal may log in, whether or not a call requires
    /// it.
    ///
    /// # Errors
    /// See [`Self::plan`]; also fails if there are too many pending logins.
    pub async fn link(self: &Arc<Self>, principal: &Principal) -> Result<String, LoginError> {
        let plan = self.plan(principal).await?;
        match self.shared.logins.require(self, plan)? {
            (LoginError::Owed { link: Some(link) }, _) => Ok(link.into()),
            (error, _) => Err(error),
        }
    }

    /// Begins a login whose answer arrives at this redirect URI.
    ///
    /// # Errors
    /// Fails if the gate cannot be a client there.
    pub async fn begin_by_hand(
        &self,
        plan: &Plan,
        redirect_uri: &str,
    ) -> Result<StartedLogin, LoginError> {
        let (client, attempt) = self.begin(plan, redirect_uri, None).await?;
        Ok(StartedLogin {
            plan: plan.clone(),
            client,
            redirect_uri: redirect_uri.to_owned(),
            attempt,
        })
    }

    /// Completes a login with the answer that arrived.
    ///
    /// # Errors
    /// Fails if the answer is a refusal, or if the login cannot be stored.
    pub async fn end_by_hand(
        self: &Arc<Self>,
        login: &StartedLogin,
        answer: &Answer,
    ) -> Result<(), LoginError> {
        self.end(
            &login.plan,
            login.client.clone(),
            &login.redirect_uri,
            &login.attempt,
            answer,
        )
        .await
    }

    /// Begins a login on another device (RFC 8628). The redirect URI need not be reachable: it is
    /// used only for registration, if the server requires one.
    ///
    /// # Errors
    /// Fails if the gate cannot be a client there, or if the server does not support device logins.
    pub async fn begin_on_device(
        &self,
        plan: &Plan,
        redirect_uri: &str,
    ) -> Result<DeviceLogin, LoginError> {
        let client = self.identify_client(plan, redirect_uri, None).await?;
        let device = self.token_client(plan, &client).device_begin().await?;
        Ok(DeviceLogin {
            plan: plan.clone(),
            client,
            device,
        })
    }

    /// Waits for the person on the other device until the code expires, and stores the login.
    ///
    /// # Errors
    /// Fails if the person refuses or does not respond, or if the login cannot be stored.
    pub async fn end_on_device(self: &Arc<Self>, login: DeviceLogin) -> Result<(), LoginError> {
        let DeviceLogin {
            plan,
            client,
            device,
        } = login;
        let granted = self.token_client(&plan, &client).device_poll(&device).await;
        self.store_grant(&plan, client, granted).await
    }

    /// Returns the server's challenge for a request without a token. The location of the metadata
    /// may be given only there; if the request fails, the metadata may still be at its default
    /// location.
    async fn request_challenge(&self) -> Challenge {
        let mut request = Request::new(PING.to_vec());
        *request.method_mut() = Method::POST;
        let Ok(uri) = self.url.parse() else {
            return Challenge::default();
        };
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(header::ACCEPT, HeaderValue::from_static(JSON_OR_EVENTS));
        match self.fetcher.exchange(request).await {
            Ok(answer) if answer.status() == StatusCode::UNAUTHORIZED => {
                challenge::parse(answer.headers())
            }
            _ => Challenge::default(),
        }
    }
}
