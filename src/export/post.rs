//! The HTTP client for the collector: one POST for each request, with limits for the time and the
//! length of the response.

use std::error::Error;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;

use crate::config::OtlpConfig;
use crate::protocol::{USER_AGENT, headers};
use crate::trust;

/// Maximum length of a response, which reports how many records were rejected, and why.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// Maximum length of the head of a response.
const MAX_HEAD_BYTES: usize = 32 << 10;
/// Time after which an idle connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Collector {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// The part of URLs before `/v1/…`.
    base: String,
    headers: HeaderMap,
    timeout: Duration,
}

/// A response of the collector to an accepted request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AcceptedCount {
    /// Number of records that it rejected nevertheless.
    pub(super) rejected: u64,
}

/// Why a request was not accepted. Contains no headers and no part of the response.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SendError {
    /// The collector rejected the request.
    #[error("it answers with status {0}")]
    Refused(StatusCode),
    /// The collector cannot accept the request now.
    #[error("it answers with status {status}")]
    Unavailable {
        /// The status of the response.
        status: StatusCode,
        /// The time to wait before the next attempt.
        after: Option<Duration>,
    },
    /// The status reports success, but the response is invalid.
    #[error("its answer is not one of OTLP")]
    Unreadable,
    /// The collector did not respond in time.
    #[error("it does not answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// There is no connection, or it was interrupted.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
}

impl Collector {
    /// # Errors
    /// A description of the invalid setting, for the user.
    pub(super) fn new(config: &OtlpConfig) -> Result<Self, String> {
        let base = config.endpoint.trim_end_matches('/').to_owned();
        format!("{base}/v1/logs")
            .parse::<Uri>()
            .map_err(|error| format!("`endpoint` is not a valid URL: {error}"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &config.headers {
            let name = HeaderName::try_from(name.as_str())
                .map_err(|_| format!("`{name}` is no header name"))?;
            let mut value = HeaderValue::try_from(value)
                .map_err(|_| format!("the value of `{name}` cannot stand in a header"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let values = [
            (header::CONTENT_TYPE, "application/x-protobuf"),
            (header::ACCEPT, "application/x-protobuf"),
            (header::USER_AGENT, USER_AGENT),
        ];
        headers::set(&mut headers, values);
        let roots = trust::roots_for(&config.endpoint, config.ca.as_deref())?;
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(
                trust::client_tls()?
                    .with_root_certificates(roots)
                    .with_no_client_auth(),
            )
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(trust::tcp_connector(config.timeout));
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(4)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .http2_max_header_list_size(MAX_HEAD_BYTES as u32)
            .build(connector);
        Ok(Self {
            client,
            base,
            headers,
            timeout: config.timeout,
        })
    }

    /// Sends one request. Redirects count as rejections.
    ///
    /// # Errors
    /// Why the request was not accepted.
    pub(super) async fn post(&self, signal: &str, body: Bytes) -> Result<AcceptedCount, SendError> {
        let exchange = tokio::time::timeout(self.timeout, self.exchange(signal, body)).await;
        exchange.unwrap_or(Err(SendError::Timeout(self.timeout)))
    }

    #[allow(clippy::disallowed_methods, reason = "what `Limited` holds is bounded")]
    async fn exchange(&self, signal: &str, body: Bytes) -> Result<AcceptedCount, SendError> {
        let unreachable =
            |error: &(dyn Error + 'static)| SendError::Unreachable(trust::error_text(error));
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = format!("{}/v1/{signal}", self.base)
            .parse()
            .map_err(|error| unreachable(&error))?;
        request.headers_mut().clone_from(&self.headers);
        let response = self
            .client
            .request(request)
            .await
            .map_err(|error| unreachable(&error))?;
        let status = response.status();
        if matches!(status.as_u16(), 429 | 502 | 503 | 504) {
            return Err(SendError::Unavailable {
                status,
                after: retry_after(response.headers()),
            });
        }
        if status != StatusCode::OK {
            return Err(SendError::Refused(status));
        }
        let reply = Limited::new(response.into_body(), MAX_RESPONSE_BYTES)
            .collect()
            .await
            .map_err(|_| SendError::Unreadable)?;
        rejected_count(signal, reply.to_bytes())
            .map(|rejected| AcceptedCount { rejected })
            .ok_or(SendError::Unreadable)
    }
}

/// Returns the number of rejected records in a response; `None` if the response cannot be read.
fn rejected_count(signal: &str, response: Bytes) -> Option<u64> {
    let count = match signal {
        "logs" => ExportLogsServiceResponse::decode(response)
            .ok()?
            .partial_success
            .map(|partial| partial.rejected_log_records),
        "traces" => ExportTraceServiceResponse::decode(response)
            .ok()?
            .partial_success
            .map(|partial| partial.rejected_spans),
        _ => ExportMetricsServiceResponse::decode(response)
            .ok()?
            .partial_success
            .map(|partial| partial.rejected_data_points),
    };
    Some(count.unwrap_or_default().try_into().unwrap_or_default())
}

/// Returns the time that the collector asks clients to wait (`Retry-After`: RFC 9110, section
/// 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(text).ok()?;
    Some(at.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_to_wait_is_read_in_both_ways() {
        let wait_for = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, value.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(wait_for("7"), Some(Duration::from_secs(7)));
        assert_eq!(
            wait_for("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(Duration::ZERO)
        );
        let soon = wait_for("Fri, 01 Jan 2100 00:00:00 GMT").unwrap();
        assert!(soon > Duration::from_secs(86_400 * 365), "{soon:?}");
        for bad in [
            "",
            "-1",
            "soon",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 99 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(wait_for(bad), None, "{bad}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn an_answer_that_is_none_is_not_taken_for_one() {
        assert_eq!(rejected_count("logs", Bytes::new()), Some(0));
        for signal in ["logs", "traces", "metrics"] {
            assert_eq!(
                rejected_count(signal, Bytes::from_static(b"<html>hello</html>")),
                None,
                "{signal}"
            );
        }
        let partial = ExportLogsServiceResponse {
            partial_success: Some(
                opentelemetry_proto::tonic::collector::logs::v1::ExportLogsPartialSuccess {
                    rejected_log_records: 3,
                    error_message: "too old".to_owned(),
                },
            ),
        };
        assert_eq!(
            rejected_count("logs", partial.encode_to_vec().into()),
            Some(3)
        );
    }

    #[test]
    fn headers_are_sensitive_and_nothing_shows_them() {
        let mut config = OtlpConfig::new("http://127.0.0.1:4318/".to_owned());
        config.headers = vec![("x-api-key".to_owned(), "s3cr3t-v4lu3".to_owned())];
        let post = Collector::new(&config).unwrap();
        assert_eq!(post.base, "http://127.0.0.1:4318");
        assert!(!format!("{:?} {config:?}", post.headers).contains("s3cr3t"));
    }
}
