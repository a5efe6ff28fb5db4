//! The keys of one store, cached.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Key, Keys, SealError, Sources};

/// Minimum interval between loads of the keys for bytes that the cached keys do not open.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

/// The keys of one store: loaded when first needed, and again if they do not fit.
#[derive(Debug)]
pub struct Keychain {
    sources: Sources,
    cached: Mutex<Option<(Arc<Keys>, Instant)>>,
}

impl Keychain {
    /// Returns the keychain for these sources.
    pub fn new(sources: Sources) -> Self {
        Self {
            sources,
            cached: Mutex::default(),
        }
    }

    /// Returns the sources of the keys.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Returns keys that open these bytes, if there are any. They are loaded again if necessary,
    /// since another process may have created or changed them.
    ///
    /// # Errors
    /// Fails if the first key exists but cannot be obtained.
    pub fn keys_to_open(&self, sealed: &[u8]) -> Result<Arc<Keys>, SealError> {
        let mut cached = self.cached.lock();
        if let Some((keys, loaded_at)) = &*cached
            && (keys.has_key_for(sealed) || loaded_at.elapsed() < RELOAD_INTERVAL)
        {
            return Ok(keys.clone());
        }
        let keys = Arc::new(self.sources.load()?);
        *cached = Some((keys.clone(), Instant::now()));
        Ok(keys)
    }

    /// Returns keys that include the first one. If it does not exist, it is created while holding
    /// the lock that `acquire` returns, and only if `confirm_no_loss` confirms that nothing would
    /// be lost by a new key.
    ///
    /// # Errors
    /// Fails if the key cannot be obtained or created, and with the errors of `acquire` and
    /// `confirm_no_loss`.
    pub fn keys_to_seal<E: From<SealError>, G>(
        &self,
        acquire: impl FnOnce() -> Result<G, E>,
        confirm_no_loss: impl FnOnce(&Keys) -> Result<(), E>,
    ) -> Result<Arc<Keys>, E> {
        let mut cached = self.cached.lock();
        if let Some((keys, _)) = &*cached
            && keys.first().is_some()
        {
            return Ok(keys.clone());
        }
        let mut keys = self.sources.load()?;
        if keys.first().is_none() {
            let _creation_lock = acquire()?;
            keys = self.sources.load()?;
            if keys.first().is_none() {
                confirm_no_loss(&keys)?;
                self.sources.create()?;
                // Load what is there now: another process may have been faster.
                keys = self.sources.load()?;
            }
        }
        let keys = Arc::new(keys);
        *cached = Some((keys.clone(), Instant::now()));
        Ok(keys)
    }
}

impl Keys {
    /// Returns the key that seals.
    ///
    /// # Errors
    /// Fails if it does not exist.
    pub fn sealing_key(&self, sources: &Sources) -> Result<&Key, SealError> {
        self.first()
            .ok_or_else(|| SealError::Key(format!("there is none in {}", sources.describe_first())))
    }
}
