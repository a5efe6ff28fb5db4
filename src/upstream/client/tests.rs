use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls_pki_types::PrivateKeyDer;

use super::super::testing::*;
use crate::config::Transport;
use crate::protocol::CallError;

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#;

/// Returns the error that a call to `url` fails with, as logged.
async fn fault(url: String, ca: Option<&std::path::Path>) -> String {
    let mut transport = http(url);
    transport.ca = ca.map(std::path::Path::to_owned);
    match upstream(Transport::Http(transport), &limits())
        .call(&modern(ASK))
        .await
    {
        Err(CallError::Connect(error)) => error.to_string(),
        Err(other) => panic!("{other:?}"),
        Ok(reply) => panic!("{}", reply.status),
    }
}

/// Starts a TLS server with a certificate for `localhost`, and returns its port and the file of
/// that certificate.
async fn server(change: fn(&mut CertificateParams)) -> (u16, tempfile::NamedTempFile) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), certificate.pem()).unwrap();
    let tls = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(
        vec![certificate.der().clone()],
        PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
    )
    .unwrap();
    let address = serve(Some(tls), |_| async { answer(200, &[], "{}") }).await;
    (address.port(), file)
}

#[tokio::test]
async fn faults_of_tls_name_the_peer_and_what_to_change() {
    let (port, file) = server(|params| params.not_after = rcgen::date_time_ymd(2021, 3, 4)).await;
    let text = fault(
        format!("https://localhost:{port}/?key=hidden"),
        Some(file.path()),
    )
    .await;
    assert!(
        text.starts_with(&format!(
            "the certificate of localhost:{port} expired on 2021-03-04 ("
        )),
        "{text}"
    );
    assert!(
        text.ends_with("days ago); its operator must renew it") && !text.contains("hidden"),
        "{text}"
    );

    let (port, file) =
        server(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)).await;
    let text = fault(format!("https://localhost:{port}/"), Some(file.path())).await;
    assert_contains!(text, "CA:TRUE", "and name it with `ca`");

    let (port, file) = server(|_| ()).await;
    let (_, other) = server(|_| ()).await;
    let text = fault(format!("https://localhost:{port}/"), Some(other.path())).await;
    assert_contains!(
        text,
        "is not signed by an authority that is in the file of `ca`"
    );
    let text = fault(format!("https://127.0.0.1:{port}/"), Some(file.path())).await;
    assert_contains!(text, "is not valid for the name `127.0.0.1`");
}

#[tokio::test]
async fn tls_on_one_side_only_is_named_with_the_scheme_to_write() {
    let plain = serve(None, |_| async { answer(200, &[], "{}") }).await;
    let text = fault(
        format!("https://{plain}/"),
        Some(server(|_| ()).await.1.path()),
    )
    .await;
    assert_eq!(
        text,
        format!("{plain} does not use TLS; write `http://` in `url`, or use the server's TLS port")
    );

    let (port, _) = server(|_| ()).await;
    let text = fault(format!("http://localhost:{port}/"), None).await;
    assert!(text.starts_with(&format!("localhost:{port} ")), "{text}");
    assert!(
        text.ends_with("; if it expects TLS, write `https://` in `url`"),
        "{text}"
    );
}

#[tokio::test]
async fn a_host_without_an_address_and_a_port_without_a_server_are_named() {
    let text = fault("http://no-such-host.invalid/mcp".to_owned(), None).await;
    assert!(
        text.starts_with("the host name `no-such-host.invalid` does not resolve ("),
        "{text}"
    );
    assert!(
        text.ends_with("; correct the host in `url`, or check this machine's DNS"),
        "{text}"
    );

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let text = fault(format!("http://{address}/mcp"), None).await;
    assert_eq!(
        text,
        format!(
            "nothing listens on {address} (connection refused); start the server, or correct `url`"
        )
    );
}
