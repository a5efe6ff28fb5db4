//! Notifies people of approval requests: by a program (`notify_command`) and by a webhook.
//!
//! Each of the two has its own queue and delivers one notification at a time. No call waits for a
//! notification: if the queue is full, the notification is dropped and counted.

use std::io;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::mpsc;

use super::api::members;
use super::approval_request::ApprovalRequest;
use crate::config::NotifyConfig;
use crate::message::{Envelope, Message, quote};
use crate::record::{NotificationCounts, Recorder, Redactor};
use crate::upstream::{Service, ServiceError};

/// Maximum number of queued notifications per channel.
const MAX_QUEUED: usize = 64;
/// Maximum number of attempts to call the webhook for one notification.
const ATTEMPTS: u32 = 3;
/// Delay before the second attempt; it doubles before each further one.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Minimum interval between warnings in the log while notifications keep failing.
const WARN_EVERY: Duration = Duration::from_secs(600);
/// Maximum length of a webhook's response that is read, in bytes.
const ANSWER_BYTES: usize = 64 << 10;

/// The queues of all channels.
pub(crate) struct Notifier(Vec<(mpsc::Sender<Bytes>, NotificationCounts)>);

enum NotifyChannel {
    Command(Vec<String>),
    Webhook(Box<Service>),
}

impl Notifier {
    /// Starts the notification thread; returns `None` if the config names no channel.
    ///
    /// # Errors
    /// A config value that cannot be used, described for the user.
    pub(crate) fn start(
        config: &NotifyConfig,
        recorder: &Recorder,
    ) -> Result<Option<Self>, String> {
        let mut channels = Vec::new();
        if !config.command.is_empty() {
            channels.push(("command", NotifyChannel::Command(config.command.clone())));
        }
        if let Some(webhook) = &config.webhook {
            channels.push((
                "webhook",
                NotifyChannel::Webhook(Box::new(Service::new(webhook, 1, ANSWER_BYTES)?)),
            ));
        }
        if channels.is_empty() {
            return Ok(None);
        }
        let mut queues = Vec::new();
        let mut deliveries = Vec::new();
        for (name, channel) in channels {
            let (sender, queue) = mpsc::channel(MAX_QUEUED);
            let counts = recorder.notification_counts(name);
            queues.push((sender, counts.clone()));
            deliveries.push(deliver_all(queue, name, channel, config.timeout, counts));
        }
        let start_error = |error: io::Error| format!("cannot send notifications: {error}");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(start_error)?;
        let work = move || drop(runtime.block_on(join_all(deliveries)));
        std::thread::Builder::new()
            .name("approval-notify".to_owned())
            .spawn(work)
            .map_err(start_error)?;
        Ok(Some(Self(queues)))
    }

    /// Queues a notification of a new request.
    pub(super) fn queue_notification(
        &self,
        id: &str,
        request: &ApprovalRequest,
        remaining: Duration,
    ) {
        let text = format!(
            "lychgate: {} requests approval for a call to {}: {} ({id})",
            request.context.agent.0, request.context.upstream.0, request.title
        );
        let body = Bytes::from(format!(
            r#"{{"event":"approval_requested","text":{},{},"arguments":{}}}"#,
            quote(&text),
            members(id, request, SystemTime::now(), remaining),
            request.masked_arguments.as_deref().unwrap_or("null")
        ));
        for (queue, counts) in &self.0 {
            if queue.try_send(body.clone()).is_err() {
                counts.dropped.inc();
            }
        }
    }
}

/// Returns the arguments of a call as the audit log shows them: limited in length, with secrets and
/// the values at the `private` places masked.
pub(super) fn masked_arguments(
    message: &Message,
    envelope: &Envelope,
    private: &[String],
) -> Option<String> {
    let is_call = envelope.method() == Some("tools/call");
    let params = message.body(envelope)?;
    let (value, at) = if is_call {
        (params.get("arguments")?, "/params/arguments")
    } else {
        (params, "/params")
    };
    let private: Vec<&str> = private.iter().map(String::as_str).collect();
    Some(Redactor::shared()?.mask(value, at, &private))
}

async fn deliver_all(
    mut queue: mpsc::Receiver<Bytes>,
    name: &str,
    channel: NotifyChannel,
    timeout: Duration,
    counts: NotificationCounts,
) {
    let mut last_warning: Option<Instant> = None;
    while let Some(body) = queue.recv().await {
        let result = match &channel {
            NotifyChannel::Command(words) => run(words, &body, timeout).await,
            NotifyChannel::Webhook(service) => post(service, &body, timeout).await,
        };
        match result {
            Ok(()) => {
                counts.sent.inc();
                last_warning = None;
            }
            Err(error) => {
                counts.failed.inc();
                if last_warning.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
                    tracing::warn!(way = name, %error, "approval notification failed; `lychgate approve list` shows pending requests");
                    last_warning = Some(Instant::now());
                }
            }
        }
    }
}

/// Runs a program with a notification on its standard input; it is killed when the timeout expires.
#[allow(
    clippy::disallowed_methods,
    reason = "no MCP server: one message in, nothing out, killed when its time is over"
)]
async fn run(words: &[String], body: &[u8], timeout: Duration) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else {
        return Ok(());
    };
    let run_error = |error: io::Error| format!("cannot run `{program}`: {error}");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(run_error)?;
    let stdin = child.stdin.take();
    let finish = async {
        if let Some(mut stdin) = stdin {
            // A program may send its notification without reading the details.
            let _unread = stdin.write_all(body).await;
        }
        child.wait().await
    };
    match tokio::time::timeout(timeout, finish).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("`{program}` failed ({status})")),
        Ok(Err(error)) => Err(run_error(error)),
        Err(_) => Err(format!(
            "`{program}` did not end within {} s",
            timeout.as_secs()
        )),
    }
}

/// Calls a webhook, with retries where they may help. Its URL may be a secret and appears in no
/// error.
async fn post(service: &Service, body: &Bytes, timeout: Duration) -> Result<(), String> {
    let mut wait = RETRY_AFTER;
    let mut last_error = String::new();
    for attempt in 1..=ATTEMPTS {
        last_error = match service.send(body.clone(), timeout).await {
            Ok(()) => return Ok(()),
            Err(ServiceError::Unusable) => {
                return Err("the webhook rejected the request".to_owned());
            }
            Err(ServiceError::Unreachable) => "the webhook cannot be reached".to_owned(),
            Err(ServiceError::Busy) => {
                "the webhook is not available (status 429 or 5xx)".to_owned()
            }
            Err(ServiceError::TimedOut) => {
                format!("the webhook did not answer within {} s", timeout.as_secs())
            }
        };
        if attempt < ATTEMPTS {
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
    }
    Err(last_error)
}
