//! Who may use the console: links that count once, guesses that are limited, sessions that end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use subtle::ConstantTimeEq;

use crate::listen::token::{Token, digest, secret};

/// How long a link counts.
pub(super) const CODE: Duration = Duration::from_secs(60);
/// Most links that count at the same time.
const CODES: usize = 8;
/// Most sessions; the one that was used longest ago ends for a new one.
const SESSIONS: usize = 16;
/// A session ends when nobody has done anything in it for so long.
const IDLE: Duration = Duration::from_secs(3600);
/// A session ends in any case.
const AGE: Duration = Duration::from_secs(12 * 3600);
/// Wrong guesses within [`WINDOW`], of each way in; no more are looked at until they are older.
const GUESSES: usize = 10;
/// See [`GUESSES`].
const WINDOW: Duration = Duration::from_secs(60);

/// The way into the console.
pub(super) struct Door {
    token: Arc<Token>,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    /// By the digest of what the browser's cookie says.
    sessions: HashMap<[u8; 32], Session>,
    codes: Vec<([u8; 32], Instant)>,
    wrong: [Vec<Instant>; 3],
}

struct Session {
    /// Digest of what the page shows besides the cookie. Cookies are the same for all ports of a host: another server there
    /// would be sent it, but a page of its own does not know this.
    proof: [u8; 32],
    since: Instant,
    used: Instant,
}

/// What somebody shows to come in.
#[derive(Clone, Copy)]
pub(super) enum Shown<'a> {
    /// The token, in the page's form.
    Token(&'a str),
    /// The code of a link.
    Code(&'a str),
    /// The token, by a program that wants a link.
    Bearer(bool),
}

/// A session that was opened.
pub(super) struct Opened {
    /// For the browser's cookie.
    pub(super) cookie: String,
    /// For the page.
    pub(super) proof: String,
}

/// Names a session for as long as it lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Inner([u8; 32]);

/// Why somebody does not come in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shut {
    /// It is not what counts.
    Wrong,
    /// There were too many wrong ones of late.
    TooMany,
}

impl Door {
    pub(super) fn new(token: Arc<Token>) -> Self {
        Self { token, inside: Mutex::default() }
    }

    /// Nothing is left half done by a panic elsewhere.
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what somebody shows.
    fn admits(&self, shown: Shown<'_>, now: Instant) -> Result<(), Shut> {
        let mut inside = self.inside();
        let way = match shown {
            Shown::Token(_) => &mut inside.wrong[0],
            Shown::Code(_) => &mut inside.wrong[1],
            Shown::Bearer(_) => &mut inside.wrong[2],
        };
        way.retain(|time| now.duration_since(*time) < WINDOW);
        if way.len() >= GUESSES {
            return Err(Shut::TooMany);
        }
        let right = match shown {
            Shown::Token(token) => self.token.is(token),
            Shown::Bearer(right) => right,
            Shown::Code(code) => {
                let code = digest(code);
                inside.codes.retain(|(_, since)| now.duration_since(*since) < CODE);
                let place = inside.codes.iter().position(|(known, _)| bool::from(known.ct_eq(&code)));
                place.map(|place| inside.codes.swap_remove(place)).is_some()
            }
        };
        if right {
            return Ok(());
        }
        match shown {
            Shown::Token(_) => inside.wrong[0].push(now),
            Shown::Code(_) => inside.wrong[1].push(now),
            Shown::Bearer(_) => inside.wrong[2].push(now),
        }
        Err(Shut::Wrong)
    }

    /// A code that opens one session, soon, for whoever bears the token.
    ///
    /// # Errors
    /// As for [`Shut`].
    pub(super) fn code(&self, bears_token: bool, now: Instant) -> Result<String, Shut> {
        self.admits(Shown::Bearer(bears_token), now)?;
        let (code, mut inside) = (secret(), self.inside());
        inside.codes.retain(|(_, since)| now.duration_since(*since) < CODE);
        if inside.codes.len() >= CODES {
            inside.codes.remove(0);
        }
        inside.codes.push((digest(&code), now));
        Ok(code)
    }

    /// Opens a session.
    ///
    /// # Errors
    /// As for [`Shut`].
    pub(super) fn open(&self, shown: Shown<'_>, now: Instant) -> Result<Opened, Shut> {
        self.admits(shown, now)?;
        let (cookie, proof) = (secret(), secret());
        let mut inside = self.inside();
        inside.sessions.retain(|_, session| session.lasts(now));
        if inside.sessions.len() >= SESSIONS {
            let oldest = inside.sessions.iter().min_by_key(|(_, session)| session.used).map(|(key, _)| *key);
            oldest.map(|key| inside.sessions.remove(&key));
        }
        inside.sessions.insert(digest(&cookie), Session { proof: digest(&proof), since: now, used: now });
        Ok(Opened { cookie, proof })
    }

