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
const CLOSE: Duration = Duration::from_secs(5);

/// Exports records until it is closed.
pub struct Exporter {
    stop: watch::Sender<bool>,
    ended: Mutex<Receiver<()>>,
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
        let post = Arc::new(Collector::new(config)?);
        let (stop, stopped) = watch::channel(false);
        let origin = Arc::new(ExportResource::new(config));
        let sender = |signal: &'static str| {
            Sender::new(
                signal,
                post.clone(),
                recorder.export_counts(signal),
                stopped.clone(),
            )
        };
        let lines = config
            .logs
            .then(|| Arc::new(Queue::new(config, recorder.export_counts("logs").dropped)));
        let spans = config
            .traces
            .then(|| Arc::new(Queue::new(config, recorder.export_counts("traces").dropped)));
        let (interval, logs, traces) = (config.interval, sender("logs"), sender("traces"));
        let gathered = config.metrics.then(|| {
            (
                sender("metrics"),
                config.metrics_interval,
                config.batch_records,
            )
        });
        let (weak, began, same) = (Arc::downgrade(recorder), SystemTime::now(), origin.clone());
        let (of_lines, of_spans) = (lines.clone(), spans.clone());
        let mut closing = stopped;
        let work = async move {
            let send_lines = when(of_lines, |queue| {
                logs.all(queue, interval, |lines| logs::request(&lines, &origin))
            });
            let send_spans = when(of_spans, |queue| {
                traces.all(queue, interval, |batch| spans::request(batch, &origin))
            });
            let send_metrics = when(gathered, |(sender, every, points)| {
                let requests = move || {
                    let families = weak
                        .upgrade()
                        .map(|recorder| recorder.gather())
                        .unwrap_or_default();
                    metrics::requests(&families, &same, began, points)
                };
                sender.regularly(every, requests)
            });
            let all = async { tokio::join!(send_lines, send_spans, send_metrics) };
            let over = async {
                // An exporter that is dropped ends too.
                drop(closing.wait_for(|stop| *stop).await);
                tokio::time::sleep(CLOSE).await;
            };
            tokio::select! {
                _ = all => {}
                () = over => tracing::warn!("OTLP export did not finish within {} s", CLOSE.as_secs()),
            }
        };
        let (end, ended) = sync_channel(1);
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
            ended: Mutex::new(ended),
        })
    }

    /// Sends queued records, for at most 5 s. Later records are dropped. Blocks the thread.
    pub fn close(&self) {
        self.stop.send_replace(true);
        let ended = self.ended.lock();
        if ended.recv_timeout(CLOSE + Duration::from_secs(1)).is_err() {
            tracing::debug!("the exporter had already stopped");
        }
    }
}

async fn when<T, F: Future<Output = ()>>(what: Option<T>, work: impl FnOnce(T) -> F) {
    if let Some(what) = what {
        work(what).await;
    }
}
