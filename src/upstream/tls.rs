//! TLS towards upstreams: which CAs are trusted, and which client certificate is presented.

use std::path::Path;

use rustls::ClientConfig;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;

use crate::config::HttpTransport;
use crate::trust;

/// Builds the client side of TLS: the system's CAs or the config's own, and a client certificate if
/// there is one. ALPN is left to the connector.
///
/// # Errors
/// An error message about a file of the config, for the user.
pub(super) fn client(transport: &HttpTransport) -> Result<ClientConfig, String> {
    let roots = trust::roots_for(&transport.url, transport.ca.as_deref())?;
    let builder = trust::client_tls()?.with_root_certificates(roots);
    match &transport.client_cert {
        None => Ok(builder.with_no_client_auth()),
        Some((cert, key)) => builder
            .with_client_auth_cert(trust::certificates(cert)?, private_key(key)?)
            .map_err(|e| {
                format!(
                    "the client certificate `{}` cannot be used: {e}",
                    cert.display()
                )
            }),
    }
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(file).map_err(|e| {
        format!(
            "`{}` cannot be read as a PEM private key: {e}",
            file.display()
        )
    })
}
