//! Whom to trust over TLS: the system's authorities, and those of a PEM file.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

/// The authorities of a PEM file.
///
/// # Errors
/// What is wrong with the file, in words for its user.
pub fn own_roots(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|e| format!("`{}` holds no authority to trust: {e}", file.display()))?;
    }
    Ok(roots)
}

/// The system's authorities, read once.
///
/// # Errors
/// That there are none, in words for the operator.
pub fn system_roots() -> Result<Arc<RootCertStore>, String> {
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

/// The certificates of a PEM file, at least one.
///
/// # Errors
/// What is wrong with the file, in words for its user.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|e| format!("`{}` cannot be read as PEM certificates: {e}", file.display()))?;
    if certificates.is_empty() {
        return Err(format!("`{}` holds no certificate", file.display()));
    }
    Ok(certificates)
}
