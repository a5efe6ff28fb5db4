//! Access to the console: links that are valid once, a limit on guesses per address, sessions that
//! expire.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use subtle::ConstantTimeEq;

use crate::listen::failed_logins::{FailedLogins, SecretError};
use crate::listen::token::{Token, digest, secret};

/// How long a link is valid.
pub(super) const CODE: Duration = Duration::from_secs(60);
/// Maximum number of links that are valid at the same time.
const CODES: usize = 8;
/// Maximum number of sessions; the least recently used one ends when another is opened.
const SESSIONS: usize = 16;
/// Time without an action of the user after which a session ends.
const IDLE: Duration = Duration::from_secs(3600);
/// Maximum duration of a session.
const AGE: Duration = Duration::from_secs(12 * 3600);

/// Logins and sessions of the console.
pub(super) struct ConsoleAuth {
    token: Arc<Token>,
    /// Invalid codes of links.
    guesses: FailedLogins,
    inside: Mutex<SessionTable>,
}

#[derive(Default)]
struct SessionTable {
    /// By the digest of the browser's cookie.
    sessions: HashMap<[u8; 32], Session>,
    codes: Vec<([u8; 32], Instant)>,
}

struct Session {
    /// Digest of what the page presents besides the cookie. Cookies are shared by all ports of a
    /// host: another server there would receive it, but its pages do not know this secret.
    proof: [u8; 32],
    since: Instant,
    used: Instant,
}

