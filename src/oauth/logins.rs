//! Pending logins: who has to log in where, the ticket for the login page, and the answer that
//! comes back.
//!
//! A login uses two secrets. The ticket is in the link that the principal's agent gets; its holder
//! may begin the login. The state is sent to the authorization server and comes back once. It is
//! created only when a person has read the page and continued, and is bound to that person's
//! browser, so that nobody can complete a login that somebody else began.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use super::authorizer::Authorizer;
use super::grant::{Answer, Attempt};
use super::{
    AuthorizationServer, Client, LoginError, LoginParty, Principal, Scopes, SecretText, browser,
};
use crate::config::{Callback, OAuthConfig};
use crate::protocol::secret;

/// Maximum number of times per hour that the gate opens a browser for one principal at one server.
const BROWSERS_PER_HOUR: usize = 6;

/// A login that a person has to consent to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whose login it is, and at which authorization server.
    pub party: LoginParty,
    pub server: AuthorizationServer,
    /// The scopes that are requested.
    pub scopes: Scopes,
}

/// All pending logins.
pub struct Logins {
    required: Mutex<HashMap<Box<str>, RequiredLogin>>,
    browsers: Mutex<HashMap<(String, Principal), Vec<Instant>>>,
    /// The base URL at which people reach the gate, without a trailing slash; known once the gate
    /// listens.
    base: OnceLock<String>,
    config: OAuthConfig,
}

struct RequiredLogin {
    authorizer: Arc<Authorizer>,
    plan: Plan,
    since: Instant,
    started: Option<StartedLogin>,
    completed: watch::Sender<bool>,
}

/// A login that a person has begun.
struct StartedLogin {
    /// The secret that the browser that began the login must present.
    browser: SecretText,
    client: Client,
    redirect_uri: String,
    attempt: Attempt,
}

/// The content of a login page.
#[derive(Clone, Debug)]
pub struct LoginPage {
    /// The upstream's name in the config.
    pub upstream: String,
    /// Who logs in there, and the requested scopes.
    pub plan: Plan,
}

impl Logins {
    /// Returns an empty set of logins.
    pub fn new(config: &OAuthConfig) -> Self {
        Self {
            required: Mutex::default(),
            browsers: Mutex::default(),
            base: OnceLock::new(),
            config: config.clone(),
        }
    }

    /// Sets the base URL at which people reach the gate, such as `http://127.0.0.1:8800`. The URL
    /// of a hosted callback takes precedence.
    pub fn serve_at(&self, base: &str) {
        let base = match &self.config.callback {
            Callback::Hosted(public) => public.trim_end_matches('/').to_owned(),
            Callback::Loopback => base.to_owned(),
        };
        // Only the first listener counts.
        self.base.get_or_init(|| base);
    }

    /// Returns the URL of the gate's client metadata document, if others can fetch it: the one in
    /// the config, or one below the gate's own public `https` URL.
    pub fn document_url(&self) -> Option<String> {
        if let Some(url) = &self.config.client_document {
            return Some(url.clone());
        }
        let is_hosted = matches!(self.config.callback, Callback::Hosted(_));
        is_hosted.then(|| Some(format!("{}/oauth/client.json", self.base()?)))?
    }

    /// Returns the URL to which authorization servers redirect users.
    pub fn redirect_uri(&self) -> Option<String> {
        Some(format!("{}/oauth/callback", self.base()?))
    }

