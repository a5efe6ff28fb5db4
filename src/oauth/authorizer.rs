//! The gate's logins at one server: which token is sent with a call, and how the next token is
//! obtained.
//!
//! Callers that need a new token wait for the renewal in progress. Within this process they share
//! its future, which runs as a task and does not end with the call that started it. Between
//! processes the vault's lease is used, after which the account is read again, since another
//! process may have renewed it.

mod interactive;
mod login_slot;
mod renew;
mod scopes;
mod shared;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared as SharedFuture};
use parking_lot::Mutex;

use self::login_slot::{LoginSlot, Outcome, RenewalGuard};
use super::assertion::SigningKey;
use super::challenge::Challenge;
use super::fetch::Fetcher;
use super::grant::{Answer, Attempt, GrantError, TokenClient, check_answer};
use super::identity;
use super::logins::Plan;
use super::vault::Account;
use super::{Client, LoginError, Principal, SecretText, TokenGrant, unix_now};
use crate::config::{HttpTransport, LoginConfig, TokenOf};
use crate::protocol::Context;
use crate::record::{Event, Login};
pub use interactive::{DeviceLogin, StartedLogin};
pub use shared::Shared;

/// Maximum number of principals whose logins are held in memory; those of others are only in the
/// vault.
const MAX_LOGIN_SLOTS: usize = 10_000;
/// Minimum interval between reads of a login's stamp. It is shorter than the time that a person or
/// a process needs from a logout to the next call. Reading the stamp requires another thread, which
/// costs as much as the rest of a call.
const STAMP_CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// Minimum interval between reads of the vault for a new login while there is no token.
const VAULT_READ_INTERVAL: Duration = Duration::from_secs(1);
/// The same while there is a token.
const VAULT_READ_INTERVAL_WITH_TOKEN: Duration = Duration::from_secs(5);
/// Time after a failed renewal during which no other early renewal is attempted.
const RETRY_AFTER: Duration = Duration::from_secs(15);

/// The gate's logins at one server.
pub struct Authorizer {
    upstream: String,
    /// The server's URL, as in the config.
    url: String,
    login: LoginConfig,
    key: Option<SigningKey>,
    fetcher: Fetcher,
    shared: Arc<Shared>,
    slots: Mutex<HashMap<Principal, Arc<LoginSlot>>>,
}

/// The token for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bearer(SecretText);

impl Bearer {
    /// Returns the token itself, for the header.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

/// How a server refused a call.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// 401: the server requires a token, or another one.
    Token(Challenge),
    /// 403 with `insufficient_scope`: the server requires a token with more scopes.
    Scope(Challenge),
}

impl Refusal {
    fn challenge(&self) -> &Challenge {
        match self {
            Self::Token(challenge) | Self::Scope(challenge) => challenge,
        }
    }
}

impl Authorizer {
    /// # Errors
    /// Returns what is wrong with the config, as a message for its user.
    pub fn new(
        upstream: &str,
        transport: &HttpTransport,
        login: &LoginConfig,
        shared: Arc<Shared>,
    ) -> Result<Self, String> {
        let config = &shared.config;
        let fetcher = Fetcher::for_config(config, transport.ca.as_deref())?;
        Ok(Self {
            upstream: upstream.to_owned(),
            url: transport.url.clone(),
            login: login.clone(),
            key: SigningKey::of_login(login)?,
            fetcher,
            shared,
            slots: Mutex::default(),
        })
    }

    /// Returns the upstream's name in the config.
    pub fn upstream(&self) -> &str {
        &self.upstream
    }

