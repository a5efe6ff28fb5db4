//! TLS toward agents and toward servers, with client certificates, and HTTP/2 where the peer
//! supports it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use lychgate::config::{ListenTls, OtlpConfig, Transport};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;

use super::harness::{Answer, Setup, call, http, metric, soon, until};
use super::servers::{Server, json_reply, reply};

const OK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

/// A private certificate authority, with a certificate for a server and one for a client.
pub(super) struct Authority {
    folder: TempDir,
    _issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        for (file, name, usage) in [
            ("server", "localhost", ExtendedKeyUsagePurpose::ServerAuth),
            ("client", "client.test", ExtendedKeyUsagePurpose::ClientAuth),
        ] {
            let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            params.extended_key_usages = vec![usage];
            let key = KeyPair::generate().unwrap();
            let cert = params.signed_by(&key, &issuer).unwrap();
            std::fs::write(folder.path().join(format!("{file}.pem")), cert.pem()).unwrap();
            std::fs::write(
                folder.path().join(format!("{file}.key")),
                key.serialize_pem(),
            )
            .unwrap();
        }
        Self {
            folder,
            _issuer: issuer,
        }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn pair(&self, name: &str) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let cert = CertificateDer::from_pem_file(self.file(&format!("{name}.pem"))).unwrap();
        (
            vec![cert],
            PrivateKeyDer::from_pem_file(self.file(&format!("{name}.key"))).unwrap(),
        )
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(self.file("ca.pem")).unwrap())
            .unwrap();
        roots
    }

    /// Returns the config of a server that requires client certificates.
    fn server(&self, protocols: &[&[u8]]) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(self.roots()), provider.clone())
                .build()
                .unwrap();
        let (certs, key) = self.pair("server");
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let mut config = builder
            .with_client_cert_verifier(verifier)
            .with_single_cert(certs, key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Arc::new(config)
    }

    /// Returns the config of a client, with or without a certificate.
    fn client(&self, shows: bool) -> ClientConfig {
        let builder =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots());
        if !shows {
            return builder.with_no_client_auth();
        }
        let (certs, key) = self.pair("client");
        builder.with_client_auth_cert(certs, key).unwrap()
    }

    pub(super) fn listens(&self, client_ca: bool) -> Option<ListenTls> {
        Some(ListenTls {
            cert: self.file("server.pem"),
            key: self.file("server.key"),
            client_ca: client_ca.then(|| self.file("ca.pem")),
        })
    }
}

/// Makes a call over TLS with HTTP/1.1 or HTTP/2; returns the HTTP version and the answer.
async fn ask(
    port: u16,
    config: ClientConfig,
    http2: bool,
) -> Result<(http::Version, Answer), String> {
    let builder = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only();
    let connector = if http2 {
        builder.enable_http2().build()
    } else {
        builder.enable_http1().build()
    };
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new())
        .http2_only(http2)
        .build(connector);
    let request = Request::post(format!("https://localhost:{port}/mcp/up"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Full::from(call("1", "x")))
        .unwrap();
    let response = soon("a response", client.request(request))
        .await
        .map_err(|error| error.to_string())?;
    Ok((response.version(), Answer::of(response)))
}

#[tokio::test]
async fn agents_come_over_tls_with_either_version_of_http() {
    let authority = Authority::new();
    let server = Server::answering(OK).await;
    let gate = server
        .setup()
        .start_with(|config| config.listen.tls = authority.listens(false))
        .await;
    let port = gate.running.address.port();
    for (http2, version) in [
        (true, http::Version::HTTP_2),
        (false, http::Version::HTTP_11),
    ] {
        let (spoken, answer) = ask(port, authority.client(false), http2).await.unwrap();
        assert_eq!(spoken, version);
        assert_eq!(answer.expect_text(200).await, OK);
        assert_eq!(server.next().await.body, call("1", "x").as_bytes());
    }
    // A client without TLS is turned away.
    let plain = tokio::net::TcpStream::connect(gate.running.address)
        .await
        .unwrap();
    tokio::io::AsyncWriteExt::write_all(
        &mut { plain },
        b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n",
    )
    .await
    .unwrap();
    until("the count", || {
        gate.metric("lychgate_turned_away_total", &[("reason", "tls")]) == Some(1.0)
    })
    .await;
    assert!(server.rest().await.is_empty());
}

#[tokio::test]
async fn agents_show_a_certificate_where_the_config_says_so() {
    let authority = Authority::new();
    let server = Server::answering(OK).await;
    let gate = server
        .setup()
        .start_with(|config| config.listen.tls = authority.listens(true))
        .await;
    let port = gate.running.address.port();
    assert!(ask(port, authority.client(false), false).await.is_err());
    assert!(
        ask(port, Authority::new().client(true), false)
            .await
            .is_err(),
        "nobody else's certificate"
    );
    assert!(server.rest().await.is_empty());
    let (_, answer) = ask(port, authority.client(true), false).await.unwrap();
    answer.expect(200).await;
}

