//! A service that the gate itself calls, with one POST of JSON.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use tokio::sync::Semaphore;

use super::body;
use super::client::{Client, ClientRequest, ReadDeadline};
use super::pool::ResponseBody;
use crate::config::HttpTransport;
use crate::message::ReadLimits;
use crate::protocol::CallError;

/// A service reached over HTTP, with limits on concurrent requests and on the length of an answer.
pub struct Service {
    client: Client,
    permits: Semaphore,
    limits: ReadLimits,
}

/// Why a service gave no answer. Contains nothing of its URL, which may hold a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceError {
    /// It did not arrive in time.
    TimedOut,
    /// No request slot was free, or the service is overloaded: status 429 or 5xx.
    Busy,
    /// It could not be reached, or the connection broke off.
    Unreachable,
    /// It is not a usable answer: a status other than 200, a redirect, a demand for authentication,
    /// too long.
    Unusable,
}

impl Service {
    /// Creates the service. Nothing is connected before the first request.
    ///
    /// # Errors
    /// Fails if a URL, header or TLS file cannot be used, with a message for the config's user.
    pub fn new(
        transport: &HttpTransport,
        max_concurrent: usize,
        answer_bytes: usize,
    ) -> Result<Self, String> {
        let limits = ReadLimits::of_bytes(answer_bytes);
        Ok(Self {
            client: Client::new(transport, None)?,
            permits: Semaphore::new(max_concurrent),
            limits,
        })
    }

    /// Sends a request, and returns the answer's body if it arrives within `timeout`, of which
    /// half may be spent waiting for a request slot.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub async fn ask(&self, body: Bytes, timeout: Duration) -> Result<Bytes, ServiceError> {
        let deadline = tokio::time::Instant::now() + timeout;
        let permit = tokio::time::timeout(timeout / 2, self.permits.acquire()).await;
        let _permit = permit.ok().and_then(Result::ok).ok_or(ServiceError::Busy)?;
        let answer = tokio::time::timeout_at(deadline, self.exchange(body, timeout)).await;
        answer.unwrap_or(Err(ServiceError::TimedOut))
    }

    /// Sends a body that needs no answer: any success status is accepted. Returns
    /// [`ServiceError::Busy`] if the caller may try again later.
    ///
    /// # Errors
    /// The reason why it was not accepted.
    pub async fn send(&self, body: Bytes, timeout: Duration) -> Result<(), ServiceError> {
        let status = tokio::time::timeout(timeout, self.request(body))
            .await
            .map_err(|_| ServiceError::TimedOut)??
            .status();
        match status {
            status if status.is_success() => Ok(()),
            StatusCode::TOO_MANY_REQUESTS => Err(ServiceError::Busy),
            status if status.is_server_error() => Err(ServiceError::Busy),
            _ => Err(ServiceError::Unusable),
        }
    }

    async fn exchange(&self, body: Bytes, timeout: Duration) -> Result<Bytes, ServiceError> {
        let response = self.request(body).await?;
        if response.status() != StatusCode::OK {
            return Err(ServiceError::Unusable);
        }
        body::read_whole(response.into_body(), &self.limits, timeout)
            .await
            .map_err(service_error)
    }

    async fn request(&self, body: Bytes) -> Result<Response<ResponseBody>, ServiceError> {
        let json = HeaderValue::from_static("application/json");
        let headers =
            HeaderMap::from_iter([(header::CONTENT_TYPE, json.clone()), (header::ACCEPT, json)]);
        let request = ClientRequest {
            deadline: ReadDeadline::Call,
            method: Method::POST,
            url: &self.client.url,
            headers: &headers,
            body,
        };
        self.client.send(request).await.map_err(service_error)
    }
}

fn service_error(error: CallError) -> ServiceError {
    match error {
        CallError::Connect(_) => ServiceError::Unreachable,
        CallError::Silent(_) => ServiceError::TimedOut,
        _ => ServiceError::Unusable,
    }
}
