//! TLS toward agents.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use tokio_rustls::TlsAcceptor;

use crate::config::ListenTls;
use crate::trust;

/// Builds the acceptor from the PEM files in the config.
///
/// # Errors
/// The file that cannot be read or used, with the reason.
pub fn acceptor(tls: &ListenTls) -> Result<TlsAcceptor, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(
                Arc::new(trust::own_roots(file)?),
                provider,
            )
            .build();
            builder.with_client_cert_verifier(
                verifier.map_err(|error| format!("`{}`: {error}", file.display()))?,
            )
        }
    };
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|error| format!("`{}` contains no private key: {error}", tls.key.display()))?;
    let mut config = builder
        .with_single_cert(trust::certificates(&tls.cert)?, key)
        .map_err(|error| {
            format!(
                "`{}` and `{}` do not match: {error}",
                tls.cert.display(),
                tls.key.display()
            )
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
