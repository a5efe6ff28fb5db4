//! A recorder beside another one: for traffic that belongs in the log and in no counter.

use std::io;

use super::Recorder;
use super::audit::Audit;
use super::kept::Stores;
use super::metrics::Metrics;
use super::watched::Watched;

impl Recorder {
    /// One that writes into the same audit log, and counts where nobody looks: alerts are about what others send. It keeps
    /// nothing besides. Who hears of the lines there hears of these too.
    ///
    /// # Errors
    /// The system gives no random numbers, or counters of its own cannot be made.
    pub fn aside(&self) -> io::Result<Self> {
        let metrics = Metrics::new().map_err(io::Error::other)?;
        Ok(Self {
            metrics,
            audit: Audit::new().map_err(io::Error::other)?,
            sink: self.sink.clone(),
            stores: Stores::default(),
            watched: Watched::default(),
            outlets: self.outlets.clone(),
        })
    }
}
