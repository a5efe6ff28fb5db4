//! TLS towards upstreams: whom to trust, and which certificate to show.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::HttpTransport;

/// Builds the client side of TLS: the system's authorities or the config's own, and a client certificate if there is
/// one. ALPN is left to the connector.
///
/// # Errors
/// What is wrong with a file of the config, in words for its user.
pub(super) fn client(transport: &HttpTransport) -> Result<ClientConfig, String> {
    let roots = match &transport.ca {
        Some(file) => Arc::new(own_roots(file)?),
        None if transport.url.to_ascii_lowercase().starts_with("https:") => system_roots()?,
        // Nobody shows a certificate there, and reading the system's takes longer than all else at start.
        None => Arc::new(RootCertStore::empty()),
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS cannot be set up: {e}"))?
        .with_root_certificates(roots);
    match &transport.client_cert {
        None => Ok(builder.with_no_client_auth()),
        Some((cert, key)) => builder
            .with_client_auth_cert(certificates(cert)?, private_key(key)?)
            .map_err(|e| format!("the client certificate `{}` cannot be used: {e}", cert.display())),
    }
}

fn own_roots(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|e| format!("`{}` holds no authority to trust: {e}", file.display()))?;
    }
    Ok(roots)
}

/// Read once for all upstreams.
fn system_roots() -> Result<Arc<RootCertStore>, String> {
    static ROOTS: OnceLock<Result<Arc<RootCertStore>, String>> = OnceLock::new();
    ROOTS.get_or_init(|| read_system_roots().map(Arc::new)).clone()
}

fn read_system_roots() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    // Systems ship a few authorities that rustls cannot read: one good one is enough to go on.
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err("the system has no authorities to trust (is `ca-certificates` installed?)".into());
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|e| format!("`{}` cannot be read as PEM certificates: {e}", file.display()))?;
    if certificates.is_empty() {
        return Err(format!("`{}` holds no certificate", file.display()));
    }
    Ok(certificates)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(file).map_err(|e| format!("`{}` cannot be read as a PEM private key: {e}", file.display()))
}