    /// Returns who has a login of their own there, as named in the config: `gate`, `agent` or
    /// `user`.
    pub fn token_of(&self) -> &'static str {
        self.login.token_of.name()
    }

    /// Returns the principal whose login is used for a call.
    ///
    /// # Errors
    /// Fails if the upstream requires a user's own login and the user is unknown.
    pub fn principal(&self, context: &Context) -> Result<Principal, LoginError> {
        match self.login.token_of {
            TokenOf::Gate => Ok(Principal::Gate),
            TokenOf::Agent => Ok(Principal::Agent(context.agent.to_string())),
            TokenOf::User => context
                .caller
                .user
                .as_ref()
                .map(|user| Principal::User(user.to_string()))
                .ok_or(LoginError::NoUser),
        }
    }

    /// Returns the token for a call; `None` if there is none, in which case the server responds
    /// with what it requires. A token that expires soon is renewed in the background, an expired
    /// one before the call is sent.
    ///
    /// # Errors
    /// Fails if the token has expired and there is no new one.
    pub async fn bearer(
        self: &Arc<Self>,
        principal: &Principal,
    ) -> Result<Option<Bearer>, LoginError> {
        let slot = self.slot(principal);
        self.refresh_from_vault(&slot).await;
        let (granted, is_backing_off) = {
            let state = slot.state();
            (
                state.granted().cloned(),
                state.not_before.is_some_and(|until| Instant::now() < until),
            )
        };
        let Some(granted) = granted else {
            return Ok(None);
        };
        let bearer = Bearer(granted.access.clone());
        match self.freshness(&granted) {
            Freshness::Good => Ok(Some(bearer)),
            Freshness::Expiring => {
                if self.can_renew_without_user(&granted) && !is_backing_off {
                    // The renewal continues in its own task.
                    drop(self.renewal(&slot, None, None));
                }
                Ok(Some(bearer))
            }
            // If the token cannot be renewed, it is sent anyway: the server responds with what it
            // requires.
            Freshness::Expired if !self.can_renew_without_user(&granted) => Ok(Some(bearer)),
            Freshness::Expired => match self.renewal(&slot, Some(bearer), None).await {
                // Logged out in the meantime: the call is sent without a token, and the server
                // responds with what it requires.
                Err(LoginError::Owed { link: None }) if slot.state().account.is_none() => Ok(None),
                outcome => outcome.map(Some),
            },
        }
    }

    /// Returns another token after a server has refused `used`. If a person has to log in first,
    /// the call waits for as long as the config permits.
    ///
    /// # Errors
    /// Fails if there is no other token.
    pub async fn replace_refused_token(
        self: &Arc<Self>,
        principal: &Principal,
        used: Option<Bearer>,
        refusal: Refusal,
    ) -> Outcome {
        let slot = self.slot(principal);
        let outcome = self.renewal(&slot, used.clone(), Some(refusal)).await;
        let wait = self.shared.config.login_wait;
        if !matches!(outcome, Err(LoginError::Owed { link: Some(_) })) || wait.is_zero() {
            return outcome;
        }
        self.shared.logins.wait(self, principal, wait).await;
        let granted = slot.state().granted().cloned();
        match granted.map(|granted| Bearer(granted.access)) {
            Some(bearer) if Some(&bearer) != used.as_ref() => Ok(bearer),
            _ => outcome,
        }
    }

    /// Returns the gate's client identity at the server of a plan, and an attempt with the URL that
    /// a person has to visit. `earlier_client` is the client of an earlier attempt at the same
    /// login.
    pub(super) async fn begin(
        &self,
        plan: &Plan,
        redirect_uri: &str,
        earlier_client: Option<Client>,
    ) -> Result<(Client, Attempt), LoginError> {
        let client = self
            .identify_client(plan, redirect_uri, earlier_client)
            .await?;
        let attempt = self.token_client(plan, &client).begin(redirect_uri)?;
        Ok((client, attempt))
    }

    /// Returns the client that obtains the tokens of a plan.
    fn token_client<'a>(&'a self, plan: &'a Plan, client: &'a Client) -> TokenClient<'a> {
        TokenClient {
            fetcher: &self.fetcher,
            server: &plan.server,
            client,
            key: self.key.as_ref(),
            resource: &plan.party.resource,
            scopes: &plan.scopes,
        }
    }

    /// Returns the gate's client identity at the server of a plan.
    async fn identify_client(
        &self,
        plan: &Plan,
        redirect_uri: &str,
        earlier_client: Option<Client>,
    ) -> Result<Client, LoginError> {
        let known_client = match earlier_client {
            Some(client) => Some(client),
            None => self.known_client(plan).await?,
        };
        let client = identity::identify(
            &self.fetcher,
            &plan.server,
            &self.login,
            self.shared.logins.document_url().as_deref(),
            &[redirect_uri.to_owned()],
            known_client.as_ref(),
            &self.shared.config.client_name,
        )
        .await?;
        Ok(client)
    }

    /// Redeems an authorization server's answer for a token, and stores it.
    pub(super) async fn end(
        self: &Arc<Self>,
        plan: &Plan,
        client: Client,
        redirect_uri: &str,
        attempt: &Attempt,
        answer: &Answer,
    ) -> Result<(), LoginError> {
        let code = check_answer(&plan.server, &attempt.state, answer)?;
        let granted = self
            .token_client(plan, &client)
            .redeem(redirect_uri, &code, &attempt.verifier)
            .await;
        self.store_grant(plan, client, granted).await
    }

    /// Stores the tokens that a login returned.
    async fn store_grant(
        self: &Arc<Self>,
        plan: &Plan,
        client: Client,
        granted: Result<TokenGrant, GrantError>,
    ) -> Result<(), LoginError> {
        let principal = plan.party.principal.clone();
        let granted = granted.inspect_err(|error| {
            self.record(&principal, "login_failed", Some(&error.to_string()));
        })?;
        let account = Account {
            upstream: self.upstream.clone(),
            party: plan.party.clone(),
            server: plan.server.clone(),
            client,
            granted: Some(granted),
            asked: plan.scopes.clone(),
            last_refresh_unix: None,
            last_error: None,
        };
        let lease = match self.shared.vault() {
            Ok(store) => store.lease(&self.upstream, &principal).await.ok(),
            Err(_) => None,
        };
        // Stored even if another process holds the lease for too long: these tokens are newer than
        // any others.
        let written = self.write(&account).await;
        drop(lease);
        let slot = self.slot(&principal);
        {
            let mut state = slot.state();
            state.account = Some(account);
            state.unwritten = written.is_err();
        }
        self.shared.logins.settle(self, &principal);
        self.record(&principal, "logged_in", None);
        written
    }

    /// Returns the renewal in progress, or starts one. It continues even if nobody waits for it.
    fn renewal(
        self: &Arc<Self>,
        slot: &Arc<LoginSlot>,
        used: Option<Bearer>,
        refusal: Option<Refusal>,
    ) -> SharedFuture<BoxFuture<'static, Outcome>> {
        let mut running = slot.renewal.lock();
        if let Some(running) = &*running {
            return running.clone();
        }
        let authorizer = self.clone();
        let renewing_slot = slot.clone();
        let work = async move {
            let guard = RenewalGuard::new(renewing_slot, authorizer.shared.renewals.clone());
            authorizer.renew(guard.slot(), used, refusal).await
        };
        let task = tokio::spawn(work);
        let outcome = async move {
            task.await.unwrap_or(Err(LoginError::Unreachable(
                "the request was interrupted".into(),
            )))
        };
        let shared = outcome.boxed().shared();
        *running = Some(shared.clone());
        shared
    }

    /// Reads the vault if the login in it has changed, and periodically in any case: the user may
    /// have logged in or out through another process, or that process may have renewed the login.
    async fn refresh_from_vault(&self, slot: &LoginSlot) {
        let principal = &slot.principal;
        let Some(store) = &self.shared.vault else {
            return;
        };
        if !slot.state().begin_stamp_check(STAMP_CHECK_INTERVAL) {
            return;
        }
        let stamp = store.stamp(&self.upstream, principal).await.ok();
        {
            let mut state = slot.state();
            let interval = if state.granted().is_some() {
                VAULT_READ_INTERVAL_WITH_TOKEN
            } else {
                VAULT_READ_INTERVAL
            };
            let is_recent = state
                .vault_read_at
                .is_some_and(|looked| looked.elapsed() < interval);
            if state.unwritten || is_recent && stamp.is_none_or(|stamp| stamp == state.stamp) {
                return;
            }
            state.vault_read_at = Some(Instant::now());
            state.stamp = stamp.flatten();
        }
        let account = match store.read(&self.upstream, principal).await {
            Ok(account) => account,
            // Whether this matters becomes clear when the server requires a token.
            Err(error) => {
                return tracing::warn!(upstream = self.upstream, %error, "cannot read the vault");
            }
        };
        let logged_in = account
            .as_ref()
            .is_some_and(|account| account.granted.is_some());
        slot.state().adopt_account(account);
        if logged_in && self.shared.logins.settle(self, principal) {
            self.record(principal, "logged_in", None);
        }
    }

    async fn write(&self, account: &Account) -> Result<(), LoginError> {
        Ok(self.shared.vault()?.write(account).await?)
    }

    fn slot(&self, principal: &Principal) -> Arc<LoginSlot> {
        let mut slots = self.slots.lock();
        if slots.len() >= MAX_LOGIN_SLOTS {
            slots.retain(|_, held| Arc::strong_count(held) > 1);
        }
        slots
            .entry(principal.clone())
            .or_insert_with(|| Arc::new(LoginSlot::new(principal.clone())))
            .clone()
    }

    fn freshness(&self, granted: &TokenGrant) -> Freshness {
        let (now, Some(end)) = (unix_now(), granted.expires_unix) else {
            return Freshness::Good;
        };
        let lifetime = end.saturating_sub(granted.given_unix);
        let margin = self.shared.config.renew_before.as_secs().min(lifetime / 4);
        match end.saturating_sub(now) {
            0 => Freshness::Expired,
            remaining if remaining <= margin => Freshness::Expiring,
            _ => Freshness::Good,
        }
    }

    fn record(&self, principal: &Principal, outcome: &'static str, error: Option<&str>) {
        let slot = self.slot(principal);
        let expires_unix = slot
            .state()
            .granted()
            .and_then(|granted| granted.expires_unix);
        let owed = self.shared.logins.count(&self.upstream);
        let login = Login {
            upstream: &self.upstream,
            principal: &principal.to_string(),
            outcome,
            error,
            expires_unix,
            required_logins: owed,
        };
        if let Err(error) = self.shared.recorder.record(Event::Login(&login)) {
            tracing::error!(%error, "cannot write the audit log");
        }
    }
}

enum Freshness {
    Good,
    Expiring,
    Expired,
}
