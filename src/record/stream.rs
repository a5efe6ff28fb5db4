//! Open event streams.

/// An open event stream, counted from its creation until it is dropped.
pub struct OpenStream(prometheus::IntGauge);

impl OpenStream {
    pub(super) fn new(gauge: &prometheus::IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.dec();
    }
}
