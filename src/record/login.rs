//! Logins at servers, and how they are counted.

use std::collections::HashMap;

use parking_lot::Mutex;
use prometheus::Error;

use super::label::{Counters, Gauges, Maker};
use super::{process, table};

/// Something that happened to a login at a server.
#[derive(Clone, Copy, Debug)]
pub struct Login<'a> {
    pub upstream: &'a str,
    /// Whose login it is: `gate`, an agent or a user.
    pub principal: &'a str,
    /// One of [`LOGIN_OUTCOMES`].
    pub outcome: &'static str,
    /// What went wrong, in the gate's own words.
    pub error: Option<&'a str>,
    /// When the token that is held now ends, in seconds since 1970.
    pub expires_unix: Option<u64>,
    /// How many logins the upstream is owed now.
    pub owed: usize,
}

/// What can happen to a login: a person has to make one, has made it, or could not; a token was renewed, could not be for
/// now (`unreachable`), or will not be any more, because the login is over (`ended`) or the client is not taken (`refused`).
pub const LOGIN_OUTCOMES: [&str; 7] = [
    "owed",
    "logged_in",
    "login_failed",
    "renewed",
    "unreachable",
    "ended",
    "refused",
];

/// The outcomes of a renewal.
const RENEWALS: [&str; 4] = ["renewed", "unreachable", "ended", "refused"];

/// The counters of logins.
pub(super) struct Logins {
    renewals: Counters,
    expires: Gauges,
    /// When the tokens end, in seconds since 1970: the lifetime is calculated for each scrape.
    ends_unix: Mutex<HashMap<String, u64>>,
    owed: Gauges,
}

impl Logins {
    pub(super) fn new(made: &Maker) -> Result<Self, Error> {
        Ok(Self {
            renewals: made.counters(table::OAUTH_REFRESH)?,
            expires: made.gauges(table::OAUTH_EXPIRES)?,
            ends_unix: Mutex::default(),
            owed: made.gauges(table::AUTH_REQUIRED)?,
        })
    }

    /// Lets the series of an upstream begin at zero.
    pub(super) fn announce(&self, upstream: &str) {
        self.owed.with(&[upstream]);
        self.renewals.announce(upstream);
    }

    pub(super) fn count(&self, login: &Login<'_>) {
        let upstream = [login.upstream];
        self.owed
            .with(&upstream)
            .set(i64::try_from(login.owed).unwrap_or(i64::MAX));
        if RENEWALS.contains(&login.outcome) {
            self.renewals.with(&[login.upstream, login.outcome]).inc();
        }
        let mut ends = self.ends_unix.lock();
        match login.expires_unix {
            Some(unix) => drop(ends.insert(login.upstream.to_owned(), unix)),
            None => drop((ends.remove(login.upstream), self.expires.forget(&upstream))),
        }
    }

    /// Sets how long tokens last from now.
    pub(super) fn refresh(&self) {
        let now = process::seconds_since_1970() as i64;
        for (upstream, end) in &*self.ends_unix.lock() {
            let left = i64::try_from(*end).unwrap_or(i64::MAX).saturating_sub(now);
            self.expires.with(&[upstream]).set(left);
        }
    }
}
