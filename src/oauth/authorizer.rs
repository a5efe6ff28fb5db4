//! The gate's logins at one server: which token goes with a call, and where the next one comes from.
//!
//! Whoever needs a new token waits for the one renewal that is under way: in this process by sharing its future, which
//! runs by itself and does not end with the call that began it; among processes by the vault's lease, after which the
//! account is read anew, since another one may have renewed it.

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
use super::fetch::{Fetcher, Guard};
use super::grant::{self, Answer, Attempt, GrantError};
use super::identity::{self, IdentityError};
use super::logins::Plan;
use super::vault::{Account, VaultError};
use super::{Client, Hidden, LoginError, Principal, TokenGrant, unix_now};
use crate::config::{HttpTransport, LoginConfig, TokenOf};
use crate::protocol::Context;
use crate::record::{Event, Login};
pub use interactive::{DeviceLogin, StartedLogin};
pub use shared::Shared;

/// Principals whose logins are held in memory at once; those of others are in the vault.
const HELD: usize = 10_000;
/// How long the stamp of a login is not read again: shorter than a person or a process needs from a logout to the next call. To
/// read it takes another thread, which costs as much as the rest of a call.
const STAMP_AGAIN: Duration = Duration::from_millis(5);
/// How long the vault is not asked again whether somebody has logged in.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The same where a token is at hand.
const LOOK_AFTER: Duration = Duration::from_secs(5);
/// How long after a failure no other renewal ahead of time is tried.
const RETRY_AFTER: Duration = Duration::from_secs(15);

/// The gate's logins at one server.
pub struct Authorizer {
    upstream: String,
    /// The server's URL, as the config has it.
    url: String,
    login: LoginConfig,
    key: Option<SigningKey>,
    fetcher: Fetcher,
    shared: Arc<Shared>,
    held: Mutex<HashMap<Principal, Arc<LoginSlot>>>,
}

/// A token for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bearer(Hidden);

impl Bearer {
    /// The token itself, for the header.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

/// How a server turned a call away.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// 401: it wants a token, or another one.
    Token(Challenge),
    /// 403 with `insufficient_scope`: it wants one that may do more.
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
    /// What is wrong with the config, in words for its user.
    pub fn new(
        upstream: &str,
        transport: &HttpTransport,
        login: &LoginConfig,
        shared: Arc<Shared>,
    ) -> Result<Self, String> {
        let config = &shared.config;
        let guard = Guard {
            allow_loopback_http: config.allow_loopback_http,
            private_hosts: config.private_hosts.clone(),
        };
        let fetcher = Fetcher::new(guard, config.request, transport.ca.as_deref())?;
        let key = login.client_key.as_ref().map(|pem| {
            SigningKey::from_pem(&pem.0, login.client_key_id.clone())
                .map_err(|error| format!("`client_key`: {error}"))
        });
        Ok(Self {
            upstream: upstream.to_owned(),
            url: transport.url.clone(),
            login: login.clone(),
            key: key.transpose()?,
            fetcher,
            shared,
            held: Mutex::default(),
        })
    }

    /// The upstream's name in the config.
    pub fn upstream(&self) -> &str {
        &self.upstream
    }

