//! Logins at upstreams, and their metrics.

use std::collections::HashMap;

use parking_lot::Mutex;
use prometheus::Error;

use super::label::{Counters, Gauges, Maker};
use super::{process, table};

/// A change of the state of a login at an upstream.
#[derive(Clone, Copy, Debug)]
pub struct Login<'a> {
    pub upstream: &'a str,
    /// The owner of the login: `gate`, an agent or a user.
    pub principal: &'a str,
    /// A person has to log in (`owed`), has logged in (`logged_in`), or failed to (`login_failed`).
    /// A token was `renewed`, could not be renewed for now (`unreachable`), or cannot be renewed any
    /// more because the login is over (`ended`) or the client is not accepted (`refused`).
    pub outcome: &'static str,
    /// What went wrong, in lychgate's own words.
    pub error: Option<&'a str>,
    /// When the current token expires, in seconds since 1970.
    pub expires_unix: Option<u64>,
    /// Number of logins that the upstream currently requires.
    pub required_logins: usize,
}

/// The outcomes of a renewal.
const RENEWALS: [&str; 4] = ["renewed", "unreachable", "ended", "refused"];

/// The counters of logins.
pub(super) struct Logins {
    renewals: Counters,
    expires: Gauges,
    /// Expiry times of the tokens, in seconds since 1970: the remaining lifetime is calculated for
    /// each scrape.
    expiry_times: Mutex<HashMap<String, u64>>,
    required: Gauges,
}

impl Logins {
    pub(super) fn new(maker: &Maker) -> Result<Self, Error> {
        Ok(Self {
            renewals: maker.counters(table::OAUTH_REFRESH)?,
            expires: maker.gauges(table::OAUTH_EXPIRES)?,
            expiry_times: Mutex::default(),
            required: maker.gauges(table::AUTH_REQUIRED)?,
        })
    }

    /// Creates the series of an upstream at zero.
    pub(super) fn announce(&self, upstream: &str) {
        self.required.with(&[upstream]);
        self.renewals.announce(upstream);
    }

    pub(super) fn count(&self, login: &Login<'_>) {
        let upstream = [login.upstream];
        self.required
            .with(&upstream)
            .set(i64::try_from(login.required_logins).unwrap_or(i64::MAX));
        if RENEWALS.contains(&login.outcome) {
            self.renewals.with(&[login.upstream, login.outcome]).inc();
        }
        let mut expiry_times = self.expiry_times.lock();
        match login.expires_unix {
            Some(unix) => drop(expiry_times.insert(login.upstream.to_owned(), unix)),
            None => drop((
                expiry_times.remove(login.upstream),
                self.expires.forget(&upstream),
            )),
        }
    }

    /// Sets the remaining lifetimes of tokens.
    pub(super) fn refresh(&self) {
        let now = process::seconds_since_1970() as i64;
        for (upstream, end) in &*self.expiry_times.lock() {
            let remaining = i64::try_from(*end).unwrap_or(i64::MAX).saturating_sub(now);
            self.expires.with(&[upstream]).set(remaining);
        }
    }
}