    /// The session of a request that shows this. What the page does by itself, without its user, does not keep it open.
    pub(super) fn inner(&self, cookies: &[&str], proof: &str, by_itself: bool, now: Instant) -> Option<Inner> {
        let (mut inside, proof) = (self.inside(), digest(proof));
        cookies.iter().map(|cookie| digest(cookie)).find_map(|key| {
            let session = inside.sessions.get_mut(&key)?;
            if !session.lasts(now) || !bool::from(session.proof.ct_eq(&proof)) {
                return None;
            }
            if !by_itself {
                session.used = now;
            }
            Some(Inner(key))
        })
    }

    /// Whether a session lasts.
    pub(super) fn lasts(&self, inner: Inner, now: Instant) -> bool {
        self.inside().sessions.get(&inner.0).is_some_and(|session| session.lasts(now))
    }

    /// Ends a session.
    pub(super) fn close(&self, inner: Inner) {
        self.inside().sessions.remove(&inner.0);
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

    fn door() -> (Door, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let token = Arc::new(Token::make(&file).unwrap());
        (Door::new(token), std::fs::read_to_string(&file).unwrap())
    }

    #[test]
    fn a_token_opens_a_session_that_cookie_and_proof_together_show() {
        let (door, token) = door();
        let now = Instant::now();
        let one = door.open(Shown::Token(&token), now).unwrap_or_else(|_| panic!("the token"));
        let two = door.open(Shown::Token(token.trim()), now).unwrap_or_else(|_| panic!("the token"));
        let inner = door.inner(&["other", &one.cookie], &one.proof, false, now).unwrap();
        assert!(door.inner(&[&one.cookie], &two.proof, false, now).is_none(), "another session's proof");
        assert!(door.inner(&[&one.cookie], "", false, now).is_none());
        assert!(door.inner(&[], &one.proof, false, now).is_none());
        door.close(inner);
        assert!(!door.lasts(inner, now) && door.inner(&[&one.cookie], &one.proof, false, now).is_none());
        assert!(door.inner(&[&two.cookie], &two.proof, false, now).is_some());
    }

    #[test]
    fn a_code_counts_once_and_not_for_long() {
        let (door, _) = door();
        let now = Instant::now();
        let code = door.code(true, now).unwrap();
        assert!(door.open(Shown::Code(&code), now).is_ok());
        assert_eq!(door.open(Shown::Code(&code), now).err(), Some(Shut::Wrong));
        let late = door.code(true, now).unwrap();
        assert!(door.open(Shown::Code(&late), now + CODE).is_err());
        let first = door.code(true, now).unwrap();
        (0..CODES).for_each(|_| drop(door.code(true, now)));
        assert!(door.open(Shown::Code(&first), now).is_err(), "the oldest of too many");
        assert!(door.code(false, now).is_err());
    }

    #[test]
    fn guesses_are_limited_for_each_way_by_itself() {
        let (door, token) = door();
        let now = Instant::now();
        for _ in 0..GUESSES {
            assert_eq!(door.open(Shown::Token("guess"), now).err(), Some(Shut::Wrong));
        }
        assert_eq!(door.open(Shown::Token(&token), now).err(), Some(Shut::TooMany));
        let code = door.code(true, now).unwrap();
        assert!(door.open(Shown::Code(&code), now).is_ok());
        assert!(door.open(Shown::Token(&token), now + WINDOW).is_ok());
    }

    #[test]
    fn sessions_end_and_are_few() {
        let (door, token) = door();
        let now = Instant::now();
        let open = |at| door.open(Shown::Token(&token), at).unwrap_or_else(|_| panic!("the token"));
        let one = open(now);
        let shows = |by_itself, at| door.inner(&[&one.cookie], &one.proof, by_itself, at);
        assert!(shows(true, now + IDLE / 2).is_some());
        assert!(shows(false, now + IDLE).is_none(), "the page alone does not keep it open");
        let mut at = now;
        let one = open(now);
        while at < now + AGE - IDLE {
            at += IDLE / 2;
            assert!(door.inner(&[&one.cookie], &one.proof, false, at).is_some());
        }
        assert!(door.inner(&[&one.cookie], &one.proof, false, now + AGE).is_none(), "in any case");
        let first = open(now);
        (0..SESSIONS).for_each(|number| drop(open(now + Duration::from_secs(number as u64 + 1))));
        assert!(door.inner(&[&first.cookie], &first.proof, false, now).is_none());
    }
}
