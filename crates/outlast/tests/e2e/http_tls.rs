//! Remote servers over TLS: trusted only with a certificate that is theirs.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_testkit::http::faults::{Connection, FaultServer, Request, Socket, Stream};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http_world::{legacy, outlast_alone, reach, reached};
use crate::world::data;

/// Somebody who signs certificates.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

impl Authority {
    pub fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.pem"), issuer.pem()).unwrap();
        Authority { issuer, directory }
    }

    pub fn file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// A server with a certificate for this name, valid in these years.
    fn server(&self, name: &str, years: Range<i32>) -> FaultServer {
        self.server_with(name, years, legacy)
    }

    pub fn server_with(
        &self,
        name: &str,
        years: Range<i32>,
        script: impl Fn(&Request, &mut Connection) + Send + Sync + 'static,
    ) -> FaultServer {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(years.start, 1, 1);
        params.not_after = rcgen::date_time_ymd(years.end, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config =
            config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
        let config = Arc::new(config);
        FaultServer::start_through(move |socket| secured(&config, socket), script)
    }
}

fn secured(config: &Arc<ServerConfig>, socket: Socket) -> io::Result<Box<dyn Stream>> {
    let connection = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
    Ok(Box::new(StreamOwned::new(connection, socket)))
}

fn https(server: &FaultServer, host: &str) -> String {
    format!("https://{host}:{}/mcp", server.address().port())
}

/// What the client is told of a server that is not to be trusted, and that the server learned nothing.
fn refused(server: &FaultServer, host: &str, file: Option<&Path>) -> Value {
    let mut flags = vec!["--connect-retries", "0", "--header", "Authorization: Bearer s3cr3t"];
    if let Some(file) = file {
        flags.extend(["--ca-file", file.to_str().unwrap()]);
    }
    let answer = reach(&flags, &https(server, host)).handshake();
    assert_eq!(answer["error"]["code"], -31003, "{answer}");
    assert_eq!(data(&answer)["kind"], "server-failed");
    assert!(server.requests().is_empty());
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("certificate"), "{message}");
    answer
}

#[test]
fn a_certificate_of_a_given_authority_is_trusted() {
    let authority = Authority::new();
    let server = authority.server("localhost", 2000..2100);
    let file = authority.file();
    let mut client = reached(&["--ca-file", file.to_str().unwrap()], &https(&server, "localhost"));
    for number in 0..3 {
        assert_eq!(client.value_of("echo", &json!(number)), json!(number));
    }
    client.hang_up();
    server.request_where(|request| request.method == "DELETE");
}

#[test]
fn a_certificate_for_an_address_is_trusted() {
    let authority = Authority::new();
    let server = authority.server("127.0.0.1", 2000..2100);
    let file = authority.file();
    reached(&["--ca-file", file.to_str().unwrap()], &https(&server, "127.0.0.1"));
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let authority = Authority::new();
    let server = authority.server("somebody.else", 2000..2100);
    refused(&server, "localhost", Some(&authority.file()));
    refused(&server, "127.0.0.1", Some(&authority.file()));
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused() {
    let (known, unknown) = (Authority::new(), Authority::new());
    let server = unknown.server("localhost", 2000..2100);
    refused(&server, "localhost", Some(&known.file()));
    refused(&server, "localhost", None);
}

#[test]
fn a_certificate_that_is_too_old_is_refused() {
    let authority = Authority::new();
    refused(&authority.server("localhost", 2000..2001), "localhost", Some(&authority.file()));
    refused(&authority.server("localhost", 2090..2100), "localhost", Some(&authority.file()));
}

#[test]
fn a_server_that_speaks_no_tls_is_named() {
    let server = FaultServer::start(legacy);
    let answer = reach(&["--connect-retries", "0"], &https(&server, "127.0.0.1")).handshake();
    assert_eq!(data(&answer)["kind"], "server-failed", "{answer}");
    assert!(server.requests().is_empty());
}

#[test]
fn a_server_that_speaks_only_tls_is_named() {
    let authority = Authority::new();
    let server = authority.server("127.0.0.1", 2000..2100);
    let answer = reach(&["--connect-retries", "0"], &server.url()).handshake();
    let kind = data(&answer)["kind"].as_str().unwrap();
    assert!(["not-mcp", "server-gone", "server-failed"].contains(&kind), "{answer}");
}

#[test]
fn a_file_that_holds_no_certificate_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty.pem");
    std::fs::write(&empty, "no certificate here\n").unwrap();
    let missing = directory.path().join("missing.pem");
    for file in [empty, missing] {
        let file = file.to_str().unwrap();
        let mut command = outlast_alone();
        command.args(["--ca-file", file, "https://127.0.0.1:1/mcp"]);
        let mut client = outlast_testkit::peer::Peer::start(&mut command);
        assert_eq!(client.end().code(), Some(2), "{file}");
        let stderr = String::from_utf8(client.all_stderr()).unwrap();
        assert!(stderr.contains(file), "{stderr}");
    }
}

/// Credentials do not leave an encrypted connection for a plain one.
#[test]
fn a_redirect_to_plain_http_is_not_followed() {
    let plain = FaultServer::start(legacy);
    let authority = Authority::new();
    let location = plain.url();
    let server = authority.server_with("localhost", 2000..2100, move |_, connection| {
        connection.answer("307 Temporary Redirect", &[("Location", &location)], "");
    });
    let file = authority.file();
    let flags = ["--header", "Authorization: Bearer s3cr3t", "--ca-file", file.to_str().unwrap()];
    let answer = reach(&flags, &https(&server, "localhost")).handshake();
    assert_eq!(data(&answer)["kind"], "http-status", "{answer}");
    assert!(plain.requests().is_empty());
}
