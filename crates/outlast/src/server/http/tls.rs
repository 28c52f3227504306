//! TLS: whom we trust, and what is wrong with a certificate in words that help.

use super::tcp::Host;
use super::words;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Names of a certificate that an error shows.
const NAMES: usize = 3;

/// How to speak TLS with one host.
pub struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    /// Trusts the system's roots and those of a file; the error is for people.
    pub fn new(host: &Host, ca_file: Option<&Path>) -> Result<Tls, String> {
        let roots = roots(ca_file, "--ca-file")?;
        Tls::trusting(host, roots, vec![b"http/1.1".to_vec()])
    }

    /// The same for a database: trusts only the file if there is one, as other programs that read such a URL do.
    pub fn for_database(host: &Host, ca_file: Option<&Path>) -> Result<Tls, String> {
        let roots = match ca_file {
            Some(path) => of_file(RootCertStore::empty(), path, "sslrootcert")?,
            None => roots(None, "sslrootcert")?,
        };
        Tls::trusting(host, roots, Vec::new())
    }

    fn trusting(host: &Host, roots: RootCertStore, protocols: Vec<Vec<u8>>) -> Result<Tls, String> {
        let name = ServerName::try_from(host.name.to_string())
            .map_err(|_| format!("`{}` is not a name that a certificate can have", host.name))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS: {error}"))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols;
        Ok(Tls { connector: TlsConnector::from(Arc::new(config)), name })
    }

    /// The handshake; the error is for people.
    pub async fn handshake<S>(&self, stream: S) -> Result<TlsStream<S>, String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let done = self.connector.connect(self.name.clone(), stream).await;
        done.map_err(|error| explain(&error, &self.name.to_str()))
    }
}

fn roots(ca_file: Option<&Path>, setting: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    if let Some(path) = ca_file {
        roots = of_file(roots, path, setting)?;
    }
    match system.errors.first() {
        _ if !roots.is_empty() => Ok(roots),
        Some(error) => {
            Err(format!("no certificates to trust were found ({error}); {setting} names a file of them"))
        }
        None => Err(format!("no certificates to trust were found; {setting} names a file of them")),
    }
}

/// Adds what stands in a file.
fn of_file(mut roots: RootCertStore, path: &Path, setting: &str) -> Result<RootCertStore, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("{setting} {}: {error}", path.display());
    let mut any = false;
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
        any = true;
    }
    if any { Ok(roots) } else { Err(unreadable(&"it holds no certificate")) }
}

/// Why a handshake failed.
fn explain(error: &io::Error, host: &str) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) => of_certificate(why, host),
        Some(rustls::Error::InvalidMessage(_)) => "the server does not speak TLS on this port".into(),
        Some(other) => format!("TLS: {other}"),
        None => format!("TLS: {}", words::of_io(error)),
    }
}

fn of_certificate(why: &CertificateError, host: &str) -> String {
    match why {
        CertificateError::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            let shown = presented.iter().take(NAMES).map(|name| bare(name)).collect::<Vec<_>>().join(", ");
            let more = if presented.len() > NAMES { ", …" } else { "" };
            format!("the certificate is not valid for {host}; it is for {shown}{more}")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the certificate is not valid for {host}")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("the certificate of {host} has expired")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the certificate of {host} is not valid yet")
        }
        CertificateError::UnknownIssuer => {
            format!("the certificate of {host} is signed by nobody whom this system trusts (see --ca-file)")
        }
        other => format!("the certificate of {host} is not accepted: {other}"),
    }
}

/// A name as the library shows it, `DnsName("a.example")`, without what surrounds it.
fn bare(name: &str) -> String {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    crate::observe::text::escape(inner.trim_matches('"'))
}
