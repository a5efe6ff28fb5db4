//! Renewal: the only place where tokens are replaced.

mod without_user;

use std::time::{Duration, Instant};

use super::*;
use crate::config::{EnterpriseConfig, Grant};
use crate::oauth::discover::{Discovery, DiscoveryHints, discover, server_metadata};
use crate::oauth::{Origin, Scopes};

/// Maximum number of times per hour that more scopes are requested from one principal; further
/// refusals by the server are passed on.
const STEP_UPS_PER_HOUR: usize = 3;
/// A token that is refused less than this many seconds after its renewal is not renewed again: a
/// person has to log in.
const RENEWED_JUST_NOW: u64 = 5;

impl Authorizer {
    /// Replaces a token. `used` is the token that is no longer sufficient; `refusal` is the
    /// server's response to it, if it was sent.
    pub(super) async fn renew(
        self: &Arc<Self>,
        slot: &LoginSlot,
        used: Option<Bearer>,
        refusal: Option<Refusal>,
    ) -> Outcome {
        if let Some(error) = self.pending_login(&slot.principal, used.as_ref(), refusal.as_ref()) {
            return Err(error);
        }
        // Done before the lease is taken: a server that is slow to name its authorization server
        // must not use up the lease.
        let discovery = match &refusal {
            Some(refusal) => {
                let cached_account = slot.state().account.clone();
                Some(
                    self.discover_server(refusal.challenge(), cached_account.as_ref())
                        .await?,
                )
            }
            None => None,
        };
        let vault = self.shared.vault()?;
        let lease = vault.lease(&self.upstream, &slot.principal).await?;
        let stored = vault.read(&self.upstream, &slot.principal).await?;
        let account = {
            let state = slot.state();
            // An account that could not be written is newer than the vault's. Otherwise the vault
            // takes precedence: the principal may have logged out.
            if state.unwritten {
                state.account.clone()
            } else {
                stored
            }
        };
        if let Some(bearer) =
            self.renewed_elsewhere(slot, account.as_ref(), used.as_ref(), refusal.as_ref())
        {
            return Ok(bearer);
        }
        let outcome = match (refusal.zip(discovery), account) {
            (None, Some(account)) => self.refresh(slot, account).await,
            (None, None) => {
                slot.state().account = None;
                Err(LoginError::Owed { link: None })
            }
            (Some((Refusal::Token(challenge), discovery)), account) => {
                self.handle_unauthorized(slot, account, used.is_some(), &challenge, discovery)
                    .await
            }
            (Some((Refusal::Scope(challenge), discovery)), account) => {
                self.step_up(slot, account, &challenge, discovery).await
            }
        };
        drop(lease);
        match outcome {
            // The authorization server may have changed, which only the MCP server can confirm.
            Err(LoginError::Unreachable(why)) => self.log_in_if_moved(slot, why).await,
            outcome => outcome,
        }
    }

    /// Returns the pending login of this principal, if another one would not request more scopes.
    fn pending_login(
        &self,
        principal: &Principal,
        used: Option<&Bearer>,
        refusal: Option<&Refusal>,
    ) -> Option<LoginError> {
        let requested_scopes = match refusal? {
            Refusal::Token(challenge) if used.is_none() => {
                challenge.scope.clone().unwrap_or_default()
            }
            Refusal::Scope(challenge) => challenge.scope.clone()?,
            Refusal::Token(_) => return None,
        };
        self.shared
            .logins
            .pending(self, principal, &requested_scopes)
    }

    /// Called when an authorization server was unreachable: requires a login if the resource now
    /// names another one.
    async fn log_in_if_moved(self: &Arc<Self>, slot: &LoginSlot, why: String) -> Outcome {
        let account = slot.state().account.clone();
        let discovery = self
            .discover_server(&Challenge::default(), account.as_ref())
            .await;
        let (Ok(discovery), Some(account)) = (discovery, account) else {
            return Err(LoginError::Unreachable(why));
        };
        if discovery.login_party(&slot.principal) == account.party {
            return Err(LoginError::Unreachable(why));
        }
        let scopes =
            scopes::initial(&self.login, &Challenge::default(), &discovery).union(&account.asked);
        self.start_login(slot, discovery, scopes, None).await
    }

    /// Returns the token from a renewal by another process, or from one that has just completed.
    fn renewed_elsewhere(
        &self,
        slot: &LoginSlot,
        account: Option<&Account>,
        used: Option<&Bearer>,
        refusal: Option<&Refusal>,
    ) -> Option<Bearer> {
        let account = account?;
        let granted = account.granted.as_ref()?;
        let bearer = Bearer(granted.access.clone());
        let is_newer = match (used, refusal) {
            // For an early renewal, any token that does not expire soon is new.
            (None, None) => matches!(self.freshness(granted), Freshness::Good),
            (used, _) => {
                used != Some(&bearer) && !matches!(self.freshness(granted), Freshness::Expired)
            }
        };
        is_newer.then(|| {
            slot.state().account = Some(account.clone());
            bearer
        })
    }

