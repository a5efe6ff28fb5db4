//! Access to the console: links that are valid once, a limit on guesses per address, sessions that
//! expire.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use subtle::ConstantTimeEq;

use crate::listen::failed_logins::{FailedLogins, SecretError};
use crate::listen::token::{Token, digest};
use crate::protocol::secret;

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
    failed_logins: FailedLogins,
    table: Mutex<SessionTable>,
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
    last_used: Instant,
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
    /// Creates an instance that checks at most `max_failures` invalid codes of each address within
    /// a minute.
    pub(super) fn new(token: Arc<Token>, max_failures: usize) -> Self {
        Self {
            token,
            failed_logins: FailedLogins::new(max_failures),
            table: Mutex::default(),
        }
    }

    /// Checks a credential.
    fn check_credential(
        &self,
        from: IpAddr,
        credential: Credential<'_>,
        now: Instant,
    ) -> Result<(), SecretError> {
        let code = match credential {
            Credential::Token(token) => return self.token.check(from, token, now),
            Credential::Code(code) => digest(code),
        };
        let mut table = self.table.lock();
        table
            .codes
            .retain(|(_, since)| now.duration_since(*since) < CODE);
        let position = table
            .codes
            .iter()
            .position(|(stored, _)| bool::from(stored.ct_eq(&code)));
        let is_valid = position
            .map(|place| table.codes.swap_remove(place))
            .is_some();
        drop(table);
        self.failed_logins.check_secret(from, &code, is_valid, now)
    }

    /// Returns a code that opens one session within [`CODE`], for a caller that has presented the
    /// token.
    pub(super) fn create_code(&self, now: Instant) -> String {
        let code = secret();
        let mut table = self.table.lock();
        table
            .codes
            .retain(|(_, since)| now.duration_since(*since) < CODE);
        if table.codes.len() >= CODES {
            table.codes.remove(0);
        }
        table.codes.push((digest(&code), now));
        code
    }

    /// Opens a session.
    ///
    /// # Errors
    /// As [`FailedLogins::check_secret`].
    pub(super) fn open(
        &self,
        from: IpAddr,
        credential: Credential<'_>,
        now: Instant,
    ) -> Result<OpenedSession, SecretError> {
        self.check_credential(from, credential, now)?;
        let cookie = secret();
        let proof = secret();
        let mut table = self.table.lock();
        table.sessions.retain(|_, session| session.is_open(now));
        if table.sessions.len() >= SESSIONS {
            let oldest = table
                .sessions
                .iter()
                .min_by_key(|(_, session)| session.last_used)
                .map(|(key, _)| *key);
            oldest.map(|key| table.sessions.remove(&key));
        }
        table.sessions.insert(
            digest(&cookie),
            Session {
                proof: digest(&proof),
                since: now,
                last_used: now,
            },
        );
        Ok(OpenedSession { cookie, proof })
    }

    /// Returns the session of a request with these cookies and proof. Requests that the page makes
    /// on its own, without its user, do not keep it open.
    pub(super) fn find_session(
        &self,
        cookies: &[&str],
        proof: &str,
        by_itself: bool,
        now: Instant,
    ) -> Option<SessionKey> {
        let mut table = self.table.lock();
        let proof = digest(proof);
        cookies.iter().map(|cookie| digest(cookie)).find_map(|key| {
            let session = table.sessions.get_mut(&key)?;
            if !session.is_open(now) || !bool::from(session.proof.ct_eq(&proof)) {
                return None;
            }
            if !by_itself {
                session.last_used = now;
            }
            Some(SessionKey(key))
        })
    }

    /// Reports whether a session is still open.
    pub(super) fn is_open(&self, key: SessionKey, now: Instant) -> bool {
        self.table
            .lock()
            .sessions
            .get(&key.0)
            .is_some_and(|session| session.is_open(now))
    }

    /// Ends a session.
    pub(super) fn close(&self, key: SessionKey) {
        self.table.lock().sessions.remove(&key.0);
    }
}

impl Session {
    fn is_open(&self, now: Instant) -> bool {
        now.duration_since(self.last_used) < IDLE && now.duration_since(self.since) < AGE
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
            .find_session(&["other", &one.cookie], &one.proof, false, now)
            .unwrap();
        assert!(
            door.find_session(&[&one.cookie], &two.proof, false, now)
                .is_none(),
            "another session's proof"
        );
        assert!(door.find_session(&[&one.cookie], "", false, now).is_none());
        assert!(door.find_session(&[], &one.proof, false, now).is_none());
        door.close(inner);
        assert!(
            !door.is_open(inner, now)
                && door
                    .find_session(&[&one.cookie], &one.proof, false, now)
                    .is_none()
        );
        assert!(
            door.find_session(&[&two.cookie], &two.proof, false, now)
                .is_some()
        );
    }

    #[test]
    fn a_code_counts_once_and_not_for_long() {
        let (door, _) = door();
        let now = Instant::now();
        let code = door.create_code(now);
        assert!(door.open(HERE, Credential::Code(&code), now).is_ok());
        assert_eq!(
            door.open(HERE, Credential::Code(&code), now).err(),
            Some(SecretError::Invalid)
        );
        let late = door.create_code(now);
        assert!(
            door.open(HERE, Credential::Code(&late), now + CODE)
                .is_err()
        );
        let first = door.create_code(now);
        (0..CODES).for_each(|_| drop(door.create_code(now)));
        assert!(
            door.open(HERE, Credential::Code(&first), now).is_err(),
            "the oldest of too many"
        );
    }

    #[test]
    fn guesses_are_limited_by_address_and_nobody_is_locked_out() {
        let (door, token) = door();
        let now = Instant::now();
        let code = door.create_code(now);
        let guesses: Vec<String> = (0..GUESSES)
            .map(|number| format!("guess {number}"))
            .collect();
        for way in [Credential::Token, Credential::Code] {
            for guess in &guesses {
                assert_eq!(
                    door.open(ELSEWHERE, way(guess), now).err(),
                    Some(SecretError::Invalid)
                );
            }
            assert_eq!(
                door.open(ELSEWHERE, way("another"), now).err(),
                Some(SecretError::TooMany)
            );
            assert_eq!(
                door.open(HERE, way("another"), now).err(),
                Some(SecretError::Invalid)
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
        let shows = |by_itself, at| door.find_session(&[&one.cookie], &one.proof, by_itself, at);
        assert!(shows(true, now + IDLE / 2).is_some());
        assert!(
            shows(false, now + IDLE).is_none(),
            "the page alone does not keep it open"
        );
        let mut at = now;
        let one = open(now);
        while at < now + AGE - IDLE {
            at += IDLE / 2;
            assert!(
                door.find_session(&[&one.cookie], &one.proof, false, at)
                    .is_some()
            );
        }
        assert!(
            door.find_session(&[&one.cookie], &one.proof, false, now + AGE)
                .is_none(),
            "in any case"
        );
        let first = open(now);
        (0..SESSIONS).for_each(|number| drop(open(now + Duration::from_secs(number as u64 + 1))));
        assert!(
            door.find_session(&[&first.cookie], &first.proof, false, now)
                .is_none()
        );
    }
}
