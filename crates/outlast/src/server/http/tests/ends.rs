//! Connections that fail, attempts that are abandoned, sessions that end.

use super::*;

#[tokio::test]
async fn a_refused_connection_names_the_address() {
    let mut world = World::new().await;
    let address = world.listener.local_addr().unwrap();
    let (session, mut told) = session(options(&format!("http://{address}/secret?key=1")));
    drop(std::mem::replace(&mut world.listener, TcpListener::bind("127.0.0.1:0").await.unwrap()));
    session.post(request(7));
    let said = patiently(told.recv()).await.unwrap();
    assert_eq!(said, format!("7 unreachable: connection refused ({address})"));
    session.connect();
    let said = patiently(told.recv()).await.unwrap();
    assert_eq!(said, format!("none unreachable: connection refused ({address})"));
}

/// An answer to a question: a person may have typed it. It comes back also if it was tried on a kept connection first.
#[tokio::test]
async fn an_answer_that_meets_no_connection_comes_back() {
    let mut world = World::new().await;
    let address = world.listener.local_addr().unwrap();
    let mut peer = world.begin("s").await;
    world.idle(1).await;
    drop(std::mem::replace(&mut world.listener, TcpListener::bind("127.0.0.1:0").await.unwrap()));
    let text = r#"{"jsonrpc":"2.0","id":"q","result":{}}"#;
    let answer = || Box::new(Post { harmless: true, comes_back: true, ..*message(None, text.into()) });
    world.session.post(answer());
    peer.request().await;
    drop(peer);
    let wanted = format!("undelivered {text}: connection refused ({address})");
    assert_eq!(world.told().await, wanted);
    world.session.post(answer());
    assert_eq!(world.told().await, wanted);
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_named() {
    let (session, mut told) = session(options("http://nowhere.invalid/secret"));
    session.post(request(7));
    let said = patiently(told.recv()).await.unwrap();
    assert!(said.starts_with("7 unreachable: cannot resolve nowhere.invalid: "), "{said}");
}

#[tokio::test]
async fn a_connection_that_takes_too_long_names_its_setting() {
    // Nobody answers the handshake: the listener accepts and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut options = options(&format!("https://{address}/"));
    options.connect = Duration::from_millis(20);
    let (session, mut told) = session(options);
    session.post(request(7));
    let said = patiently(told.recv()).await.unwrap();
    assert_eq!(said, format!("7 unreachable: no connection to {address} within 20ms (connect)"));
}

#[tokio::test]
async fn a_connection_that_was_opened_ahead_is_used() {
    let mut world = World::new().await;
    world.session.connect();
    let mut peer = world.accept().await;
    assert_eq!(world.told().await, "connected");
    world.session.post(request(7));
    assert!(peer.request().await.contains("\"id\":7"));
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_answer_is_told() {
    let mut world = World::new().await;
    let (peer, _) = world.call(7).await;
    drop(peer);
    assert_eq!(world.told().await, "7 broken: the server closed the connection");
    let (mut peer, _) = world.call(8).await;
    peer.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{").await;
    drop(peer);
    let told = world.told().await;
    assert!(told.starts_with("8 broken: "), "{told}");
    let (mut peer, _) = world.call(9).await;
    peer.write("SSH-2.0-OpenSSH\r\n").await;
    assert_eq!(world.told().await, "9 not mcp: the answer is not HTTP/1.1 (invalid HTTP version)");
    let (mut peer, _) = world.call(10).await;
    let long = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(1 << 20));
    let _ = peer.0.write_all(long.as_bytes()).await;
    assert_eq!(world.told().await, "10 not mcp: the answer is not HTTP/1.1 (message head is too large)");
}

/// A kept connection may close just as a request is written to it. Whether it was received cannot be
/// known, so it is not written again.
#[tokio::test]
async fn a_request_that_may_have_been_received_is_never_sent_twice() {
    let mut world = World::new().await;
    let (mut peer, _) = world.call(7).await;
    peer.json(&answer(7)).await;
    world.told().await;
    world.session.post(request(8));
    peer.request().await;
    drop(peer);
    assert_eq!(world.told().await, "8 broken: the server closed the connection");
    world.session.post(request(9));
    assert!(world.accept().await.request().await.contains("\"id\":9"), "8 came again");
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_not_used() {
    let mut world = World::new().await;
    let (mut peer, _) = world.call(7).await;
    peer.json(&answer(7)).await;
    world.told().await;
    world.idle(1).await;
    drop(peer);
    world.idle(0).await;
    let (mut peer, text) = world.call(8).await;
    assert!(text.contains("\"id\":8"));
    peer.json(&answer(8)).await;
    assert_eq!(world.told().await, format!("stream 8: {}", answer(8)));
}

#[tokio::test]
async fn a_connection_that_the_server_keeps_shortly_is_left_in_time() {
    let mut world = World::new().await;
    let (mut peer, _) = world.call(7).await;
    peer.json_with("Keep-Alive: timeout=1\r\n", &answer(7)).await;
    peer.closed().await;
    let mut world = World::with(|options| options.pool_max_idle = 0).await;
    let (mut peer, _) = world.call(7).await;
    peer.json(&answer(7)).await;
    peer.closed().await;
    let mut world = World::with(|options| options.pool_idle = Duration::from_millis(1)).await;
    let (mut peer, _) = world.call(7).await;
    peer.json(&answer(7)).await;
    peer.closed().await;
}

#[tokio::test]
async fn an_abandoned_attempt_closes_its_connection() {
    let mut world = World::new().await;
    let (mut waiting, _) = world.call(7).await;
    let (mut streaming, _) = world.call(8).await;
    streaming.events().await;
    streaming.chunk(&format!("id: 1\ndata: {}\n\n", progress())).await;
    world.told().await;
    world.session.abandon(AttemptId(7));
    waiting.closed().await;
    world.session.abandon(AttemptId(8));
    streaming.closed().await;
    world.session.abandon(AttemptId(9));
    world.session.reconnect(AttemptId(8));
    assert!(world.told().await.starts_with("ended 8: unopened resumable=false"));
}

#[tokio::test]
async fn a_session_is_ended_once_nothing_is_in_flight() {
    let mut world = World::new().await;
    let mut standing = world.begin("s-1").await;
    world.session.stand();
    standing.request().await;
    standing.events().await;
    let (mut peer, _) = world.call(7).await;
    world.session.close();
    standing.closed().await;
    peer.json(&answer(7)).await;
    assert_eq!(world.told().await, format!("stream 7: {}", answer(7)));
    let text = peer.request().await;
    assert!(text.starts_with("DELETE /mcp HTTP/1.1\r\n"), "{text}");
    assert_eq!(header(&text, "mcp-session-id"), Some("s-1"));
    peer.write("HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(world.told().await, "closed");
    world.session.post(request(8));
    world.session.kill();
    drop(world.session);
    assert_eq!(world.told.recv().await, None);
}

#[tokio::test]
async fn a_session_that_never_began_just_ends() {
    let mut world = World::new().await;
    world.session.close();
    assert_eq!(world.told().await, "closed");
}

#[tokio::test]
async fn a_killed_session_closes_everything_at_once() {
    let mut world = World::new().await;
    let mut idle = world.begin("s-1").await;
    world.session.post(request(7));
    idle.request().await;
    let (mut other, _) = world.call(8).await;
    world.session.close();
    world.session.kill();
    idle.closed().await;
    other.closed().await;
    assert_eq!(world.told().await, "closed");
    assert!(world.told.is_empty());
}

#[tokio::test]
async fn a_url_without_sense_is_refused() {
    let refused = |url: &str| Remote::new(options(url)).unwrap_err();
    assert_eq!(refused("ftp://host/"), "a server's URL begins with http:// or https://");
    let told = refused("http://name:pass@host/");
    assert!(told.contains("--header 'Authorization") && !told.contains("pass@"), "{told}");
    let remote = Remote::new(options("http://host:81/secret?key=1")).unwrap();
    assert_eq!(format!("{remote:?}"), "Remote(host:81)");
}

/// The driver calls a session while it is fed by it.
#[tokio::test]
async fn a_feed_may_call_the_session() {
    struct Caller(std::sync::OnceLock<Session>, mpsc::UnboundedSender<String>);
    impl Feed for Caller {
        fn feed(&self, happenings: &mut dyn Iterator<Item = Happening>) {
            let session = self.0.get().unwrap();
            for happening in happenings {
                session.abandon(AttemptId(7));
                session.post(request(8));
                session.stand();
                let _ = self.1.send(show(happening));
            }
        }
    }
    let (sender, mut told) = mpsc::unbounded_channel();
    let world = World::new().await;
    let feed = Arc::new(Caller(std::sync::OnceLock::new(), sender));
    let _ = feed.0.set(Session::new(world.remote.clone(), feed.clone()));
    feed.0.get().unwrap().post(request(7));
    let mut peer = world.accept().await;
    peer.request().await;
    peer.events().await;
    peer.chunk(&format!("data: {}\n\ndata: {}\n\n", progress(), answer(7))).await;
    for expected in [progress().to_owned(), answer(7)] {
        assert_eq!(patiently(told.recv()).await.unwrap(), format!("stream 7: {expected}"));
    }
}

#[tokio::test]
async fn what_nobody_has_room_for_is_not_read() {
    struct Full(Arc<tokio::sync::Semaphore>, mpsc::UnboundedSender<String>);
    impl Feed for Full {
        fn feed(&self, happenings: &mut dyn Iterator<Item = Happening>) {
            happenings.for_each(|happening| drop(self.1.send(show(happening))));
        }
        fn congestion(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
            let room = self.0.clone();
            Some(Box::pin(async move { room.acquire_owned().await.unwrap().forget() }))
        }
    }
    let (sender, mut told) = mpsc::unbounded_channel();
    let room = Arc::new(tokio::sync::Semaphore::new(1));
    let mut world = World::new().await;
    world.session = Session::new(world.remote.clone(), Arc::new(Full(room.clone(), sender)));
    let (mut peer, _) = world.call(7).await;
    peer.events().await;
    peer.chunk(&format!("data: {}\n\n", progress())).await;
    assert_eq!(patiently(told.recv()).await.unwrap(), format!("stream 7: {}", progress()));
    peer.chunk(&format!("data: {}\n\n", answer(7))).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(told.is_empty());
    room.add_permits(1);
    assert_eq!(patiently(told.recv()).await.unwrap(), format!("stream 7: {}", answer(7)));
}

/// Who is stopped in the middle of its last word carries nothing more; the next post is not given to it.
#[tokio::test]
async fn an_attempt_that_is_abandoned_as_it_ends_takes_no_other_with_it() {
    struct Abandoner(std::sync::OnceLock<Session>, mpsc::UnboundedSender<String>);
    impl Feed for Abandoner {
        fn feed(&self, happenings: &mut dyn Iterator<Item = Happening>) {
            self.0.get().unwrap().abandon(AttemptId(7));
            happenings.for_each(|happening| drop(self.1.send(show(happening))));
        }
    }
    let (sender, mut told) = mpsc::unbounded_channel();
    let world = World::new().await;
    let feed = Arc::new(Abandoner(std::sync::OnceLock::new(), sender));
    let _ = feed.0.set(Session::new(world.remote.clone(), feed.clone()));
    let session = feed.0.get().unwrap();
    session.post(request(7));
    let mut peer = world.accept().await;
    peer.request().await;
    peer.events().await;
    // In one piece, so that nothing of it is waited for.
    peer.write("7\r\nid: 1\n\n\r\n0\r\n\r\n").await;
    assert!(patiently(told.recv()).await.unwrap().starts_with("ended 7: resumable=true"));
    session.post(request(8));
    let mut next = tokio::select! {
        () = async { drop(peer.request().await) } => peer,
        mut next = world.accept() => {
            next.request().await;
            next
        }
    };
    next.json(&answer(8)).await;
    assert_eq!(patiently(told.recv()).await.unwrap(), format!("stream 8: {}", answer(8)));
}
