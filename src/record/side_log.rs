//! A recorder beside another one, for the traffic of `lychgate prove`: it belongs in the audit log, marked, and nowhere else.

use std::io;

use super::Recorder;
use super::audit::Audit;
use super::console_feed::ConsoleFeed;
use super::metrics::Metrics;
use super::stores::Stores;

impl Recorder {
    /// One that writes into the same audit log, and counts where nobody looks: alerts are about what others send. Its lines
    /// carry the member `prove`, and nothing is logged on standard error. It keeps nothing besides. Exporters of audit
    /// lines get these too.
    ///
    /// # Errors
    /// The system gives no random numbers, or counters of its own cannot be made.
    pub fn trial_recorder(&self) -> io::Result<Self> {
        let metrics = Metrics::new().map_err(io::Error::other)?;
        Ok(Self {
            metrics,
            audit: Audit::new().map_err(io::Error::other)?,
            sink: self.sink.clone(),
            stores: Stores::default(),
            console_feed: ConsoleFeed::default(),
            exporters: self.exporters.clone(),
            is_trial: true,
        })
    }
}