/// A credential that opens a session.
#[derive(Clone, Copy)]
pub(super) enum Credential<'a> {
    /// The token, entered in the form of the page.
    Token(&'a str),
    /// The code of a link.
    Code(&'a str),
}

pub(super) struct OpenedSession {
    /// For the browser's cookie.
    pub(super) cookie: String,
    /// For the page.
    pub(super) proof: String,
}

/// Identifies a session while it lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SessionKey([u8; 32]);

impl ConsoleAuth {
    /// Creates an instance that checks at most `guesses` invalid codes of each address within a
    /// minute.
    pub(super) fn new(token: Arc<Token>, guesses: usize) -> Self {
        Self {
            token,
            guesses: FailedLogins::new(guesses),
            inside: Mutex::default(),
        }
    }

    /// Checks a credential.
    fn admits(&self, from: IpAddr, shown: Credential<'_>, now: Instant) -> Result<(), SecretError> {
        let code = match shown {
            Credential::Token(token) => return self.token.check(from, token, now),
            Credential::Code(code) => digest(code),
        };
        let mut inside = self.inside.lock();
        inside
            .codes
            .retain(|(_, since)| now.duration_since(*since) < CODE);
        let place = inside
            .codes
            .iter()
            .position(|(known, _)| bool::from(known.ct_eq(&code)));
        let right = place.map(|place| inside.codes.swap_remove(place)).is_some();
        drop(inside);
        self.guesses.judge(from, &code, right, now)
    }

    /// Returns a code that opens one session within [`CODE`], for a caller that has presented the
    /// token.
    pub(super) fn code(&self, now: Instant) -> String {
        let code = secret();
        let mut inside = self.inside.lock();
        inside
            .codes
            .retain(|(_, since)| now.duration_since(*since) < CODE);
        if inside.codes.len() >= CODES {
            inside.codes.remove(0);
        }
        inside.codes.push((digest(&code), now));
        code
    }

    /// Opens a session.
    ///
    /// # Errors
    /// As [`FailedLogins::judge`].
    pub(super) fn open(
        &self,
        from: IpAddr,
        shown: Credential<'_>,
        now: Instant,
    ) -> Result<OpenedSession, SecretError> {
        self.admits(from, shown, now)?;
        let cookie = secret();
        let proof = secret();
        let mut inside = self.inside.lock();
        inside.sessions.retain(|_, session| session.lasts(now));
        if inside.sessions.len() >= SESSIONS {
            let oldest = inside
                .sessions
                .iter()
                .min_by_key(|(_, session)| session.used)
                .map(|(key, _)| *key);
            oldest.map(|key| inside.sessions.remove(&key));
        }
        inside.sessions.insert(
            digest(&cookie),
            Session {
                proof: digest(&proof),
                since: now,
                used: now,
            },
        );
        Ok(OpenedSession { cookie, proof })
    }

    /// Returns the session of a request with these cookies and proof. Requests that the page makes
    /// on its own, without its user, do not keep it open.
    pub(super) fn inner(
        &self,
        cookies: &[&str],
        proof: &str,
        by_itself: bool,
        now: Instant,
    ) -> Option<SessionKey> {
        let mut inside = self.inside.lock();
        let proof = digest(proof);
        cookies.iter().map(|cookie| digest(cookie)).find_map(|key| {
            let session = inside.sessions.get_mut(&key)?;
            if !session.lasts(now) || !bool::from(session.proof.ct_eq(&proof)) {
                return None;
            }
            if !by_itself {
                session.used = now;
            }
            Some(SessionKey(key))
        })
    }

    /// Reports whether a session is still open.
    pub(super) fn lasts(&self, inner: SessionKey, now: Instant) -> bool {
        self.inside
            .lock()
            .sessions
            .get(&inner.0)
            .is_some_and(|session| session.lasts(now))
    }

    /// Ends a session.
    pub(super) fn close(&self, inner: SessionKey) {
        self.inside.lock().sessions.remove(&inner.0);
    }
}

impl Session {
    fn lasts(&self, now: Instant) -> bool {
        now.duration_since(self.used) < IDLE && now.duration_since(self.since) < AGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const ELSEWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const GUESSES: usize = 10;

    fn door() -> (ConsoleAuth, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let token = Arc::new(Token::create(&file, GUESSES).unwrap());
        (
            ConsoleAuth::new(token, GUESSES),
            std::fs::read_to_string(&file).unwrap(),
        )
    }

    #[test]
    fn a_token_opens_a_session_that_cookie_and_proof_together_show() {
        let (door, token) = door();
        let now = Instant::now();
        let one = door
            .open(HERE, Credential::Token(&token), now)
            .unwrap_or_else(|_| panic!("the token"));
        let two = door
            .open(HERE, Credential::Token(token.trim()), now)
            .unwrap_or_else(|_| panic!("the token"));
        let inner = door
            .inner(&["other", &one.cookie], &one.proof, false, now)
            .unwrap();
        assert!(
            door.inner(&[&one.cookie], &two.proof, false, now).is_none(),
            "another session's proof"
        );
        assert!(door.inner(&[&one.cookie], "", false, now).is_none());
        assert!(door.inner(&[], &one.proof, false, now).is_none());
        door.close(inner);
        assert!(
            !door.lasts(inner, now) && door.inner(&[&one.cookie], &one.proof, false, now).is_none()
        );
        assert!(door.inner(&[&two.cookie], &two.proof, false, now).is_some());
    }

    #[test]
    fn a_code_counts_once_and_not_for_long() {
        let (door, _) = door();
        let now = Instant::now();
        let code = door.code(now);
        assert!(door.open(HERE, Credential::Code(&code), now).is_ok());
        assert_eq!(
            door.open(HERE, Credential::Code(&code), now).err(),
            Some(SecretError::Wrong)
        );
        let late = door.code(now);
        assert!(
            door.open(HERE, Credential::Code(&late), now + CODE)
                .is_err()
        );
        let first = door.code(now);
        (0..CODES).for_each(|_| drop(door.code(now)));
        assert!(
            door.open(HERE, Credential::Code(&first), now).is_err(),
            "the oldest of too many"
        );
    }

    #[test]
    fn guesses_are_limited_by_address_and_nobody_is_locked_out() {
        let (door, token) = door();
        let now = Instant::now();
        let code = door.code(now);
        let guesses: Vec<String> = (0..GUESSES)
            .map(|number| format!("guess {number}"))
            .collect();
        for way in [Credential::Token, Credential::Code] {
            for guess in &guesses {
                assert_eq!(
                    door.open(ELSEWHERE, way(guess), now).err(),
                    Some(SecretError::Wrong)
                );
            }
            assert_eq!(
                door.open(ELSEWHERE, way("another"), now).err(),
                Some(SecretError::TooMany)
            );
            assert_eq!(
                door.open(HERE, way("another"), now).err(),
                Some(SecretError::Wrong)
            );
        }
        assert!(door.open(HERE, Credential::Token(&token), now).is_ok());
        assert!(
            door.open(ELSEWHERE, Credential::Token(&token), now).is_ok(),
            "a proxy's address is that of all behind it"
        );
        assert!(door.open(ELSEWHERE, Credential::Code(&code), now).is_ok());
    }

    #[test]
    fn sessions_end_and_are_few() {
        let (door, token) = door();
        let now = Instant::now();
        let open = |at| {
            door.open(HERE, Credential::Token(&token), at)
                .unwrap_or_else(|_| panic!("the token"))
        };
        let one = open(now);
        let shows = |by_itself, at| door.inner(&[&one.cookie], &one.proof, by_itself, at);
        assert!(shows(true, now + IDLE / 2).is_some());
        assert!(
            shows(false, now + IDLE).is_none(),
            "the page alone does not keep it open"
        );
        let mut at = now;
        let one = open(now);
        while at < now + AGE - IDLE {
            at += IDLE / 2;
            assert!(door.inner(&[&one.cookie], &one.proof, false, at).is_some());
        }
        assert!(
            door.inner(&[&one.cookie], &one.proof, false, now + AGE)
                .is_none(),
            "in any case"
        );
        let first = open(now);
        (0..SESSIONS).for_each(|number| drop(open(now + Duration::from_secs(number as u64 + 1))));
        assert!(
            door.inner(&[&first.cookie], &first.proof, false, now)
                .is_none()
        );
    }
}
