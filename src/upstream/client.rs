//! The HTTP client that streamable HTTP and HTTP+SSE share: connections, the gateway's own
//! credentials, and which headers are passed on.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header,
};
use http_body_util::Full;
use hyper_util::client::legacy::connect::HttpConnector;

use super::body::{Timer, with_timeout};
use super::pool::{Pool, ResponseBody};
use super::tls;
use crate::config::HttpTransport;
use crate::oauth::{Authorizer, Bearer, LoginError, Refusal, challenge};
use crate::protocol::{CallError, Context, JSON, USER_AGENT, headers};
use crate::trust::{self, Keys, Peer};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a peer may be silent before it is probed (TCP keepalive).
const KEEPALIVE_TIME: Duration = Duration::from_secs(60);

/// How long a response is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadDeadline {
    /// Until the answer has arrived.
    Call,
    /// Until one side closes the stream.
    Stream,
}

/// Maximum number of times that a call is sent again with another token: after 401, and after 403
/// for a missing scope.
const MAX_RETRIES: usize = 3;

/// One request.
#[derive(Clone)]
pub(super) struct ClientRequest<'r> {
    pub(super) deadline: ReadDeadline,
    pub(super) method: Method,
    pub(super) url: &'r Uri,
    pub(super) headers: &'r HeaderMap,
    pub(super) body: Bytes,
}

/// A pooled client for one server.
pub(super) struct Client {
    calls: Pool,
    /// For streams that stay open, each with a connection of its own: on a shared connection they
    /// would use up the streams that the server allows, and calls would wait forever.
    streams: Pool,
    /// The URL from the config.
    pub(super) url: Uri,
    /// The peer at that URL, for errors.
    pub(super) peer: Peer,
    own_headers: HeaderMap,
    /// The gate's logins there, unless it has a token from the config.
    login: Option<Arc<Authorizer>>,
}

impl Client {
    /// # Errors
    /// An error message about the config, for the user.
    pub(super) fn new(
        transport: &HttpTransport,
        login: Option<Arc<Authorizer>>,
    ) -> Result<Self, String> {
        let url = parse_url(&transport.url)?;
        let tls = tls::client(transport)?;
        let builder = || {
            hyper_rustls::HttpsConnectorBuilder::new()
                .with_tls_config(tls.clone())
                .https_or_http()
        };
        let calls = Pool::new(
            builder().enable_all_versions().wrap_connector(connector()),
            &url,
        )?;
        let streams = Pool::new(builder().enable_http1().wrap_connector(connector()), &url)?;
        let peer = Peer::from_url(
            &url,
            Keys::OfTransport {
                ca: transport.ca.is_some(),
            },
        );
        Ok(Self {
            calls,
            streams,
            url,
            peer,
            own_headers: own_headers(transport)?,
            login,
        })
    }

    /// Sends one request on behalf of the caller in `context`, with the caller's token, and returns
    /// the response once its head has arrived; each attempt has `time` for that. A server that
    /// rejects a token has not processed the request, so the same request may be sent again with
    /// another token. Dropping the future cancels the request.
    ///
    /// # Errors
    /// `LoginOwed` and `NoToken` if there is no token, and the errors of `send`.
    pub(super) async fn send_as(
        &self,
        context: &Context,
        request: ClientRequest<'_>,
        time: Duration,
        timer: &mut Timer<'_>,
    ) -> Result<Response<ResponseBody>, CallError> {
        match &self.login {
            None => timer.wait(time, pin!(self.send(request))).await,
            // Boxed: calls without a login need no space for it.
            Some(login) => Box::pin(self.send_with_login(login, context, request, time)).await,
        }
    }