    /// Reports whether a new token can be obtained without a person.
    pub(super) fn can_renew_without_user(&self, granted: &TokenGrant) -> bool {
        granted.refresh.is_some() || self.login.grant != Grant::Person
    }

    /// Renews the login of an account; if that is no longer possible, a new login is required.
    async fn refresh(self: &Arc<Self>, slot: &LoginSlot, account: Account) -> Outcome {
        if self.login.grant != Grant::Person {
            return self
                .renew_without_user(slot, plan_from_account(&account), Some(account))
                .await;
        }
        let Some((granted, refresh)) = account
            .granted
            .as_ref()
            .and_then(|granted| Some((granted, granted.refresh.as_ref()?)))
        else {
            return self.require_login(&slot.principal, plan_from_account(&account));
        };
        let token_client = TokenClient {
            fetcher: &self.fetcher,
            server: &account.server,
            client: &account.client,
            key: self.key.as_ref(),
            resource: &account.party.resource,
            scopes: &granted.scopes,
        };
        match token_client.refresh(refresh).await {
            Ok(granted) => {
                let granted = Some(granted);
                let account = Account { granted, ..account };
                self.store_renewal(slot, account).await
            }
            Err(error) if error.ends_login() && !rejects_configured_client(&account, &error) => {
                self.end_login(slot, account, &error).await
            }
            Err(error) => {
                self.record_failure(slot, account, &error);
                Err(error.into())
            }
        }
    }

    /// Stores the result of a renewal. It is used even if it cannot be written, since the old token
    /// is no longer valid.
    async fn store_renewal(&self, slot: &LoginSlot, account: Account) -> Outcome {
        let account = Account {
            last_refresh_unix: Some(unix_now()),
            last_error: None,
            ..account
        };
        let Some(bearer) = account
            .granted
            .as_ref()
            .map(|granted| Bearer(granted.access.clone()))
        else {
            return Err(LoginError::Unreachable(
                "there is no token in its answer".into(),
            ));
        };
        let written = self.write(&account).await;
        {
            let mut state = slot.state();
            state.account = Some(account);
            state.unwritten = written.is_err();
            state.not_before = None;
        }
        if let Err(error) = written {
            tracing::error!(upstream = self.upstream, %error, "cannot store a renewed login; it is lost when the gateway stops");
        }
        self.record(&slot.principal, "renewed", None);
        Ok(bearer)
    }

    /// Records a failure that may be temporary. The old refresh token is kept, since the server did
    /// not invalidate it.
    fn record_failure(&self, slot: &LoginSlot, account: Account, error: &GrantError) {
        {
            let mut state = slot.state();
            state.not_before = Some(Instant::now() + RETRY_AFTER);
            state.account = Some(Account {
                last_error: Some(error.to_string()),
                ..account
            });
        }
        self.record(&slot.principal, "unreachable", Some(&error.to_string()));
    }

    /// Ends a login that the authorization server no longer accepts.
    async fn end_login(
        self: &Arc<Self>,
        slot: &LoginSlot,
        mut account: Account,
        error: &GrantError,
    ) -> Outcome {
        account.granted = None;
        account.last_error = Some(error.to_string());
        // A registration that no longer exists is useless: the next login makes a new one.
        let client_rejected = matches!(error, GrantError::InvalidClient);
        let plan = plan_from_account(&account);
        let stored = if client_rejected {
            let vault = self.shared.vault()?;
            let erased = vault.erase(&self.upstream, &slot.principal).await;
            erased.map(drop).map_err(LoginError::from)
        } else {
            self.write(&account).await
        };
        if let Err(error) = stored {
            tracing::error!(upstream = self.upstream, %error, "cannot record the end of a login");
        }
        slot.state().account = (!client_rejected).then_some(account);
        self.record(
            &slot.principal,
            if matches!(error, GrantError::InvalidGrant) {
                "ended"
            } else {
                "refused"
            },
            Some(&error.to_string()),
        );
        self.require_login(&slot.principal, plan)
    }

