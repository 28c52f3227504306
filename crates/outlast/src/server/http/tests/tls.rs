//! TLS, with a certificate of our own.

use super::*;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::io::Write;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A listener with a certificate for this name, and the file that holds it.
async fn secure(name: &str) -> (TcpListener, TlsAcceptor, tempfile::NamedTempFile) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(cert.pem().as_bytes()).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    (listener, TlsAcceptor::from(Arc::new(config)), file)
}

async fn accept(
    listener: &TcpListener,
    acceptor: &TlsAcceptor,
) -> std::io::Result<Peer<TlsStream<TcpStream>>> {
    let (stream, _) = patiently(listener.accept()).await?;
    patiently(acceptor.accept(stream)).await.map(Peer)
}

#[tokio::test]
async fn a_certificate_of_the_ca_file_is_trusted() {
    let (listener, acceptor, file) = secure("127.0.0.1").await;
    let mut options = options(&format!("https://{}/mcp", listener.local_addr().unwrap()));
    options.ca_file = Some(file.path().to_owned());
    let (session, mut told) = session(options);
    session.post(request(7));
    let mut peer = accept(&listener, &acceptor).await.unwrap();
    assert!(peer.request().await.starts_with("POST /mcp HTTP/1.1\r\n"));
    peer.json(&answer(7)).await;
    assert_eq!(patiently(told.recv()).await.unwrap(), format!("stream 7: {}", answer(7)));
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_by_name() {
    let (listener, acceptor, file) = secure("other.example").await;
    let mut options = options(&format!("https://{}/mcp", listener.local_addr().unwrap()));
    options.ca_file = Some(file.path().to_owned());
    let (session, mut told) = session(options);
    session.post(request(7));
    assert!(accept(&listener, &acceptor).await.is_err());
    let said = patiently(told.recv()).await.unwrap();
    assert_eq!(said, "7 unreachable: the certificate is not valid for 127.0.0.1; it is for other.example");
}

#[tokio::test]
async fn a_certificate_of_nobody_known_is_refused() {
    let (listener, acceptor, _file) = secure("127.0.0.1").await;
    let (session, mut told) = session(options(&format!("https://{}/", listener.local_addr().unwrap())));
    session.connect();
    assert!(accept(&listener, &acceptor).await.is_err());
    let said = patiently(told.recv()).await.unwrap();
    let why = "the certificate of 127.0.0.1 is signed by nobody whom this system trusts (see --ca-file)";
    assert_eq!(said, format!("none unreachable: {why}"));
}

#[tokio::test]
async fn a_server_without_tls_is_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (session, mut told) = session(options(&format!("https://{}/", listener.local_addr().unwrap())));
    session.connect();
    let mut stream = patiently(listener.accept()).await.unwrap().0;
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    let said = patiently(told.recv()).await.unwrap();
    assert_eq!(said, "none unreachable: the server does not speak TLS on this port");
}

#[tokio::test]
async fn a_ca_file_that_cannot_be_used_is_named() {
    let mut odd = options("https://host.example/");
    odd.ca_file = Some("/nowhere/ca.pem".into());
    let said = Remote::new(odd).unwrap_err();
    assert!(said.starts_with("--ca-file /nowhere/ca.pem: "), "{said}");
    let mut empty = options("https://host.example/");
    let file = tempfile::NamedTempFile::new().unwrap();
    empty.ca_file = Some(file.path().to_owned());
    assert!(Remote::new(empty).unwrap_err().ends_with("it holds no certificate"));
}
