//! Proxies of the environment.

use super::*;

async fn through(url: &str) -> World {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut options = options(url);
    let proxy = format!("http://me:s3cret@{}", listener.local_addr().unwrap());
    options.proxies = Matcher::builder().all(proxy).no("exempt.invalid").build();
    World::of(listener, options)
}

/// `me:s3cret`.
const AUTHORIZATION: Option<&str> = Some("Basic bWU6czNjcmV0");

#[tokio::test]
async fn a_proxy_gets_the_whole_url_of_a_plain_server() {
    let mut world = through("http://server.invalid/mcp?x=1").await;
    let (mut peer, text) = world.call(7).await;
    assert!(text.starts_with("POST http://server.invalid/mcp?x=1 HTTP/1.1\r\n"), "{text}");
    assert_eq!(header(&text, "host"), Some("server.invalid"));
    assert_eq!(header(&text, "proxy-authorization"), AUTHORIZATION);
    peer.json(&answer(7)).await;
    assert_eq!(world.told().await, format!("stream 7: {}", answer(7)));
}

#[tokio::test]
async fn a_proxy_connects_us_to_a_secure_server() {
    let world = through("https://server.invalid/mcp").await;
    world.session.connect();
    let mut peer = world.accept().await;
    let text = peer.request().await;
    assert!(text.starts_with("CONNECT server.invalid:443 HTTP/1.1\r\n"), "{text}");
    assert_eq!(header(&text, "proxy-authorization"), AUTHORIZATION);
    peer.write("HTTP/1.1 200 Connection established\r\n\r\n").await;
    // What comes through is a TLS handshake.
    assert_eq!(patiently(peer.0.read_u8()).await.unwrap(), 0x16);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    for (answer, why) in [
        ("HTTP/1.1 407 No\r\n\r\n", "wants other credentials (407)"),
        ("HTTP/1.0 502 Bad\r\nX: y\r\n\r\n", "refused to connect to server.invalid:443 (502)"),
        ("\x15\x03\r\n\r\n", "does not speak HTTP"),
    ] {
        let mut world = through("https://server.invalid/mcp").await;
        world.session.connect();
        let mut peer = world.accept().await;
        peer.request().await;
        peer.write(answer).await;
        let proxy = world.listener.local_addr().unwrap();
        assert_eq!(world.told().await, format!("none unreachable: the proxy {proxy} {why}"));
    }
}

#[tokio::test]
async fn an_exempt_host_and_this_machine_need_no_proxy() {
    let mut world = through("http://exempt.invalid/").await;
    world.session.connect();
    assert!(world.told().await.starts_with("none unreachable: cannot resolve exempt.invalid: "));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let world = through(&format!("http://{}/", listener.local_addr().unwrap())).await;
    world.session.connect();
    patiently(listener.accept()).await.unwrap();
}

#[tokio::test]
async fn a_proxy_of_another_kind_is_refused() {
    let mut options = options("https://server.invalid/");
    options.proxies = Matcher::builder().all("socks5://me:s3cret@proxy.invalid:1080").build();
    let told = Remote::new(options).unwrap_err();
    assert!(told.starts_with("the proxy proxy.invalid:1080 of the environment speaks socks5;"), "{told}");
}