    /// Who has a login of their own there, in the config's word: `gate`, `agent` or `user`.
    pub fn token_of(&self) -> &'static str {
        TokenOf::WORDS
            .iter()
            .find(|(_, value)| *value == self.login.token_of)
            .map_or("", |(word, _)| word)
    }

    /// Whose login a call takes.
    ///
    /// # Errors
    /// The upstream wants a user's own, and nobody knows which user it is.
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

    /// The token for a call; `None` where there is none, so that the server says what it wants. One that ends soon is
    /// renewed in the background, one that has ended before the call goes on.
    ///
    /// # Errors
    /// It has ended, and there is no new one.
    pub async fn bearer(self: &Arc<Self>, who: &Principal) -> Result<Option<Bearer>, LoginError> {
        let held = self.slot(who);
        self.refresh_from_vault(&held, who).await;
        let (granted, rests) = {
            let state = held.state();
            let granted = state
                .account
                .as_ref()
                .and_then(|account| account.granted.clone());
            (
                granted,
                state.not_before.is_some_and(|until| Instant::now() < until),
            )
        };
        let Some(granted) = granted else {
            return Ok(None);
        };
        let bearer = Bearer(granted.access.clone());
        match self.age(&granted) {
            Freshness::Good => Ok(Some(bearer)),
            Freshness::EndsSoon => {
                if self.renews_alone(&granted) && !rests {
                    // It goes on by itself.
                    drop(self.renewal(&held, who, None, None));
                }
                Ok(Some(bearer))
            }
            // Without a way to a new one the server is asked: it says what it wants.
            Freshness::Over if !self.renews_alone(&granted) => Ok(Some(bearer)),
            Freshness::Over => match self.renewal(&held, who, Some(bearer), None).await {
                // Logged out meanwhile: the server is asked without a token, and says what it wants.
                Err(LoginError::Owed { link: None }) if held.state().account.is_none() => Ok(None),
                outcome => outcome.map(Some),
            },
        }
    }

    /// Another token, after a server has turned `used` away. Where a person has to log in first, the call waits as long as
    /// the config says.
    ///
    /// # Errors
    /// There is none.
    pub async fn refused(
        self: &Arc<Self>,
        who: &Principal,
        used: Option<Bearer>,
        refusal: Refusal,
    ) -> Outcome {
        let held = self.slot(who);
        let outcome = self.renewal(&held, who, used.clone(), Some(refusal)).await;
        let wait = self.shared.config.login_wait;
        if !matches!(outcome, Err(LoginError::Owed { link: Some(_) })) || wait.is_zero() {
            return outcome;
        }
        self.shared.logins.wait(self, who, wait).await;
        let granted = held
            .state()
            .account
            .as_ref()
            .and_then(|account| account.granted.clone());
        match granted.map(|granted| Bearer(granted.access)) {
            Some(bearer) if Some(&bearer) != used.as_ref() => Ok(bearer),
            _ => outcome,
        }
    }

    /// Who the gate is at the server of a plan, and the address that a person has to go to.
    /// `known` is the client of an earlier attempt at the same login.
    pub(super) async fn begin(
        &self,
        plan: &Plan,
        redirect_uri: &str,
        known: Option<Client>,
    ) -> Result<(Client, Attempt), LoginError> {
        let client = self.identified(plan, redirect_uri, known).await?;
        let attempt = grant::begin(
            &plan.server,
            &client,
            redirect_uri,
            &plan.party.resource,
            &plan.scopes,
        );
        Ok((client, attempt.map_err(|error| login_error(&error))?))
    }

    /// Who the gate is at the server of a plan.
    async fn identified(
        &self,
        plan: &Plan,
        redirect_uri: &str,
        known: Option<Client>,
    ) -> Result<Client, LoginError> {
        let known = match known {
            Some(client) => Some(client),
            None => self.known_client(plan).await?,
        };
        let uris = [redirect_uri.to_owned()];
        let document = self.shared.logins.document_url();
        let server = &plan.server;
        let name = &self.shared.config.client_name;
        let client = identity::identify(
            &self.fetcher,
            server,
            &self.login,
            document.as_deref(),
            &uris,
            known.as_ref(),
            name,
        )
        .await;
        client.map_err(|error| told_identity(&error))
    }

    /// Turns an authorization server's answer into a token, and keeps it.
    pub(super) async fn end(
        self: &Arc<Self>,
        plan: &Plan,
        client: Client,
        redirect_uri: &str,
        attempt: &Attempt,
        answer: &Answer,
    ) -> Result<(), LoginError> {
        let server = &plan.server;
        let code = grant::check_answer(server, &attempt.state, answer)
            .map_err(|error| login_error(&error))?;
        let resource = plan.party.resource.as_str();
        let verifier = &attempt.verifier;
        let key = self.key.as_ref();
        let granted = grant::redeem(
            &self.fetcher,
            server,
            &client,
            key,
            redirect_uri,
            resource,
            &code,
            verifier,
            &plan.scopes,
        )
        .await;
        self.granted(plan, client, granted).await
    }

    /// Keeps what a login gave.
    async fn granted(
        self: &Arc<Self>,
        plan: &Plan,
        client: Client,
        granted: Result<TokenGrant, GrantError>,
    ) -> Result<(), LoginError> {
        let granted = granted.map_err(|error| {
            self.record(
                &plan.party.principal,
                "login_failed",
                Some(&error.to_string()),
            );
            login_error(&error)
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
        let who = plan.party.principal.clone();
        let lease = match self.shared.vault() {
            Ok(kept) => kept.lease(&self.upstream, &who).await.map_err(vault),
            Err(error) => Err(error),
        };
        // Kept even if another process holds the lease for too long: what was just granted is newer than all else.
        let kept = self.write(&account).await;
        drop(lease);
        let held = self.slot(&who);
        {
            let mut state = held.state();
            state.account = Some(account);
            state.unwritten = kept.is_err();
        }
        self.shared.logins.settle(self, &who);
        self.record(&who, "logged_in", None);
        kept
    }

    /// The renewal under way, or a new one. It runs on even if nobody waits for it.
    fn renewal(
        self: &Arc<Self>,
        held: &Arc<LoginSlot>,
        who: &Principal,
        used: Option<Bearer>,
        refusal: Option<Refusal>,
    ) -> SharedFuture<BoxFuture<'static, Outcome>> {
        let mut running = held.running.lock();
        if let Some(running) = &*running {
            return running.clone();
        }
        let own = self.clone();
        let mine = held.clone();
        let who = who.clone();
        let work = async move {
            let ending = RenewalGuard::of(mine, own.shared.renewing.clone());
            own.renew(ending.held(), &who, used, refusal).await
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

    /// Reads the vault where the login in it has changed, and now and then in any case: somebody may have logged in or out
    /// by another process, or renewed there.
    async fn refresh_from_vault(&self, held: &LoginSlot, who: &Principal) {
        let Some(kept) = &self.shared.vault else {
            return;
        };
        if !held.state().begin_stamp_check(STAMP_AGAIN) {
            return;
        }
        let stamp = kept.stamp(&self.upstream, who).await.ok();
        {
            let mut state = held.state();
            let known = state
                .account
                .as_ref()
                .is_some_and(|account| account.granted.is_some());
            let rests = if known { LOOK_AFTER } else { LOOK_AGAIN };
            let is_recent = state.looked.is_some_and(|looked| looked.elapsed() < rests);
            if state.unwritten || is_recent && stamp.is_none_or(|stamp| stamp == state.stamp) {
                return;
            }
            state.looked = Some(Instant::now());
            state.stamp = stamp.flatten();
        }
        let account = match kept.read(&self.upstream, who).await {
            Ok(account) => account,
            // Whether it matters shows when the server wants a token.
            Err(error) => {
                return tracing::warn!(upstream = self.upstream, %error, "cannot read the vault");
            }
        };
        let logged_in = account
            .as_ref()
            .is_some_and(|account| account.granted.is_some());
        held.state().take_up(account);
        if logged_in && self.shared.logins.settle(self, who) {
            self.record(who, "logged_in", None);
        }
    }

    async fn write(&self, account: &Account) -> Result<(), LoginError> {
        self.shared.vault()?.write(account).await.map_err(vault)
    }

    fn slot(&self, who: &Principal) -> Arc<LoginSlot> {
        let mut held = self.held.lock();
        if held.len() >= HELD {
            held.retain(|_, held| Arc::strong_count(held) > 1);
        }
        held.entry(who.clone()).or_default().clone()
    }

    fn age(&self, granted: &TokenGrant) -> Freshness {
        let (now, Some(end)) = (unix_now(), granted.expires_unix) else {
            return Freshness::Good;
        };
        let lasts = end.saturating_sub(granted.given_unix);
        let early = self.shared.config.renew_before.as_secs().min(lasts / 4);
        match end.saturating_sub(now) {
            0 => Freshness::Over,
            left if left <= early => Freshness::EndsSoon,
            _ => Freshness::Good,
        }
    }

    fn record(&self, who: &Principal, outcome: &'static str, error: Option<&str>) {
        let held = self.slot(who);
        let expires_unix = held
            .state()
            .account
            .as_ref()
            .and_then(|account| account.granted.as_ref()?.expires_unix);
        let owed = self.shared.logins.count(&self.upstream);
        let login = Login {
            upstream: &self.upstream,
            principal: &who.to_string(),
            outcome,
            error,
            expires_unix,
            owed,
        };
        if let Err(error) = self.shared.recorder.record(Event::Login(&login)) {
            tracing::error!(%error, "cannot write the audit log");
        }
    }
}

enum Freshness {
    Good,
    EndsSoon,
    Over,
}

/// A failure at the token endpoint, in words for the agent or a page.
fn login_error(error: &GrantError) -> LoginError {
    if error.transient() {
        LoginError::Unreachable(error.to_string())
    } else {
        LoginError::Operator(error.to_string())
    }
}

fn told_identity(error: &IdentityError) -> LoginError {
    if error.transient() {
        LoginError::Unreachable(error.to_string())
    } else {
        LoginError::Operator(error.to_string())
    }
}

fn vault(error: VaultError) -> LoginError {
    LoginError::Vault(error.to_string())
}