    /// Like [`Self::send_as`], if the gate has logins.
    async fn send_with_login(
        &self,
        login: &Arc<Authorizer>,
        context: &Context,
        request: ClientRequest<'_>,
        time: Duration,
    ) -> Result<Response<ResponseBody>, CallError> {
        let principal = login.principal(context).map_err(call_error)?;
        let mut bearer = login.bearer(&principal).await.map_err(call_error)?;
        for _ in 0..MAX_RETRIES {
            let response =
                with_timeout(time, self.exchange(request.clone(), bearer.as_ref())).await?;
            let Some(refusal) = refusal(&response) else {
                return check_status(response);
            };
            // Boxed: few calls wait for another token, and all calls would reserve space for it.
            bearer = Some(
                Box::pin(login.replace_refused_token(&principal, bearer, refusal))
                    .await
                    .map_err(call_error)?,
            );
        }
        let response = with_timeout(time, self.exchange(request, bearer.as_ref())).await?;
        if refusal(&response).is_some() {
            return Err(CallError::NoToken("the server rejects its tokens".into()));
        }
        check_status(response)
    }

    /// Sends one request with only the config's own credentials. The gateway's own headers replace
    /// the agent's headers of the same name.
    ///
    /// # Errors
    /// `Connect` if no response arrived, `AuthRequired` on 401, `BadReply` on a redirect, which is
    /// never followed.
    pub(super) async fn send(
        &self,
        request: ClientRequest<'_>,
    ) -> Result<Response<ResponseBody>, CallError> {
        check_status(self.exchange(request, None).await?)
    }

