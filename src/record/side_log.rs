//! A second recorder for the traffic of `lychgate prove`, which is recorded in the audit log,
//! marked, and nowhere else.

use std::io;

use super::Recorder;
use super::audit::Audit;
use super::console_feed::ConsoleFeed;
use super::metrics::Metrics;
use super::stores::Stores;

impl Recorder {
    /// Returns a recorder that writes to the same audit log. It has metrics of its own, which are
    /// not exposed, since alerts concern the traffic of others. Its lines have the member `prove`,
    /// and nothing is logged on standard error. It has no stores. Exporters of audit lines receive
    /// its lines too.
    ///
    /// # Errors
    /// The system provides no random numbers, or the metrics cannot be created.
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
