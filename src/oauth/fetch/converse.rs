//! One request and its response over a connection of its own. A server may close a reused
//! connection just as the next request is sent, and a refresh token that was sent in a request
//! without a response is lost.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::guard::{Target, resolve_addresses, unreachable};
use super::{FetchError, Inner};
use crate::protocol::USER_AGENT;
use crate::trust::{self, Keys, Peer};

/// Maximum length of a response body, in bytes.
pub(super) const BODY_BYTES: usize = 1 << 20;
/// Maximum length of a response head, in bytes.
const HEAD_BYTES: usize = 64 << 10;
/// Maximum number of addresses of one name that are tried, and maximum time for each.
const MAX_ADDRESSES: usize = 4;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) async fn send_request(
    inner: &Inner,
    request: Request<Vec<u8>>,
) -> Result<Response<Vec<u8>>, FetchError> {
    let target = Target::read(request.uri(), &inner.guard)?;
    let addresses = resolve_addresses(inner, &target.host).await?;
    let tcp = connect(&target, &addresses).await?;
    if !target.tls {
        return send_over(&target, tcp, false, request).await;
    }
    let name = ServerName::try_from(target.host.clone()).map_err(|_| FetchError::Url)?;
    let connector = inner
        .tls
        .get_or_try_init(|| tls(inner))
        .await
        .map_err(|why| unreachable(&target.host, &why))?;
    let peer = Peer::new(&target.host, target.port, true, Keys::None);
    let stream = connector
        .connect(name, tcp)
        .await
        .map_err(|e| unreachable(&target.host, &peer.fault(&e)))?;
    let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    send_over(&target, stream, h2, request).await
}

async fn connect(target: &Target, addresses: &[IpAddr]) -> Result<TcpStream, FetchError> {
    let mut last_error = None;
    for address in addresses.iter().take(MAX_ADDRESSES) {
        match tokio::time::timeout(
            CONNECT_TIMEOUT,
            TcpStream::connect(SocketAddr::new(*address, target.port)),
        )
        .await
        {
            Ok(Ok(stream)) => {
                // At worst this causes a delay, so it is not an error.
                stream.set_nodelay(true).ok();
                return Ok(stream);
            }
            Ok(Err(e)) => last_error = Some(e.to_string()),
            Err(_) => last_error = Some("nobody answers".to_owned()),
        }
    }
    Err(unreachable(&target.host, &last_error.unwrap_or_default()))
}

/// Created when first used: reading the system's CA certificates takes a while, and most gates
/// never log in anywhere.
async fn tls(inner: &Inner) -> Result<TlsConnector, String> {
    let own_roots = inner.own_roots.clone();
    let connector = tokio::task::spawn_blocking(move || {
        let mut roots = own_roots;
        match trust::system_roots() {
            Ok(system) => roots.extend(system.roots.iter().cloned()),
            Err(why) if roots.is_empty() => return Err(why),
            Err(_) => {}
        }
        let mut config = trust::client_tls()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    });
    connector.await.map_err(|e| e.to_string())?
}

async fn send_over(
    target: &Target,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    h2: bool,
    request: Request<Vec<u8>>,
) -> Result<Response<Vec<u8>>, FetchError> {
    let connection_error = |e: hyper::Error| unreachable(&target.host, &e.to_string());
    let request = prepare_request(request, h2)?;
    // Aborted when this function returns, for whatever reason.
    let mut driver = JoinSet::new();
    let response = if h2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.max_header_list_size(HEAD_BYTES as u32);
        let (mut sender, connection) = builder
            .handshake(TokioIo::new(stream))
            .await
            .map_err(connection_error)?;
        driver.spawn(connection);
        sender
            .send_request(request)
            .await
            .map_err(connection_error)?
    } else {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES);
        let (mut sender, connection) = builder
            .handshake(TokioIo::new(stream))
            .await
            .map_err(connection_error)?;
        driver.spawn(connection);
        sender
            .send_request(request)
            .await
            .map_err(connection_error)?
    };
    read_response(target, response).await
}

/// Returns the request as it is sent: with the headers of a stateless client.
fn prepare_request(
    request: Request<Vec<u8>>,
    h2: bool,
) -> Result<Request<Full<Bytes>>, FetchError> {
    let mut request = request.map(|body| Full::new(Bytes::from(body)));
    let headers = request.headers_mut();
    headers.insert(
        header::ACCEPT_ENCODING,
        HeaderValue::from_static("identity"),
    );
    headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    if !h2 {
        let uri = request.uri();
        let host = uri
            .authority()
            .and_then(|authority| HeaderValue::from_str(authority.as_str()).ok())
            .ok_or(FetchError::Url)?;
        let path = uri
            .path_and_query()
            .cloned()
            .unwrap_or_else(|| PathAndQuery::from_static("/"));
        *request.uri_mut() = Uri::from(path);
        request.headers_mut().insert(header::HOST, host);
    }
    Ok(request)
}

async fn read_response(
    target: &Target,
    response: Response<Incoming>,
) -> Result<Response<Vec<u8>>, FetchError> {
    let (head, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| unreachable(&target.host, "the answer was interrupted"))?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        if bytes.len() + data.len() > BODY_BYTES {
            return Err(FetchError::TooLong);
        }
        bytes.extend_from_slice(data);
    }
    Ok(Response::from_parts(head, bytes))
}
