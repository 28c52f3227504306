//! Streams of events: those of a post, those taken up again, and the standing one.

use super::*;

#[tokio::test]
async fn events_are_told_as_they_come_and_together_if_they_come_together() {
    let mut world = World::new().await;
    let (mut peer, _) = world.call(7).await;
    peer.events().await;
    peer.chunk(&format!(": hello\n\nevent: message\ndata: {}", progress())).await;
    peer.chunk("\n\nevent: endpoint\ndata: /not/a/message\n\n").await;
    assert_eq!(world.told().await, format!("stream 7: {}", progress()));
    peer.chunk(&format!(
        "data: {}\n\ndata: {{\"jsonrpc\":\"2.0\",\ndata: \"id\":7,\"result\":{{}}}}\n\n",
        progress()
    ))
    .await;
    let last = r#"{"jsonrpc":"2.0", "id":7,"result":{}}"#;
    assert_eq!(world.told().await, format!("stream 7: {} + stream 7: {last}", progress()));
    // The stream ends, and its connection is used again.
    peer.chunk("").await;
    world.idle(1).await;
    world.session.post(request(8));
    assert!(peer.request().await.contains("\"id\":8"));
}

#[tokio::test]
async fn a_stream_that_ends_early_can_be_taken_up_from_its_last_event() {
    let mut world = World::new().await;
    let mut peer = world.begin("s-1").await;
    let mut post = request(7);
    post.headers.push(("MCP-Protocol-Version".into(), "2025-11-25".into()));
    world.session.post(post);
    peer.request().await;
    peer.events().await;
    peer.chunk("id: a-1\nretry: 500\ndata:\n\n").await;
    peer.chunk(&format!("id: a-2\ndata: {}\n\n", progress())).await;
    world.told().await;
    peer.chunk("").await;
    world.idle(1).await;
    let ended = "resumable=true retry=Some(500ms) status=None the server ended the stream";
    assert_eq!(world.told().await, format!("ended 7: {ended}"));

    world.session.reconnect(AttemptId(7));
    let text = peer.request().await;
    assert!(text.starts_with("GET /mcp HTTP/1.1\r\n"), "{text}");
    assert_eq!(header(&text, "last-event-id"), Some("a-2"));
    assert_eq!(header(&text, "accept"), Some("text/event-stream"));
    assert_eq!(header(&text, "mcp-session-id"), Some("s-1"));
    assert_eq!(header(&text, "mcp-protocol-version"), Some("2025-11-25"));
    peer.write("HTTP/1.1 409 Busy\r\nContent-Length: 0\r\n\r\n").await;
    let ended = "unopened resumable=true retry=Some(500ms) status=Some(409) refused with 409 Conflict";
    assert_eq!(world.told().await, format!("ended 7: {ended}"));

    world.idle(1).await;
    world.session.reconnect(AttemptId(7));
    assert_eq!(header(&peer.request().await, "last-event-id"), Some("a-2"));
    peer.events().await;
    peer.chunk(&format!("data: {}\n\n", answer(7))).await;
    assert_eq!(world.told().await, format!("stream 7: {}", answer(7)));
    // With its answer the attempt is forgotten.
    world.session.reconnect(AttemptId(7));
    let told = world.told().await;
    assert!(
        told.starts_with("ended 7: unopened resumable=false") && told.ends_with("no event id to go on from"),
        "{told}"
    );
}

#[tokio::test]
async fn a_stream_that_breaks_without_an_id_cannot_be_taken_up() {
    let mut world = World::new().await;
    let (mut peer, _) = world.call(7).await;
    peer.events().await;
    peer.write("ff\r\ndata: {").await;
    drop(peer);
    let told = world.told().await;
    assert!(told.starts_with("ended 7: resumable=false retry=None status=None "), "{told}");
}

#[tokio::test]
async fn an_event_that_is_too_long_is_told_as_such() {
    let mut world = World::with(|options| options.max_message = 100).await;
    let (mut peer, _) = world.call(7).await;
    peer.events().await;
    peer.chunk(&format!("data: {{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"{}", "x".repeat(200))).await;
    peer.chunk("\"}\n\n").await;
    assert_eq!(world.told().await, "oversized Some(\"7\") true");
    peer.chunk("").await;
    // That was the answer: its end is nothing to tell.
    world.idle(1).await;
    world.session.post(request(8));
    peer.request().await;
    peer.json(&answer(8)).await;
    assert_eq!(world.told().await, format!("stream 8: {}", answer(8)));
}

#[tokio::test]
async fn the_standing_stream_brings_messages_and_goes_on_where_it_ended() {
    let mut world = World::new().await;
    world.session.stand();
    let mut peer = world.accept().await;
    let text = peer.request().await;
    assert!(text.starts_with("GET /mcp HTTP/1.1\r\n"), "{text}");
    assert_eq!(header(&text, "last-event-id"), None);
    peer.events().await;
    peer.chunk(&format!("id: z\ndata: {}\n\n", progress())).await;
    assert_eq!(world.told().await, format!("standing: {}", progress()));
    drop(peer);
    let told = world.told().await;
    assert!(told.starts_with("standing ended: resumable=true retry=None status=None "), "{told}");
    world.session.stand();
    let mut peer = world.accept().await;
    assert_eq!(header(&peer.request().await, "last-event-id"), Some("z"));
    peer.write("HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n").await;
    let told = world.told().await;
    assert!(told.contains("status=Some(405) refused with 405"), "{told}");
}

#[tokio::test]
async fn a_standing_stream_replaces_the_one_before() {
    let mut world = World::new().await;
    world.session.stand();
    let mut first = world.accept().await;
    first.request().await;
    first.events().await;
    world.session.stand();
    let mut second = world.accept().await;
    second.request().await;
    first.closed().await;
    second.write("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n").await;
    let told = world.told().await;
    assert!(told.ends_with("status=Some(200) the answer is not an event stream"), "{told}");
}

#[tokio::test]
async fn a_redirected_get_keeps_its_last_event() {
    let mut world = World::new().await;
    world.session.stand();
    let mut peer = world.accept().await;
    peer.request().await;
    peer.write("HTTP/1.1 302 Go\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n").await;
    assert!(peer.request().await.starts_with("GET /other HTTP/1.1\r\n"));
    peer.write("HTTP/1.1 301 Go\r\nLocation: http://else.example/\r\nContent-Length: 0\r\n\r\n").await;
    let told = world.told().await;
    assert!(told.contains("status=Some(301) it redirects to http://else.example:80,"), "{told}");
}