#[tokio::test]
async fn the_name_in_a_certificate_is_an_agents() {
    let authority = Authority::new();
    let server = Server::answering(OK).await;
    let gate = |name: &'static str| {
        let setup = server.setup().agents(&["ann"]).with(|config| {
            config.listen.tls = authority.listens(true);
            config.agents[0].certificate = Some(name.into());
        });
        setup.start()
    };
    let (known, other) = (
        gate("dns:client.test").await,
        gate("uri:spiffe://other").await,
    );
    let status = async |gate: &super::harness::TestGate| {
        ask(gate.running.address.port(), authority.client(true), false)
            .await
            .unwrap()
            .1
            .status
    };
    assert_eq!((status(&known).await, status(&other).await), (200, 401));
    until("the agent in the audit log", || {
        known.audit_text().contains(r#""gen_ai.agent.name":"ann""#)
    })
    .await;
}

#[tokio::test]
async fn servers_are_reached_over_tls_with_our_own_authority_and_certificate() {
    let authority = Authority::new();
    for (protocols, version) in [
        (&[&b"h2"[..], b"http/1.1"][..], http::Version::HTTP_2),
        (&[b"http/1.1"], http::Version::HTTP_11),
    ] {
        let server = Server::start_tls(Some(authority.server(protocols)), |_| async {
            json_reply(OK)
        })
        .await;
        let mut well = http(format!("https://localhost:{}/mcp", server.address.port()));
        well.ca = Some(authority.file("ca.pem"));
        well.client_cert = Some((authority.file("client.pem"), authority.file("client.key")));
        let mut nameless = well.clone();
        nameless.client_cert = None;
        let mut distrusting = well.clone();
        let stranger = Authority::new();
        distrusting.ca = Some(stranger.file("ca.pem"));
        let mut misnamed = well.clone();
        misnamed.url = format!("https://127.0.0.1:{}/mcp", server.address.port());
        let all = [
            ("well", well),
            ("nameless", nameless),
            ("distrusting", distrusting),
            ("misnamed", misnamed),
        ];
        let mut setup = Setup::new();
        for (name, transport) in all {
            setup = setup.http(name, String::new());
            setup.config.upstreams.get_mut(name).unwrap().transport = Transport::Http(transport);
        }
        let gate = setup.start().await;
        let agent = gate.agent();
        agent.post_ok("well", &[], call("1", "x")).await;
        assert_eq!(server.next().await.version, version);
        for name in ["nameless", "distrusting", "misnamed"] {
            agent.post_expecting(502, name, &[], call("1", "x")).await;
        }
        assert!(server.rest().await.is_empty());
    }
}

#[tokio::test]
async fn a_collector_is_reached_over_tls_if_its_authority_is_trusted() {
    let authority = Authority::new();
    let builder =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let (certs, key) = authority.pair("server");
    let open = builder
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth();
    let open = Arc::new(open.with_single_cert(certs, key).unwrap());
    let collector = Server::start_tls(Some(open), |_| async { reply(200, &[], "") }).await;
    let server = Server::answering(OK).await;
    let export = |ca: &Authority| {
        let mut config = OtlpConfig::new(format!("https://localhost:{}", collector.address.port()));
        (config.ca, config.interval) = (Some(ca.file("ca.pem")), Duration::from_millis(50));
        (config.traces, config.metrics) = (false, false);
        config
    };
    let gate = server
        .setup()
        .start_with(|all| all.otlp = Some(export(&authority)))
        .await;
    gate.agent().post_ok("up", &[], call("1", "x")).await;
    let seen = collector.next().await;
    assert_eq!(seen.path.as_str(), "/v1/logs");
    assert_eq!(
        seen.headers["content-type"],
        http::HeaderValue::from_static("application/x-protobuf")
    );
    let stranger = Authority::new();
    let gate = server
        .setup()
        .start_with(|all| all.otlp = Some(export(&stranger)))
        .await;
    gate.agent().post_ok("up", &[], call("1", "x")).await;
    let recorder = gate.running.gate().clone();
    gate.running.drain().await;
    let failed = [("signal", "logs"), ("outcome", "failed")];
    assert_eq!(
        metric(
            &recorder.recorder().metrics_text(),
            "lychgate_otlp_exported_total",
            &failed
        ),
        Some(2.0)
    );
    assert!(
        collector.rest().await.is_empty(),
        "nothing is sent to whom it does not trust"
    );
}
