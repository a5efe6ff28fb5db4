//! The log of the process, written to standard error.

use std::io::IsTerminal;

use tracing::Level;
use tracing_subscriber::filter::{EnvFilter, FilterExt, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// The environment variable that selects what is logged.
const LOG_VARIABLE: &str = "LYCHGATE_LOG";
/// What is logged if the variable is not set or invalid.
const DEFAULT_FILTER: &str = "warn,lychgate=info";

/// Starts the log: readable text on a terminal, JSON otherwise. `LYCHGATE_LOG` selects what is
/// logged, as in `debug` or `lychgate=debug,hyper=info`. A second call has no effect.
pub fn start_log() {
    let filter_text = std::env::var(LOG_VARIABLE).unwrap_or_else(|_| DEFAULT_FILTER.to_owned());
    let (filter, fault) = match EnvFilter::try_new(&filter_text) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(DEFAULT_FILTER), Some(error)),
    };
    let is_terminal = std::io::stderr().is_terminal();
    let colour = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let result = tracing_subscriber::registry()
        .with(layer(filter, is_terminal, colour, std::io::stderr))
        .try_init();
    if let (Ok(()), Some(error)) = (result, fault) {
        tracing::warn!(%error, "invalid {LOG_VARIABLE}; using \"{DEFAULT_FILTER}\"");
    }
}

fn layer<W>(
    filter: EnvFilter,
    for_people: bool,
    colour: bool,
    writer: W,
) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    // At levels more verbose than INFO, the HTTP and TLS crates log header values, which include
    // bearer tokens.
    let no_headers = filter_fn(|event| is_ours(event.target()) || *event.level() <= Level::INFO);
    let filter = filter.and(no_headers);
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    match for_people {
        true => layer
            .with_ansi(colour)
            .with_target(false)
            .with_filter(filter)
            .boxed(),
        false => layer
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .with_filter(filter)
            .boxed(),
    }
}

fn is_ours(target: &str) -> bool {
    target == "lychgate" || target.starts_with("lychgate::")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::Arc;

    use parking_lot::Mutex;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(filter: &str, for_people: bool) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let layer = layer(EnvFilter::new(filter), for_people, false, move || {
            writer.clone()
        });
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!(upstream = "files", "ours\n\u{1b}[2J");
            tracing::trace!("ours in detail");
            tracing::trace!(target: "h2::codec", authorization = "Bearer hunter2", "theirs in detail");
            tracing::debug!(target: "lychgatex", "not ours");
            tracing::info!(target: "hyper", "theirs");
        });
        String::from_utf8(buffer.0.lock().clone()).unwrap()
    }

    #[test]
    fn other_crates_cannot_be_made_to_log_headers() {
        let log = logged("trace", true);
        assert_contains!(log, "ours in detail", "theirs\n");
        assert_lacks!(log, "hunter2", "not ours");
    }

    #[test]
    fn people_read_lines_and_machines_json() {
        let log = logged(DEFAULT_FILTER, true);
        assert!(
            log.contains("INFO ours")
                && log.contains("upstream=\"files\"")
                && !log.contains('\u{1b}'),
            "{log}"
        );
        let log = logged(DEFAULT_FILTER, false);
        assert_eq!(log.lines().count(), 1, "{log}");
        let read: serde_json::Value = serde_json::from_str(log.trim()).unwrap();
        assert_eq!(
            (read["level"].as_str(), read["upstream"].as_str()),
            (Some("INFO"), Some("files"))
        );
    }
}
