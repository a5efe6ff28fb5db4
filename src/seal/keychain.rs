//! The keys of one store as they were last found.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Key, Keys, SealError, Sources};

/// Keys are looked for anew at most this often, for bytes that those at hand do not open.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The keys of one store: looked for when first needed, and again where they do not fit.
#[derive(Debug)]
pub struct Keychain {
    sources: Sources,
    known: Mutex<Option<(Arc<Keys>, Instant)>>,
}

impl Keychain {
    /// From where these say.
    pub fn new(sources: Sources) -> Self {
        Self {
            sources,
            known: Mutex::default(),
        }
    }

    /// Where the keys come from.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Keys that open this, if there are any: another process may have made or changed them since we looked.
    ///
    /// # Errors
    /// The first key is there and cannot be had.
    pub fn to_open(&self, sealed: &[u8]) -> Result<Arc<Keys>, SealError> {
        let mut known = self.known.lock();
        if let Some((keys, at)) = &*known
            && (keys.fit(sealed) || at.elapsed() < LOOK_AGAIN)
        {
            return Ok(keys.clone());
        }
        let keys = Arc::new(self.sources.load()?);
        *known = Some((keys.clone(), Instant::now()));
        Ok(keys)
    }

    /// Keys of which the first is there: made, if need be, in `turn`, and only where `spares` says that nothing would be lost
    /// by a new one.
    ///
    /// # Errors
    /// The key cannot be had or made, or those of `turn` and `spares`.
    pub fn to_seal<E: From<SealError>, G>(
        &self,
        turn: impl FnOnce() -> Result<G, E>,
        spares: impl FnOnce(&Keys) -> Result<(), E>,
    ) -> Result<Arc<Keys>, E> {
        let mut known = self.known.lock();
        if let Some((keys, _)) = &*known
            && keys.first().is_some()
        {
            return Ok(keys.clone());
        }
        let mut keys = self.sources.load()?;
        if keys.first().is_none() {
            let _one_at_a_time = turn()?;
            keys = self.sources.load()?;
            if keys.first().is_none() {
                spares(&keys)?;
                self.sources.create()?;
                // What counts is what is there now: another process may have been faster.
                keys = self.sources.load()?;
            }
        }
        let keys = Arc::new(keys);
        *known = Some((keys.clone(), Instant::now()));
        Ok(keys)
    }
}

impl Keys {
    /// The one that seals.
    ///
    /// # Errors
    /// It is not there.
    pub fn seals(&self, sources: &Sources) -> Result<&Key, SealError> {
        self.first()
            .ok_or_else(|| SealError::Key(format!("there is none in {}", sources.first_named())))
    }
}