    fn base(&self) -> Option<&String> {
        self.base.get()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, RequiredLogin>> {
        let mut logins = self.required.lock();
        let lifetime = self.config.login;
        logins.retain(|_, login| login.since.elapsed() < lifetime);
        logins
    }

    /// Records that a login is required, and returns the link to its page and whether it is new. If
    /// a pending login requests at least the same scopes, it is reused: there is one page, however
    /// many calls need it.
    ///
    /// # Errors
    /// Fails if there are too many pending logins.
    pub(super) fn require(
        &self,
        authorizer: &Arc<Authorizer>,
        plan: Plan,
    ) -> Result<(LoginError, bool), LoginError> {
        let Some(base) = self.base() else {
            return Ok((LoginError::Owed { link: None }, true));
        };
        let mut logins = self.lock();
        let existing = logins
            .iter()
            .find(|(_, login)| login.is_of(authorizer, &plan.party.principal));
        let existing_ticket = existing
            .map(|(ticket, login)| (ticket.clone(), login.covers(&plan.party, &plan.scopes)));
        if let Some((ticket, true)) = existing_ticket {
            return Ok((login_required(base, &ticket), false));
        }
        if let Some((stale, _)) = existing_ticket {
            logins.remove(&stale);
        }
        if logins.len() >= self.config.pending_logins {
            return Err(LoginError::Limit("pending_logins"));
        }
        let ticket: Box<str> = secret().into();
        let upstream = authorizer.upstream().to_owned();
        let principal = plan.party.principal.clone();
        let (authorizer, since, completed) =
            (authorizer.clone(), Instant::now(), watch::channel(false).0);
        logins.insert(
            ticket.clone(),
            RequiredLogin {
                authorizer,
                plan,
                since,
                started: None,
                completed,
            },
        );
        if self.config.open_browser && self.may_open(upstream, principal) {
            browser::open(&link(base, &ticket));
        }
        Ok((login_required(base, &ticket), true))
    }

    /// Returns the pending login of a principal, if it includes these scopes.
    pub(super) fn pending(
        &self,
        authorizer: &Authorizer,
        principal: &Principal,
        scopes: &Scopes,
    ) -> Option<LoginError> {
        let base = self.base()?;
        let logins = self.lock();
        let entry = logins.iter().find(|(_, login)| {
            login.is_of(authorizer, principal) && scopes.is_subset_of(&login.plan.scopes)
        });
        entry.map(|(ticket, _)| login_required(base, ticket))
    }

    fn may_open(&self, upstream: String, principal: Principal) -> bool {
        let mut browsers = self.browsers.lock();
        browsers.retain(|_, times| {
            times.retain(|time| time.elapsed() < Duration::from_secs(3600));
            !times.is_empty()
        });
        let times = browsers.entry((upstream, principal)).or_default();
        times.push(Instant::now());
        times.len() <= BROWSERS_PER_HOUR
    }

    /// Returns the number of pending logins of an upstream.
    pub fn count(&self, upstream: &str) -> usize {
        self.lock()
            .values()
            .filter(|login| login.authorizer.upstream() == upstream)
            .count()
    }

    /// Waits until the pending login of this principal is completed, or the time is over.
    pub(super) async fn wait(
        &self,
        authorizer: &Authorizer,
        principal: &Principal,
        time: Duration,
    ) {
        let completion = self
            .lock()
            .values()
            .find(|login| login.is_of(authorizer, principal))
            .map(|login| login.completed.subscribe());
        if let Some(mut completion) = completion {
            // On timeout or if the login was dropped, the caller uses whatever account there is.
            drop(tokio::time::timeout(time, completion.wait_for(|done| *done)).await);
        }
    }

    /// Removes the pending logins of a principal that has logged in, and returns whether there were
    /// any.
    pub(super) fn settle(&self, authorizer: &Authorizer, principal: &Principal) -> bool {
        let mut removed = false;
        self.lock().retain(|_, login| {
            let is_settled = login.is_of(authorizer, principal);
            if is_settled {
                login.completed.send_replace(true);
            }
            removed |= is_settled;
            !is_settled
        });
        removed
    }

    /// Returns the page of a ticket; `None` if the ticket is unknown or has expired.
    pub fn page(&self, ticket: &str) -> Option<LoginPage> {
        let logins = self.lock();
        let login = logins.get(ticket)?;
        let upstream = login.authorizer.upstream().to_owned();
        Some(LoginPage {
            upstream,
            plan: login.plan.clone(),
        })
    }

    /// Begins a login when a person has read the page and continued. Returns the URL to visit, and
    /// the secret that the browser has to present when it comes back.
    ///
    /// # Errors
    /// Fails if the ticket is unknown, or if the gate cannot be a client there.
    pub async fn begin(&self, ticket: &str) -> Result<(String, SecretText), LoginError> {
        let unknown_ticket =
            || LoginError::Operator("unknown or expired login: make the call again".into());
        let (authorizer, plan, earlier_client) = {
            let logins = self.lock();
            let login = logins.get(ticket).ok_or_else(unknown_ticket)?;
            // A person who continues twice does not cause a second registration.
            let earlier_client = login.started.as_ref().map(|begun| begun.client.clone());
            (login.authorizer.clone(), login.plan.clone(), earlier_client)
        };
        let redirect_uri = self.redirect_uri().ok_or_else(unknown_ticket)?;
        let (client, attempt) = authorizer
            .begin(&plan, &redirect_uri, earlier_client)
            .await?;
        let browser = SecretText::new(secret());
        let url = attempt.url.clone();
        let mut logins = self.lock();
        let login = logins.get_mut(ticket).ok_or_else(unknown_ticket)?;
        login.started = Some(StartedLogin {
            browser: browser.clone(),
            client,
            redirect_uri,
            attempt,
        });
        Ok((url, browser))
    }

    /// Completes a login with the answer with which the authorization server redirected the
    /// browser.
    ///
    /// # Errors
    /// Fails if the answer belongs to no login that was begun in this browser, or if it is a
    /// refusal.
    pub async fn end(
        &self,
        answer: &Answer,
        route: CallbackRoute<'_>,
    ) -> Result<String, LoginError> {
        let (authorizer, plan, started_login) = {
            let mut logins = self.lock();
            let ticket = logins
                .iter()
                .find(|(ticket, login)| login.awaits(ticket, answer, route))
                .map(|(ticket, _)| ticket.clone());
            let login = ticket.and_then(|ticket| logins.get_mut(&ticket));
            // Removed, since a state is valid only once.
            let parts = login.and_then(|login| {
                Some((
                    login.authorizer.clone(),
                    login.plan.clone(),
                    login.started.take()?,
                ))
            });
            parts.ok_or_else(|| {
                LoginError::Operator(
                    "this answer does not belong to a login started in this browser".into(),
                )
            })?
        };
        let StartedLogin {
            client,
            redirect_uri,
            attempt,
            ..
        } = started_login;
        authorizer
            .end(&plan, client, &redirect_uri, &attempt, answer)
            .await?;
        Ok(authorizer.upstream().to_owned())
    }
}

/// The route on which an authorization server's answer arrives.
#[derive(Clone, Copy)]
pub enum CallbackRoute<'a> {
    /// A browser, with the secrets that it presents for the logins that it began.
    Browser(&'a [&'a str]),
    /// The page of this ticket, into which the user pasted the answer.
    Page(&'a str),
}

