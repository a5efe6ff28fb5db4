//! Logins that are owed: who has to log in where, the page's ticket for it, and what comes back.
//!
//! A login is made of two secrets. The ticket is in the link that the principal's agent gets: who has it may begin.
//! The state goes to the authorization server and comes back once; it is made only when a person has read the page and
//! gone on, and it is bound to that person's browser, so that nobody can end a login that somebody else began.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use super::authorizer::Authorizer;
use super::grant::{Answer, Attempt};
use super::{
    AuthorizationServer, Client, Hidden, LoginError, LoginParty, Principal, Scopes, browser,
};
use crate::config::{Callback, OAuthConfig};

/// How often in an hour the gate opens a browser for one principal at one server, whatever happens there.
const BROWSERS_PER_HOUR: usize = 6;

/// What a person has to agree to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whose login it is, and at which server's.
    pub party: LoginParty,
    pub server: AuthorizationServer,
    /// What is asked for.
    pub scopes: Scopes,
}

/// Every login that is owed.
pub struct Logins {
    owed: Mutex<HashMap<Box<str>, RequiredLogin>>,
    browsers: Mutex<HashMap<(String, Principal), Vec<Instant>>>,
    /// Where people reach the gate, without a slash at the end; known once it listens.
    base: OnceLock<String>,
    config: OAuthConfig,
}

struct RequiredLogin {
    authorizer: Arc<Authorizer>,
    plan: Plan,
    since: Instant,
    begun: Option<StartedLogin>,
    done: watch::Sender<bool>,
}

/// A login that a person has begun.
struct StartedLogin {
    /// What the browser shows that began it.
    browser: Hidden,
    client: Client,
    redirect_uri: String,
    attempt: Attempt,
}

/// What the page of a login shows.
#[derive(Clone, Debug)]
pub struct LoginPage {
    /// The upstream's name in the config.
    pub upstream: String,
    /// Who logs in there, and to what.
    pub plan: Plan,
}

impl Logins {
    /// None so far.
    pub fn new(config: &OAuthConfig) -> Self {
        Self {
            owed: Mutex::default(),
            browsers: Mutex::default(),
            base: OnceLock::new(),
            config: config.clone(),
        }
    }

    /// Says where people reach the gate, as in `http://127.0.0.1:8800`. A hosted callback's own address counts more.
    pub fn serve_at(&self, base: &str) {
        let base = match &self.config.callback {
            Callback::Hosted(public) => public.trim_end_matches('/').to_owned(),
            Callback::Loopback => base.to_owned(),
        };
        // The first listener is the only one.
        self.base.get_or_init(|| base);
    }

    /// The gate's own metadata document, where others can fetch it: where the config says, or under a public `https`
    /// address of the gate's own.
    pub fn document_url(&self) -> Option<String> {
        if let Some(elsewhere) = &self.config.client_document {
            return Some(elsewhere.clone());
        }
        let hosted = matches!(self.config.callback, Callback::Hosted(_));
        hosted.then(|| Some(format!("{}/oauth/client.json", self.base()?)))?
    }

    /// Where authorization servers send people back to.
    pub fn redirect_uri(&self) -> Option<String> {
        Some(format!("{}/oauth/callback", self.base()?))
    }

    fn base(&self) -> Option<&String> {
        self.base.get()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, RequiredLogin>> {
        let mut owed = self.owed.lock();
        let lasts = self.config.login;
        owed.retain(|_, login| login.since.elapsed() < lasts);
        owed
    }

    /// Notes that a login is owed, and gives the link to its page, and whether it is a new one. While one is owed that asks
    /// for as much, it is the same: however many calls come, there is one page.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn require(
        &self,
        authorizer: &Arc<Authorizer>,
        plan: Plan,
    ) -> Result<(LoginError, bool), LoginError> {
        let Some(base) = self.base() else {
            return Ok((LoginError::Owed { link: None }, true));
        };
        let mut owed = self.lock();
        let same = owed
            .iter()
            .find(|(_, login)| login.is_of(authorizer, &plan.party.principal));
        let found =
            same.map(|(ticket, login)| (ticket.clone(), login.covers(&plan.party, &plan.scopes)));
        if let Some((ticket, true)) = found {
            return Ok((owed_at(base, &ticket), false));
        }
        if let Some((stale, _)) = found {
            owed.remove(&stale);
        }
        if owed.len() >= self.config.pending_logins {
            return Err(LoginError::Limit("pending_logins"));
        }
        let ticket: Box<str> = secret().into();
        let upstream = authorizer.upstream().to_owned();
        let principal = plan.party.principal.clone();
        let (authorizer, since, done) =
            (authorizer.clone(), Instant::now(), watch::channel(false).0);
        owed.insert(
            ticket.clone(),
            RequiredLogin {
                authorizer,
                plan,
                since,
                begun: None,
                done,
            },
        );
        if self.config.open_browser && self.may_open(upstream, principal) {
            browser::open(&link(base, &ticket));
        }
        Ok((owed_at(base, &ticket), true))
    }

