//! One message, one response.

use super::*;

#[tokio::test]
async fn a_json_answer_is_told_and_its_connection_used_again() {
    let mut world = World::with(|options| {
        options.headers.push(parse_header("X-Key: a b", |_| None).unwrap());
    })
    .await;
    let mut post = request(7);
    post.headers.push(("MCP-Protocol-Version".into(), "2025-11-25".into()));
    post.headers.push(("Mcp-Param-City".into(), "Bern".into()));
    world.session.post(post);
    let mut peer = world.accept().await;
    let text = peer.request().await;
    assert!(text.starts_with("POST /mcp HTTP/1.1\r\n"), "{text}");
    assert!(text.ends_with(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#), "{text}");
    assert_eq!(header(&text, "content-type"), Some("application/json"));
    assert_eq!(header(&text, "accept"), Some("application/json, text/event-stream"));
    assert_eq!(header(&text, "mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(header(&text, "mcp-param-city"), Some("Bern"));
    assert_eq!(header(&text, "x-key"), Some("a b"));
    let host = world.listener.local_addr().unwrap().to_string();
    assert_eq!(header(&text, "host"), Some(&*host));
    peer.json(&answer(7)).await;
    assert_eq!(world.told().await, format!("stream 7: {}", answer(7)));
    world.idle(1).await;

    world.session.post(request(8));
    peer.request().await;
    peer.json(&answer(8)).await;
    assert_eq!(world.told().await, format!("stream 8: {}", answer(8)));
}

#[tokio::test]
async fn an_answer_in_pieces_and_over_several_lines_is_one_line() {
    let mut world = World::new().await;
    let (mut peer, _) = world.call(7).await;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    peer.write(head).await;
    peer.chunk("\u{feff}{\r\n \"jsonrpc\":\"2.0\",").await;
    peer.chunk("\n\"id\":\"7\",\"result\":{}\n}\n").await;
    peer.chunk("").await;
    let told = world.told().await;
    assert_eq!(told, "stream 7: {   \"jsonrpc\":\"2.0\", \"id\":\"7\",\"result\":{} }");
}

#[tokio::test]
async fn an_array_is_passed_on_as_one() {
    let mut world = World::new().await;
    let (mut peer, _) = world.call(7).await;
    peer.json(&format!("[{},{}]", progress(), answer(7))).await;
    assert_eq!(world.told().await, "stream 7: 2 members");
}

#[tokio::test]
async fn json_without_the_answer_is_told_and_is_no_mcp() {
    let mut world = World::new().await;
    let (mut peer, _) = world.call(7).await;
    peer.json(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}"#).await;
    let told = world.told().await;
    assert!(told.starts_with("stream 7: {"), "{told}");
    assert!(told.ends_with(" + 7 not mcp: JSON that is not the answer to the request"), "{told}");
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_not_read() {
    let mut world = World::with(|options| options.max_message = 100).await;
    let (mut peer, _) = world.call(7).await;
    peer.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 101\r\n\r\n{").await;
    assert_eq!(world.told().await, "oversized Some(\"7\") true");
    peer.closed().await;
    let (mut peer, _) = world.call(8).await;
    peer.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    peer.chunk(&"x".repeat(60)).await;
    peer.chunk(&"x".repeat(60)).await;
    assert_eq!(world.told().await, "oversized Some(\"8\") true");
}

#[tokio::test]
async fn html_is_no_mcp_and_a_glimpse_of_it_is_shown() {
    let mut world = World::new().await;
    let (mut peer, _) = world.call(7).await;
    let body = format!("<html>\u{1b}[2J{}", "x".repeat(200));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html";
    peer.write(&format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await;
    let told = world.told().await;
    assert!(
        told.starts_with("7 not mcp: status 200 with text/html instead of MCP: <html>\\u{1b}[2Jxx"),
        "{told}"
    );
    assert!(told.ends_with("x…") && told.len() < 250, "{told}");
    // The rest was short enough, so the connection is used again.
    world.session.post(request(8));
    peer.request().await;
    peer.write("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(world.told().await, "8 not mcp: status 202 without an answer");
}

#[tokio::test]
async fn a_notification_that_was_taken_is_not_mentioned() {
    let mut world = World::new().await;
    world.session.post(notification());
    let mut peer = world.accept().await;
    peer.request().await;
    peer.write("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await;
    world.idle(1).await;
    world.session.post(notification());
    peer.request().await;
    peer.write("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno").await;
    assert_eq!(world.told().await, "none status 404 None session=false: no");
}

#[tokio::test]
async fn a_refusal_says_what_the_server_said() {
    let mut world = World::new().await;
    let mut peer = world.begin("s-1").await;
    world.session.post(request(7));
    let text = peer.request().await;
    assert_eq!(header(&text, "mcp-session-id"), Some("s-1"));
    peer.write("HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nlate").await;
    assert_eq!(world.told().await, "7 status 503 Some(7s) session=true: late");
    world.session.post(request(8));
    peer.request().await;
    // Its end does not come: what is there counts, and the connection does not.
    peer.write("HTTP/1.1 401 Who\r\nContent-Length: 99999\r\n\r\n").await;
    peer.write(&"x".repeat(70_000)).await;
    let told = world.told().await;
    assert!(told.starts_with("8 status 401 None session=true: xxx"), "{told}");
    assert_eq!(told.matches('x').count(), 64 << 10);
}

#[tokio::test]
async fn a_session_that_begins_again_is_sent_without_the_old_one() {
    let mut world = World::new().await;
    let mut peer = world.begin("s-1").await;
    let mut again = request(2);
    again.begins_session = true;
    world.session.post(again);
    assert_eq!(header(&peer.request().await, "mcp-session-id"), None);
    peer.json_with("Mcp-Session-Id: not\tgood\r\n", &answer(2)).await;
    world.told().await;
    world.session.post(request(3));
    assert_eq!(header(&peer.request().await, "mcp-session-id"), None);
}

#[tokio::test]
async fn what_goes_first_is_not_overtaken() {
    let world = World::new().await;
    let mut first = request(1);
    (first.begins_session, first.goes_first) = (true, true);
    world.session.post(first);
    world.session.post(request(2));
    world.session.stand();
    let mut peer = world.accept().await;
    assert!(peer.request().await.contains(r#""id":1"#));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let early = tokio::time::timeout(Duration::ZERO, world.listener.accept()).await;
    assert!(early.is_err(), "somebody did not wait");
    peer.json_with("Mcp-Session-Id: s\r\n", &answer(1)).await;
    // One of them comes on the connection that became free.
    let texts = [peer.request().await, world.accept().await.request().await];
    assert!(texts.iter().all(|text| header(text, "mcp-session-id") == Some("s")), "{texts:?}");
}

#[tokio::test]
async fn the_standing_stream_is_not_overtaken() {
    let world = World::new().await;
    let mut first = notification();
    first.goes_first = true;
    world.session.post(first);
    world.session.stand();
    (2..5).for_each(|id| world.session.post(request(id)));
    let mut peer = world.accept().await;
    peer.request().await;
    peer.write("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await;
    let text = peer.request().await;
    assert!(text.starts_with("GET "), "{text}");
    let early = tokio::time::timeout(Duration::ZERO, world.listener.accept()).await;
    assert!(early.is_err(), "somebody did not wait");
    peer.events().await;
    for id in 2..5 {
        let text = world.accept().await.request().await;
        assert!(text.contains(&format!(r#""id":{id}"#)), "{text}");
    }
}

/// Says something on a kept connection that is closed as it is used.
async fn said_in_vain(harmless: bool) -> World {
    let mut world = World::new().await;
    let mut peer = world.begin("s").await;
    world.idle(1).await;
    let mut said = notification();
    said.harmless = harmless;
    world.session.post(said);
    peer.request().await;
    world
}

/// What may be said twice is said again, on a new connection, and no third time.
#[tokio::test]
async fn an_answer_is_not_lost_with_a_kept_connection() {
    let mut world = said_in_vain(true).await;
    assert!(world.accept().await.request().await.ends_with("\"notifications/x\"}"));
    assert!(world.told().await.starts_with("none broken: "));
}

#[tokio::test]
async fn what_may_do_harm_is_not_said_again() {
    assert!(said_in_vain(false).await.told().await.starts_with("none broken: "));
}

#[tokio::test]
async fn a_redirect_is_followed_here_and_not_elsewhere() {
    let mut world = World::new().await;
    let (mut peer, _) = world.call(7).await;
    peer.write("HTTP/1.1 307 Go\r\nLocation: /mcp/\r\nContent-Length: 0\r\n\r\n").await;
    let text = peer.request().await;
    assert!(text.starts_with("POST /mcp/ HTTP/1.1\r\n") && text.ends_with("\"tools/call\"}"), "{text}");
    peer.json(&answer(7)).await;
    world.told().await;

    world.session.post(request(8));
    peer.request().await;
    peer.write("HTTP/1.1 308 Go\r\nLocation: https://else.example/a?key=1\r\nContent-Length: 0\r\n\r\n")
        .await;
    let told = world.told().await;
    assert!(told.starts_with("8 status 308 None session=false: it redirects to https://else.example:443,"));
    assert!(!told.contains("key"), "{told}");

    let (mut peer, _) = world.call(9).await;
    for _ in 0..5 {
        peer.write("HTTP/1.1 307 Go\r\nLocation: /round\r\nContent-Length: 0\r\n\r\n").await;
        assert!(peer.request().await.starts_with("POST /round "));
    }
    peer.write("HTTP/1.1 307 Go\r\nLocation: /round\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(world.told().await, "9 not mcp: redirected more than 5 times");
}