impl RequiredLogin {
    fn is_of(&self, authorizer: &Authorizer, principal: &Principal) -> bool {
        std::ptr::eq(&*self.authorizer, authorizer) && self.plan.party.principal == *principal
    }

    fn covers(&self, party: &LoginParty, scopes: &Scopes) -> bool {
        self.plan.party == *party && scopes.is_subset_of(&self.plan.scopes)
    }

    fn awaits(&self, ticket: &str, answer: &Answer, route: CallbackRoute<'_>) -> bool {
        let Some(started) = &self.started else {
            return false;
        };
        let same = |one: &str, other: &str| bool::from(one.as_bytes().ct_eq(other.as_bytes()));
        let matches_route = match route {
            CallbackRoute::Browser(browser_secrets) => browser_secrets
                .iter()
                .any(|browser_secret| same(browser_secret, started.browser.expose())),
            CallbackRoute::Page(page_ticket) => same(page_ticket, ticket),
        };
        matches_route
            && answer
                .state
                .as_ref()
                .is_some_and(|state| same(state.expose(), started.attempt.state.expose()))
    }
}

fn login_required(base: &str, ticket: &str) -> LoginError {
    LoginError::Owed {
        link: Some(link(base, ticket).into()),
    }
}

fn link(base: &str, ticket: &str) -> String {
    format!("{base}/oauth/login/{ticket}")
}
