//! Renewal: the only place where tokens are replaced.

use std::time::{Duration, Instant};

use super::*;
use crate::config::{EnterpriseConfig, Grant};
use crate::oauth::discover::{DiscoverError, Discovery, DiscoveryHints, discover, server_metadata};
use crate::oauth::{LoginParty, Origin, Scopes};

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
        held: &LoginSlot,
        who: &Principal,
        used: Option<Bearer>,
        refusal: Option<Refusal>,
    ) -> Outcome {
        if let Some(owed) = self.owed_already(who, used.as_ref(), refusal.as_ref()) {
            return Err(owed);
        }
        // Done before the lease is taken: a server that is slow to name its authorization server
        // must not use up the lease.
        let found = match &refusal {
            Some(refusal) => {
                let known = held.state().account.clone();
                Some(self.discovered(refusal.challenge(), known.as_ref()).await?)
            }
            None => None,
        };
        let lease = self
            .shared
            .vault()?
            .lease(&self.upstream, who)
            .await
            .map_err(vault)?;
        let read = self
            .shared
            .vault()?
            .read(&self.upstream, who)
            .await
            .map_err(vault)?;
        let account = {
            let state = held.state();
            // An account that could not be written is newer than the vault's. Otherwise the vault
            // takes precedence: the principal may have logged out.
            if state.unwritten {
                state.account.clone()
            } else {
                read
            }
        };
        if let Some(bearer) =
            self.renewed_elsewhere(held, account.as_ref(), used.as_ref(), refusal.as_ref())
        {
            return Ok(bearer);
        }
        let outcome = match (refusal.zip(found), account) {
            (None, Some(account)) => self.refresh(held, who, account).await,
            (None, None) => {
                held.state().account = None;
                Err(LoginError::Owed { link: None })
            }
            (Some((Refusal::Token(challenge), found)), account) => {
                self.anew(held, who, account, used.is_some(), (&challenge, found))
                    .await
            }
            (Some((Refusal::Scope(challenge), found)), account) => {
                self.step_up(held, who, account, (&challenge, found)).await
            }
        };
        drop(lease);
        match outcome {
            // The authorization server may have changed, which only the MCP server can confirm.
            Err(LoginError::Unreachable(why)) => self.moved(held, who, why).await,
            outcome => outcome,
        }
    }

    /// Returns the pending login of this principal, if another one would not request more scopes.
    fn owed_already(
        &self,
        who: &Principal,
        used: Option<&Bearer>,
        refusal: Option<&Refusal>,
    ) -> Option<LoginError> {
        let wanted = match refusal? {
            Refusal::Token(challenge) if used.is_none() => {
                challenge.scope.clone().unwrap_or_default()
            }
            Refusal::Scope(challenge) => challenge.scope.clone()?,
            Refusal::Token(_) => return None,
        };
        self.shared.logins.pending(self, who, &wanted)
    }

    /// Called when an authorization server was unreachable: requires a login if the resource now
    /// names another one.
    async fn moved(self: &Arc<Self>, held: &LoginSlot, who: &Principal, why: String) -> Outcome {
        let account = held.state().account.clone();
        let found = self
            .discovered(&Challenge::default(), account.as_ref())
            .await;
        let (Ok(found), Some(account)) = (found, account) else {
            return Err(LoginError::Unreachable(why));
        };
        let party = LoginParty {
            issuer: found.server.issuer.clone(),
            resource: found.resource.clone(),
            principal: who.clone(),
        };
        if party == account.party {
            return Err(LoginError::Unreachable(why));
        }
        let scopes =
            scopes::first(&self.login, &Challenge::default(), &found).union(&account.asked);
        self.get(
            held,
            who,
            Plan {
                party,
                server: found.server,
                scopes,
            },
            None,
        )
        .await
    }

    /// Returns the token from a renewal by another process, or from one that has just completed.
    fn renewed_elsewhere(
        &self,
        held: &LoginSlot,
        account: Option<&Account>,
        used: Option<&Bearer>,
        refusal: Option<&Refusal>,
    ) -> Option<Bearer> {
        let account = account?;
        let granted = account.granted.as_ref()?;
        let bearer = Bearer(granted.access.clone());
        let newer = match (used, refusal) {
            // For an early renewal, any token that does not expire soon is new.
            (None, None) => matches!(self.age(granted), Freshness::Good),
            (used, _) => used != Some(&bearer) && !matches!(self.age(granted), Freshness::Over),
        };
        newer.then(|| {
            held.state().account = Some(account.clone());
            bearer
        })
    }

    /// Reports whether a new token can be obtained without a person.
    pub(super) fn renews_alone(&self, granted: &TokenGrant) -> bool {
        granted.refresh.is_some() || self.login.grant != Grant::Person
    }

    /// Renews the login of an account; if that is no longer possible, a new login is required.
    async fn refresh(
        self: &Arc<Self>,
        held: &LoginSlot,
        who: &Principal,
        account: Account,
    ) -> Outcome {
        if self.login.grant != Grant::Person {
            return self
                .renew_without_user(held, who, plan(&account), Some(account))
                .await;
        }
        let Some((granted, refresh)) = account
            .granted
            .as_ref()
            .and_then(|granted| Some((granted, granted.refresh.as_ref()?)))
        else {
            return self.require_login(who, plan(&account));
        };
        let (server, client, resource) =
            (&account.server, &account.client, &account.party.resource);
        let scopes = &granted.scopes;
        match grant::refresh(
            &self.fetcher,
            server,
            client,
            self.key.as_ref(),
            refresh,
            resource,
            scopes,
        )
        .await
        {
            Ok(granted) => {
                self.keep(
                    held,
                    who,
                    Account {
                        granted: Some(granted),
                        ..account
                    },
                )
                .await
            }
            Err(error) if error.ends_login() && !misnamed(&account, &error) => {
                self.end_login(held, who, account, &error).await
            }
            Err(error) => {
                self.failed(held, who, account, &error);
                Err(login_error(&error))
            }
        }
    }

    /// Stores the result of a renewal. It is used even if it cannot be written, since the old token
    /// is no longer valid.
    async fn keep(&self, held: &LoginSlot, who: &Principal, account: Account) -> Outcome {
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
            let mut state = held.state();
            state.account = Some(account);
            state.unwritten = written.is_err();
            state.not_before = None;
        }
        if let Err(error) = written {
            tracing::error!(upstream = self.upstream, %error, "cannot store a renewed login; it is lost when the gateway stops");
        }
        self.record(who, "renewed", None);
        Ok(bearer)
    }

    /// Records a failure that may be temporary. The old refresh token is kept, since the server did
    /// not invalidate it.
    fn failed(&self, held: &LoginSlot, who: &Principal, account: Account, error: &GrantError) {
        {
            let mut state = held.state();
            state.not_before = Some(Instant::now() + RETRY_AFTER);
            state.account = Some(Account {
                last_error: Some(error.to_string()),
                ..account
            });
        }
        self.record(who, "unreachable", Some(&error.to_string()));
    }

    /// Ends a login that the authorization server no longer accepts.
    async fn end_login(
        self: &Arc<Self>,
        held: &LoginSlot,
        who: &Principal,
        mut account: Account,
        error: &GrantError,
    ) -> Outcome {
        account.granted = None;
        account.last_error = Some(error.to_string());
        // A registration that no longer exists is useless: the next login makes a new one.
        let gone = matches!(error, GrantError::InvalidClient);
        let plan = plan(&account);
        let noted = if gone {
            self.shared
                .vault()?
                .erase(&self.upstream, who)
                .await
                .map(drop)
                .map_err(vault)
        } else {
            self.write(&account).await
        };
        if let Err(error) = noted {
            tracing::error!(upstream = self.upstream, %error, "cannot record the end of a login");
        }
        held.state().account = (!gone).then_some(account);
        self.record(
            who,
            if matches!(error, GrantError::InvalidGrant) {
                "ended"
            } else {
                "refused"
            },
            Some(&error.to_string()),
        );
        self.require_login(who, plan)
    }

    /// Handles a 401: discovers the authorization server again, since it may have changed, and
    /// obtains a token there.
    async fn anew(
        self: &Arc<Self>,
        held: &LoginSlot,
        who: &Principal,
        account: Option<Account>,
        used: bool,
        (challenge, found): (&Challenge, Discovery),
    ) -> Outcome {
        let party = LoginParty {
            issuer: found.server.issuer.clone(),
            resource: found.resource.clone(),
            principal: who.clone(),
        };
        let account = account.filter(|account| account.party == party);
        let renewable = account
            .clone()
            .filter(|account| used && self.login.grant == Grant::Person && refreshes(account));
        if let Some(account) = renewable {
            return self
                .refresh(
                    held,
                    who,
                    Account {
                        server: found.server,
                        ..account
                    },
                )
                .await;
        }
        let earlier = account
            .as_ref()
            .map(|account| account.asked.clone())
            .unwrap_or_default();
        let scopes = scopes::first(&self.login, challenge, &found).union(&earlier);
        self.get(
            held,
            who,
            Plan {
                party,
                server: found.server,
                scopes,
            },
            account,
        )
        .await
    }

    /// Handles a 403 `insufficient_scope`: requests the scopes that were requested before and those
    /// that the server names (2025-11-25, Authorization, Step-Up Authorization Flow). A refresh
    /// cannot extend a grant.
    async fn step_up(
        self: &Arc<Self>,
        held: &LoginSlot,
        who: &Principal,
        account: Option<Account>,
        (challenge, found): (&Challenge, Discovery),
    ) -> Outcome {
        {
            let mut state = held.state();
            state
                .step_ups
                .retain(|time| time.elapsed() < Duration::from_secs(3600));
            if state.step_ups.len() >= STEP_UPS_PER_HOUR {
                return Err(LoginError::Denied);
            }
            state.step_ups.push(Instant::now());
        }
        let party = LoginParty {
            issuer: found.server.issuer.clone(),
            resource: found.resource.clone(),
            principal: who.clone(),
        };
        let account = account.filter(|account| account.party == party);
        let wanted = challenge.scope.clone().unwrap_or_default();
        let earlier = account
            .as_ref()
            .map(|account| account.asked.union(&granted_scopes(account)))
            .unwrap_or_default();
        let scopes = scopes::with_offline(wanted.union(&earlier), &self.login, &found);
        self.get(
            held,
            who,
            Plan {
                party,
                server: found.server,
                scopes,
            },
            account,
        )
        .await
    }

    /// Starts a new login: by the client itself, or by a person.
    async fn get(
        self: &Arc<Self>,
        held: &LoginSlot,
        who: &Principal,
        plan: Plan,
        account: Option<Account>,
    ) -> Outcome {
        match self.login.grant {
            Grant::Person => self.require_login(who, plan),
            Grant::Client | Grant::Enterprise(_) => {
                self.renew_without_user(held, who, plan, account).await
            }
        }
    }

    /// Obtains a token without a person.
    async fn renew_without_user(
        &self,
        held: &LoginSlot,
        who: &Principal,
        plan: Plan,
        account: Option<Account>,
    ) -> Outcome {
        let server = &plan.server;
        let name = &self.shared.config.client_name;
        let known = account.as_ref().map(|account| &account.client);
        let client =
            identity::identify(&self.fetcher, server, &self.login, None, &[], known, name).await;
        let client = client.map_err(|error| told_identity(&error))?;
        let key = self.key.as_ref();
        let resource = plan.party.resource.as_str();
        let scopes = &plan.scopes;
        let granted = match &self.login.grant {
            Grant::Enterprise(config) => {
                let idp = self.organisation(config).await?;
                grant::enterprise(
                    &self.fetcher,
                    &idp,
                    config,
                    server,
                    &client,
                    key,
                    resource,
                    scopes,
                )
                .await
            }
            Grant::Client | Grant::Person => {
                grant::client_credentials(&self.fetcher, server, &client, key, resource, scopes)
                    .await
            }
        };
        let Plan {
            party,
            server,
            scopes,
        } = plan;
        let upstream = self.upstream.clone();
        match granted {
            Ok(granted) => {
                let granted = Some(granted);
                let asked = scopes;
                let account = Account {
                    upstream,
                    party,
                    server,
                    client,
                    granted,
                    asked,
                    last_refresh_unix: None,
                    last_error: None,
                };
                self.keep(held, who, account).await
            }
            Err(error) => {
                held.state().not_before = Some(Instant::now() + RETRY_AFTER);
                self.record(
                    who,
                    if error.transient() {
                        "unreachable"
                    } else {
                        "refused"
                    },
                    Some(&error.to_string()),
                );
                Err(login_error(&error))
            }
        }
    }

    /// Returns the token endpoint of the organisation's login server.
    async fn organisation(&self, config: &EnterpriseConfig) -> Result<String, LoginError> {
        if let Some(endpoint) = &config.token_endpoint {
            return Ok(endpoint.clone());
        }
        let found = server_metadata(&self.fetcher, &config.issuer).await;
        found
            .map(|server| server.token_endpoint)
            .map_err(|error| told_discovery(&error))
    }

    fn require_login(self: &Arc<Self>, who: &Principal, plan: Plan) -> Outcome {
        let (owed, is_new) = self.shared.logins.require(self, plan)?;
        if is_new {
            self.record(who, "owed", None);
        }
        Err(owed)
    }

    pub(super) async fn discovered(
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
        discover(&self.fetcher, &self.url, challenge, expected)
            .await
            .map_err(|error| told_discovery(&error))
    }

    /// Returns the client that was stored for exactly this party.
    pub(super) async fn known_client(&self, plan: &Plan) -> Result<Option<Client>, LoginError> {
        let account = self
            .shared
            .vault()?
            .read(&self.upstream, &plan.party.principal)
            .await
            .map_err(vault)?;
        Ok(account
            .filter(|account| account.party == plan.party)
            .map(|account| account.client))
    }
}

/// Reports whether a refused token may be renewed: not if it was just renewed, since that did not
/// help.
fn refreshes(account: &Account) -> bool {
    // A renewal time in the future was recorded before the clock jumped, and is ignored.
    let since = account
        .last_refresh_unix
        .and_then(|renewed| unix_now().checked_sub(renewed));
    let renewed = since.is_some_and(|since| since < RENEWED_JUST_NOW);
    !renewed
        && account
            .granted
            .as_ref()
            .is_some_and(|granted| granted.refresh.is_some())
}

/// Reports whether the server rejects the config's own client: once its secret or key is corrected
/// in the config, the refresh token is valid as before.
fn misnamed(account: &Account, error: &GrantError) -> bool {
    *error == GrantError::InvalidClient && account.client.origin == Origin::Preregistered
}

/// Returns the plan of the login that created an account, to repeat it.
fn plan(account: &Account) -> Plan {
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

fn told_discovery(error: &DiscoverError) -> LoginError {
    if error.transient() {
        LoginError::Unreachable(error.to_string())
    } else if error.nothing() {
        LoginError::NotOAuth
    } else {
        LoginError::Operator(error.to_string())
    }
}
