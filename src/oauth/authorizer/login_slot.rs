//! The in-memory state of one principal's login.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, Shared as SharedFuture};
use parking_lot::{Mutex, MutexGuard};

use tokio::sync::watch;

use super::Bearer;
use crate::oauth::vault::{Account, Stamp};
use crate::oauth::{LoginError, Principal, TokenGrant};

pub(super) type Outcome = Result<Bearer, LoginError>;

/// The state of one principal's login.
pub(super) struct LoginSlot {
    /// Whose login it is.
    pub(super) principal: Principal,
    pub(super) state: Mutex<LoginState>,
    /// The renewal in progress.
    pub(super) renewal: Mutex<Option<SharedFuture<BoxFuture<'static, Outcome>>>>,
}

#[derive(Default)]
pub(super) struct LoginState {
    pub(super) account: Option<Account>,
    /// Whether the account could not be written to the vault, which contains an older one.
    pub(super) unwritten: bool,
    /// When the vault was last read, and the version of the login at that time.
    pub(super) vault_read_at: Option<Instant>,
    pub(super) stamp: Option<Stamp>,
    /// When the stamp was last compared with the vault's.
    stamp_checked_at: Option<Instant>,
    /// The time before which no early renewal is attempted.
    pub(super) not_before: Option<Instant>,
    /// When more scopes were requested from this principal within the last hour.
    pub(super) step_ups: Vec<Instant>,
}

impl LoginState {
    /// Returns the tokens of the login, if there are any.
    pub(super) fn granted(&self) -> Option<&TokenGrant> {
        self.account.as_ref()?.granted.as_ref()
    }

    /// Begins a comparison of the stamp unless one began within `interval`. Returns whether it did.
    pub(super) fn begin_stamp_check(&mut self, interval: Duration) -> bool {
        let is_due = self
            .stamp_checked_at
            .is_none_or(|checked_at| checked_at.elapsed() >= interval);
        if is_due {
            self.stamp_checked_at = Some(Instant::now());
        }
        is_due
    }

    /// Takes over the account read from the vault, unless a renewal completed in the meantime: then
    /// the one in memory is newer.
    pub(super) fn adopt_account(&mut self, stored: Option<Account>) {
        let issued_unix = |account: &Option<Account>| {
            account
                .as_ref()?
                .granted
                .as_ref()
                .map(|granted| granted.given_unix)
        };
        if !self.unwritten
            && (stored.is_none() || issued_unix(&stored) >= issued_unix(&self.account))
        {
            self.account = stored;
        }
    }
}

/// Removes a renewal from its slot when it ends, for whatever reason, and counts renewals in
/// progress.
pub(super) struct RenewalGuard(Arc<LoginSlot>, watch::Sender<usize>);

impl RenewalGuard {
    pub(super) fn new(slot: Arc<LoginSlot>, renewals: watch::Sender<usize>) -> Self {
        renewals.send_modify(|renewing| *renewing += 1);
        Self(slot, renewals)
    }

    pub(super) fn slot(&self) -> &LoginSlot {
        &self.0
    }
}

impl Drop for RenewalGuard {
    fn drop(&mut self) {
        *self.0.renewal.lock() = None;
        self.1.send_modify(|renewing| *renewing -= 1);
    }
}

impl LoginSlot {
    pub(super) fn new(principal: Principal) -> Self {
        Self {
            principal,
            state: Mutex::default(),
            renewal: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, LoginState> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_compared_once_per_interval() {
        let mut state = LoginState::default();
        let hour = Duration::from_secs(3600);
        assert!(state.begin_stamp_check(hour), "the first call compares it");
        assert!(!state.begin_stamp_check(hour), "the next one does not");
        assert!(
            state.begin_stamp_check(Duration::ZERO),
            "after the interval it is compared again"
        );
    }
}