    /// Handles a 401: discovers the authorization server again, since it may have changed, and
    /// obtains a token there.
    async fn handle_unauthorized(
        self: &Arc<Self>,
        slot: &LoginSlot,
        account: Option<Account>,
        used: bool,
        challenge: &Challenge,
        discovery: Discovery,
    ) -> Outcome {
        let party = discovery.login_party(&slot.principal);
        let account = account.filter(|account| account.party == party);
        let renewable = account
            .clone()
            .filter(|account| used && self.login.grant == Grant::Person && may_refresh(account));
        if let Some(account) = renewable {
            return self
                .refresh(
                    slot,
                    Account {
                        server: discovery.server,
                        ..account
                    },
                )
                .await;
        }
        let earlier_scopes = account
            .as_ref()
            .map(|account| account.asked.clone())
            .unwrap_or_default();
        let scopes = scopes::initial(&self.login, challenge, &discovery).union(&earlier_scopes);
        self.start_login(slot, discovery, scopes, account).await
    }

    /// Handles a 403 `insufficient_scope`: requests the scopes that were requested before and those
    /// that the server names (2025-11-25, Authorization, Step-Up Authorization Flow). A refresh
    /// cannot extend a grant.
    async fn step_up(
        self: &Arc<Self>,
        slot: &LoginSlot,
        account: Option<Account>,
        challenge: &Challenge,
        discovery: Discovery,
    ) -> Outcome {
        {
            let mut state = slot.state();
            state
                .step_ups
                .retain(|time| time.elapsed() < Duration::from_secs(3600));
            if state.step_ups.len() >= STEP_UPS_PER_HOUR {
                return Err(LoginError::Denied);
            }
            state.step_ups.push(Instant::now());
        }
        let party = discovery.login_party(&slot.principal);
        let account = account.filter(|account| account.party == party);
        let requested = challenge.scope.clone().unwrap_or_default();
        let earlier_scopes = account
            .as_ref()
            .map(|account| account.asked.union(&granted_scopes(account)))
            .unwrap_or_default();
        let scopes =
            scopes::with_offline_access(requested.union(&earlier_scopes), &self.login, &discovery);
        self.start_login(slot, discovery, scopes, account).await
    }

    /// Starts a new login at the discovered server: by the client itself, or by a person.
    async fn start_login(
        self: &Arc<Self>,
        slot: &LoginSlot,
        discovery: Discovery,
        scopes: Scopes,
        account: Option<Account>,
    ) -> Outcome {
        let plan = Plan {
            party: discovery.login_party(&slot.principal),
            server: discovery.server,
            scopes,
        };
        match self.login.grant {
            Grant::Person => self.require_login(&slot.principal, plan),
            Grant::Client | Grant::Enterprise(_) => {
                self.renew_without_user(slot, plan, account).await
            }
        }
    }

    fn require_login(self: &Arc<Self>, who: &Principal, plan: Plan) -> Outcome {
        let (error, is_new) = self.shared.logins.require(self, plan)?;
        if is_new {
            self.record(who, "owed", None);
        }
        Err(error)
    }

    pub(super) async fn discover_server(
        &self,
        challenge: &Challenge,
        account: Option<&Account>,
    ) -> Result<Discovery, LoginError> {
        let preferred = self
            .login
            .issuer
            .as_deref()
            .or(account.map(|account| account.party.issuer.as_str()));
        let expected = DiscoveryHints {
            issuer: preferred,
            resource: self.login.resource.as_deref(),
        };
        Ok(discover(&self.fetcher, &self.url, challenge, expected).await?)
    }

    /// Returns the client that was stored for exactly this party.
    pub(super) async fn known_client(&self, plan: &Plan) -> Result<Option<Client>, LoginError> {
        let account = self
            .shared
            .vault()?
            .read(&self.upstream, &plan.party.principal)
            .await?;
        Ok(account
            .filter(|account| account.party == plan.party)
            .map(|account| account.client))
    }
}

/// Reports whether a refused token may be renewed: not if it was just renewed, since that did not
/// help.
fn may_refresh(account: &Account) -> bool {
    // A renewal time in the future was recorded before the clock jumped, and is ignored.
    let since_renewal = account
        .last_refresh_unix
        .and_then(|renewed_at| unix_now().checked_sub(renewed_at));
    let just_renewed = since_renewal.is_some_and(|since| since < RENEWED_JUST_NOW);
    !just_renewed
        && account
            .granted
            .as_ref()
            .is_some_and(|granted| granted.refresh.is_some())
}

/// Reports whether the server rejects the config's own client: once its secret or key is corrected
/// in the config, the refresh token is valid as before.
fn rejects_configured_client(account: &Account, error: &GrantError) -> bool {
    *error == GrantError::InvalidClient && account.client.origin == Origin::Preregistered
}

/// Returns the plan of the login that created an account, to repeat it.
fn plan_from_account(account: &Account) -> Plan {
    Plan {
        party: account.party.clone(),
        server: account.server.clone(),
        scopes: account.asked.clone(),
    }
}

fn granted_scopes(account: &Account) -> Scopes {
    account
        .granted
        .as_ref()
        .map(|granted| granted.scopes.clone())
        .unwrap_or_default()
}
