//! Exports audit lines, spans and metrics to a collector, by OTLP over HTTP with protobuf
//! (OpenTelemetry protocol 1.x, OTLP/HTTP). This happens on a thread of its own: records that find
//! their queue full are dropped and counted, and no call waits.

mod logs;
mod metrics;
mod post;
mod queue;
mod resource;
mod send;
mod spans;

use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::config::OtlpConfig;
use crate::protocol::trace::{Span, SpanExporter};
use crate::record::{Exporters, LineExporter, Recorder};

use post::Collector;
use queue::Queue;
use resource::ExportResource;
use send::Sender;

/// Maximum time to send queued records when the gate ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Exports records until it is closed.
pub struct Exporter {
    stop: watch::Sender<bool>,
    end_signal: Mutex<Receiver<()>>,
}

/// The queue of audit lines.
struct LogSink(Arc<Queue<Box<str>>>);

impl LineExporter for LogSink {
    fn export(&self, line: &str) {
        self.0.push(line.into(), line.len());
    }
}

/// The queue of spans.
struct SpanSink(Arc<Queue<Span>>);

impl SpanExporter for SpanSink {
    fn export(&self, span: Span) {
        let bytes = spans::bytes(&span);
        self.0.push(span, bytes);
    }
}

impl Exporter {
    /// Starts exporting the records of `recorder`. Connects when there is something to send.
    ///
    /// # Errors
    /// The setting that cannot be used, in words for the user.
    pub fn start(config: &OtlpConfig, recorder: &Arc<Recorder>) -> Result<Self, String> {
        let collector = Arc::new(Collector::new(config)?);
        let (stop, stop_signal) = watch::channel(false);
        let origin = Arc::new(ExportResource::new(config));
        let sender = |signal: &'static str| {
            Sender::new(
                signal,
                collector.clone(),
                recorder.export_counts(signal),
                stop_signal.clone(),
            )
        };
        let lines = config
            .logs
            .then(|| Arc::new(Queue::new(config, recorder.export_counts("logs").dropped)));
        let spans = config
            .traces
            .then(|| Arc::new(Queue::new(config, recorder.export_counts("traces").dropped)));
        let (interval, logs, traces) = (config.interval, sender("logs"), sender("traces"));
        let metrics_sender = config.metrics.then(|| {
            (
                sender("metrics"),
                config.metrics_interval,
                config.batch_records,
            )
        });
        let (weak, start, shared_origin) =
            (Arc::downgrade(recorder), SystemTime::now(), origin.clone());
        let (line_queue, span_queue) = (lines.clone(), spans.clone());
        let mut closing = stop_signal;
        let work = async move {
            let send_lines = run_if_some(line_queue, |queue| {
                logs.send_all(queue, interval, |lines| logs::request(&lines, &origin))
            });
            let send_spans = run_if_some(span_queue, |queue| {
                traces.send_all(queue, interval, |batch| spans::request(batch, &origin))
            });
            let send_metrics = run_if_some(metrics_sender, |(sender, period, points)| {
                let requests = move || {
                    let families = weak
                        .upgrade()
                        .map(|recorder| recorder.gather())
                        .unwrap_or_default();
                    metrics::requests(&families, &shared_origin, start, points)
                };
                sender.send_regularly(period, requests)
            });
            let sending = async { tokio::join!(send_lines, send_spans, send_metrics) };
            let timeout = async {
                // An exporter that is dropped ends too.
                drop(closing.wait_for(|stop| *stop).await);
                tokio::time::sleep(CLOSE_TIMEOUT).await;
            };
            tokio::select! {
                _ = sending => {}
                () = timeout => tracing::warn!("OTLP export did not finish within {} s", CLOSE_TIMEOUT.as_secs()),
            }
        };
        let (end, end_signal) = sync_channel(1);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| format!("no thread can be made for it: {error}"))?;
        let thread = std::thread::Builder::new()
            .name("otlp".to_owned())
            .spawn(move || {
                runtime.block_on(work);
                // The caller that closes the exporter may have stopped waiting.
                let _gone = end.try_send(());
            });
        thread.map_err(|error| format!("no thread can be made for it: {error}"))?;
        recorder.set_exporters(Exporters {
            lines: lines.map(|queue| Arc::new(LogSink(queue)) as Arc<dyn LineExporter>),
            spans: spans.map(|queue| Arc::new(SpanSink(queue)) as Arc<dyn SpanExporter>),
            ratio: config.sample_ratio,
        });
        Ok(Self {
            stop,
            end_signal: Mutex::new(end_signal),
        })
    }

    /// Sends queued records, for at most 5 s. Later records are dropped. Blocks the thread.
    pub fn close(&self) {
        self.stop.send_replace(true);
        let end_signal = self.end_signal.lock();
        if end_signal
            .recv_timeout(CLOSE_TIMEOUT + Duration::from_secs(1))
            .is_err()
        {
            tracing::debug!("the exporter had already stopped");
        }
    }
}

async fn run_if_some<T, F: Future<Output = ()>>(value: Option<T>, work: impl FnOnce(T) -> F) {
    if let Some(what) = value {
        work(what).await;
    }
}