    /// Sends one request, and returns the server's answer, whatever its status.
    ///
    /// # Errors
    /// `Connect` if no response arrived.
    pub(super) async fn exchange(
        &self,
        client_request: ClientRequest<'_>,
        bearer: Option<&Bearer>,
    ) -> Result<Response<ResponseBody>, CallError> {
        let ClientRequest {
            deadline,
            method,
            url,
            headers,
            body,
        } = client_request;
        let mut headers = self.request_headers(&method, headers);
        if let Some(bearer) = bearer {
            let value = HeaderValue::from_str(&format!("Bearer {}", bearer.expose()));
            let mut value = value
                .map_err(|_| CallError::NoToken("its token cannot stand in a header".into()))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        let pool = if deadline == ReadDeadline::Stream {
            &self.streams
        } else {
            &self.calls
        };
        pool.request(url, request)
            .await
            .map_err(|error| CallError::Connect(io::Error::other(self.peer.fault(&*error))))
    }

    /// Reports whether a text contains a secret that the gate sends to this server.
    pub(super) fn contains_secret(&self, text: &str) -> bool {
        let of_headers = self
            .own_headers
            .values()
            .filter_map(|value| value.to_str().ok());
        let of_headers = of_headers.map(|value| value.strip_prefix("Bearer ").unwrap_or(value));
        let of_query = self.url.query().unwrap_or_default().split('&');
        let of_query = of_query
            .filter_map(|pair| pair.split_once('='))
            .map(|(_, value)| value);
        of_headers
            .chain(of_query)
            .any(|secret| secret.len() >= 4 && text.contains(secret))
    }

    /// Returns the headers of a request to the server, built from the agent's headers that are
    /// passed on.
    fn request_headers(&self, method: &Method, agent_headers: &HeaderMap) -> HeaderMap {
        let mut headers =
            HeaderMap::with_capacity(agent_headers.len() + self.own_headers.len() + ADDED_HEADERS);
        for (name, value) in agent_headers
            .iter()
            .filter(|(name, _)| !REMOVED_REQUEST_HEADERS.contains(name))
        {
            headers.append(name, value.clone());
        }
        if method == Method::POST {
            // Without the agent's parameters: a server that decodes by `charset` would read a
            // different message.
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        headers.insert(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        );
        if !headers.contains_key(header::USER_AGENT) {
            let user_agent = HeaderValue::from_static(USER_AGENT);
            headers.insert(header::USER_AGENT, user_agent);
        }
        for (name, value) in &self.own_headers {
            headers.insert(name, value.clone());
        }
        headers
    }
}

/// Returns the server's response, unless it is a redirect or requires a login.
fn check_status(response: Response<ResponseBody>) -> Result<Response<ResponseBody>, CallError> {
    match response.status() {
        StatusCode::UNAUTHORIZED => Err(CallError::AuthRequired),
        status if status.is_redirection() => Err(CallError::BadReply(
            "a redirect, and redirects are not followed",
        )),
        _ => Ok(response),
    }
}

/// Reports whether a server rejects the token: it requires one, another one, or one with more
/// scope. Any other 403 is an answer.
fn refusal(response: &Response<ResponseBody>) -> Option<Refusal> {
    let challenge = || challenge::parse(response.headers());
    match response.status() {
        StatusCode::UNAUTHORIZED => Some(Refusal::Token(challenge())),
        StatusCode::FORBIDDEN => Some(challenge())
            .filter(|challenge| challenge.error.as_deref() == Some("insufficient_scope"))
            .map(Refusal::Scope),
        _ => None,
    }
}

fn call_error(error: LoginError) -> CallError {
    match error {
        LoginError::Owed { link } => CallError::LoginRequired { link },
        LoginError::NotOAuth => CallError::AuthRequired,
        LoginError::Limit(limit) => CallError::Limit(limit),
        other => CallError::NoToken(other.to_string()),
    }
}

fn connector() -> HttpConnector {
    let mut connector = trust::tcp_connector(CONNECT_TIMEOUT);
    connector.set_keepalive(Some(KEEPALIVE_TIME));
    connector
}

/// Maximum number of headers that the gate adds to a request, in addition to those of the config:
/// content type and encoding, the client's name, a token, the host.
const ADDED_HEADERS: usize = 5;

/// Headers that the connection creates itself, or that are credentials of the agent. The listener
/// has already removed most of them; checking again costs nothing.
const REMOVED_REQUEST_HEADERS: [HeaderName; 15] = [
    header::CONTENT_TYPE,
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    header::AUTHORIZATION,
    header::PROXY_AUTHORIZATION,
    header::COOKIE,
    header::FORWARDED,
    header::ORIGIN,
    header::REFERER,
];

/// Response headers that end at the gateway: they concern the upstream's connection, its host or
/// its logins.
const REMOVED_RESPONSE_HEADERS: [HeaderName; 15] = [
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    HeaderName::from_static("keep-alive"),
    header::SET_COOKIE,
    header::WWW_AUTHENTICATE,
    header::ALT_SVC,
    header::LOCATION,
    header::REFRESH,
    header::STRICT_TRANSPORT_SECURITY,
    HeaderName::from_static("clear-site-data"),
    HeaderName::from_static("set-cookie2"),
];

/// Removes the headers of a response that are not meant for the agent.
pub(super) fn response_headers(headers: HeaderMap) -> HeaderMap {
    let connection_headers = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.to_str().unwrap_or_default().split(','));
    let connection_headers: Vec<HeaderName> = connection_headers
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect();
    let is_removed = |name: &HeaderName| {
        REMOVED_RESPONSE_HEADERS.contains(name)
            || connection_headers.contains(name)
            || name.as_str().starts_with("proxy-")
            || name.as_str().starts_with("access-control-")
    };
    headers::remove_headers(headers, is_removed)
}

fn parse_url(text: &str) -> Result<Uri, String> {
    let url: Uri = text
        .parse()
        .map_err(|e| format!("the URL cannot be read: {e}"))?;
    if !matches!(url.scheme_str(), Some("http" | "https")) {
        return Err("the URL begins with neither `http://` nor `https://`".into());
    }
    match url.authority() {
        Some(authority) if authority.as_str().contains('@') => {
            Err("the URL holds a login; use `bearer` or `headers` instead".into())
        }
        Some(_) => Ok(url),
        None => Err("the URL has no host".into()),
    }
}

fn own_headers(transport: &HttpTransport) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &transport.headers {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{name}` is no header name"))?;
        if key != header::AUTHORIZATION && REMOVED_REQUEST_HEADERS.contains(&key) {
            return Err(format!(
                "the header `{name}` is made by the gateway and cannot be set"
            ));
        }
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of `{name}` cannot stand in a header"))?;
        value.set_sensitive(true);
        headers.append(key, value);
    }
    if let Some(token) = &transport.bearer {
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut value =
            value.map_err(|_| "the bearer token cannot stand in a header".to_owned())?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests;
