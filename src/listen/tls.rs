//! TLS toward agents.

use std::path::Path;
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::config::ListenTls;

/// Builds the acceptor from the PEM files that the config names.
///
/// # Errors
/// What cannot be read or used, with the file's name.
pub fn acceptor(tls: &ListenTls) -> Result<TlsAcceptor, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(file)? {
                roots.add(certificate).map_err(|error| format!("`{}`: {error}", file.display()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| format!("`{}`: {error}", file.display()))?)
        }
    };
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|error| format!("`{}` contains no private key: {error}", tls.key.display()))?;
    let mut config = builder
        .with_single_cert(certificates(&tls.cert)?, key)
        .map_err(|error| format!("`{}` and `{}` do not match: {error}", tls.cert.display(), tls.key.display()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| format!("`{}` cannot be read: {error}", file.display()))?;
    if found.is_empty() { Err(format!("`{}` contains no certificate", file.display())) } else { Ok(found) }
}