    /// The login that a principal owes, if it asks for these scopes.
    pub(super) fn pending(
        &self,
        authorizer: &Authorizer,
        principal: &Principal,
        scopes: &Scopes,
    ) -> Option<LoginError> {
        let base = self.base()?;
        let owed = self.lock();
        let found = owed.iter().find(|(_, login)| {
            login.is_of(authorizer, principal) && scopes.within(&login.plan.scopes)
        });
        found.map(|(ticket, _)| owed_at(base, ticket))
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

    /// How many logins an upstream is owed.
    pub fn count(&self, upstream: &str) -> usize {
        self.lock()
            .values()
            .filter(|login| login.authorizer.upstream() == upstream)
            .count()
    }

    /// Waits until the login that this principal owes has been made, or the time is over.
    pub(super) async fn wait(
        &self,
        authorizer: &Authorizer,
        principal: &Principal,
        time: Duration,
    ) {
        let done = self
            .lock()
            .values()
            .find(|login| login.is_of(authorizer, principal))
            .map(|login| login.done.subscribe());
        if let Some(mut done) = done {
            // Over time, or given up: the caller looks at what there is.
            drop(tokio::time::timeout(time, done.wait_for(|done| *done)).await);
        }
    }

    /// Forgets what a principal owes, which has logged in; says whether it owed anything.
    pub(super) fn settle(&self, authorizer: &Authorizer, principal: &Principal) -> bool {
        let mut any = false;
        self.lock().retain(|_, login| {
            let settled = login.is_of(authorizer, principal);
            if settled {
                login.done.send_replace(true);
            }
            any |= settled;
            !settled
        });
        any
    }

    /// What the page of a ticket shows; `None` for one that is not known (any more).
    pub fn page(&self, ticket: &str) -> Option<LoginPage> {
        let owed = self.lock();
        let login = owed.get(ticket)?;
        let upstream = login.authorizer.upstream().to_owned();
        Some(LoginPage {
            upstream,
            plan: login.plan.clone(),
        })
    }

    /// Begins a login: a person has read the page and goes on. Gives the address to go to, and what their browser has to
    /// show when it comes back.
    ///
    /// # Errors
    /// The ticket is not known, or the gate cannot be a client there.
    pub async fn begin(&self, ticket: &str) -> Result<(String, Hidden), LoginError> {
        let unknown =
            || LoginError::Operator("unknown or expired login: make the call again".into());
        let (authorizer, plan, known) = {
            let owed = self.lock();
            let login = owed.get(ticket).ok_or_else(unknown)?;
            // Who goes on twice is registered once.
            let known = login.begun.as_ref().map(|begun| begun.client.clone());
            (login.authorizer.clone(), login.plan.clone(), known)
        };
        let redirect_uri = self.redirect_uri().ok_or_else(unknown)?;
        let (client, attempt) = authorizer.begin(&plan, &redirect_uri, known).await?;
        let browser = Hidden::new(secret());
        let url = attempt.url.clone();
        let mut owed = self.lock();
        let login = owed.get_mut(ticket).ok_or_else(unknown)?;
        login.begun = Some(StartedLogin {
            browser: browser.clone(),
            client,
            redirect_uri,
            attempt,
        });
        Ok((url, browser))
    }

    /// Ends a login with what the authorization server sent the browser back with.
    ///
    /// # Errors
    /// It belongs to no login that was begun in this browser, or it is no.
    pub async fn end(
        &self,
        answer: &Answer,
        from: CallbackRoute<'_>,
    ) -> Result<String, LoginError> {
        let (authorizer, plan, begun) = {
            let mut owed = self.lock();
            let ticket = owed
                .iter()
                .find(|(ticket, login)| login.awaits(ticket, answer, from))
                .map(|(ticket, _)| ticket.clone());
            let login = ticket.and_then(|ticket| owed.get_mut(&ticket));
            // Taken out: a state counts once.
            let taken = login.and_then(|login| {
                Some((
                    login.authorizer.clone(),
                    login.plan.clone(),
                    login.begun.take()?,
                ))
            });
            taken.ok_or_else(|| {
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
        } = begun;
        authorizer
            .end(&plan, client, &redirect_uri, &attempt, answer)
            .await?;
        Ok(authorizer.upstream().to_owned())
    }
}

/// Who brings an authorization server's answer.
#[derive(Clone, Copy)]
pub enum CallbackRoute<'a> {
    /// A browser, with what it shows of the logins that it began.
    Browser(&'a [&'a str]),
    /// The page of this ticket, in which somebody pasted it.
    Page(&'a str),
}

impl RequiredLogin {
    fn is_of(&self, authorizer: &Authorizer, principal: &Principal) -> bool {
        std::ptr::eq(&*self.authorizer, authorizer) && self.plan.party.principal == *principal
    }

    fn covers(&self, party: &LoginParty, scopes: &Scopes) -> bool {
        self.plan.party == *party && scopes.within(&self.plan.scopes)
    }

    fn awaits(&self, ticket: &str, answer: &Answer, from: CallbackRoute<'_>) -> bool {
        let Some(begun) = &self.begun else {
            return false;
        };
        let same = |one: &str, other: &str| bool::from(one.as_bytes().ct_eq(other.as_bytes()));
        let by = match from {
            CallbackRoute::Browser(shown) => shown
                .iter()
                .any(|shown| same(shown, begun.browser.expose())),
            CallbackRoute::Page(from) => same(from, ticket),
        };
        by && answer
            .state
            .as_ref()
            .is_some_and(|state| same(state.expose(), begun.attempt.state.expose()))
    }
}

fn owed_at(base: &str, ticket: &str) -> LoginError {
    LoginError::Owed {
        link: Some(link(base, ticket).into()),
    }
}

fn link(base: &str, ticket: &str) -> String {
    format!("{base}/oauth/login/{ticket}")
}

/// 244 random bits.
fn secret() -> String {
    format!(
        "{}{}",
        uuid::Uuid::new_v4().simple(),
        uuid::Uuid::new_v4().simple()
    )
}
