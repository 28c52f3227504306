//! The addresses of remote servers, as people write them.

use outlast_testkit::http::faults::FaultServer;
use serde_json::json;

use crate::http_world::{legacy, reach, reached};

#[test]
fn a_url_is_used_as_it_is_written() {
    let urls = [
        ("http://ADDRESS", "/"),
        ("http://ADDRESS/", "/"),
        ("http://ADDRESS/a/b%20c/mcp?key=x%26y&z", "/a/b%20c/mcp?key=x%26y&z"),
        ("http://ADDRESS?key=1", "/?key=1"),
        ("http://ADDRESS/mcp#fragment", "/mcp"),
        ("http://localhost:PORT/mcp", "/mcp"),
    ];
    for (url, path) in urls {
        let server = FaultServer::start(legacy);
        let (address, port) = (server.address().to_string(), server.address().port().to_string());
        let url = url.replace("ADDRESS", &address).replace("PORT", &port);
        let mut client = reached(&[], &url);
        assert_eq!(client.value_of("echo", &json!(1)), json!(1), "{url}");
        let requests = server.requests();
        assert!(requests.iter().all(|request| request.path == path), "{url}: {:?}", requests[0].path);
    }
}

#[test]
fn an_address_of_the_newer_kind_is_reached() {
    let server = FaultServer::start_at("[::1]:0", legacy);
    let mut client = reached(&[], &format!("http://{}/mcp", server.address()));
    assert_eq!(client.value_of("echo", &json!(1)), json!(1));
    let host = format!("[::1]:{}", server.address().port());
    assert!(server.requests().iter().all(|request| request.header("Host") == Some(&host)));
}

#[test]
fn what_is_no_url_of_a_server_is_an_error_that_says_so() {
    for url in [
        "http://",
        "https://:80/mcp",
        "http:///mcp",
        "http://a b/mcp",
        "http://host:port/mcp",
        "http://[::1/mcp",
    ] {
        let mut client = reach(&[], url);
        assert_eq!(client.end().code(), Some(2), "{url}: {}", client.stderr());
        let stderr = String::from_utf8(client.all_stderr()).unwrap();
        assert!(stderr.starts_with("outlast: ") && stderr.lines().count() <= 3, "{stderr}");
    }
}

/// Many remote servers want their key in the query.
#[test]
fn a_key_in_the_query_is_shown_nowhere() {
    let server = FaultServer::start(|request, connection| match request.tool().as_str() {
        "html" => connection.answer("200 OK", &[("Content-Type", "text/html")], "<p>"),
        "refuse" => connection.answer("401 Unauthorized", &[], ""),
        "reset" => connection.reset(),
        _ => legacy(request, connection),
    });
    let url = format!("{}?api_key=s3cr3t-canary", server.url());
    let mut client = reached(&["--log", "debug"], &url);
    for tool in ["html", "refuse", "reset"] {
        client.call(tool, &json!({}));
    }
    drop(server);
    client.call("echo", &json!({}));
    client.hang_up();
    let said: String = client.log().iter().map(|line| line.text()).collect();
    let stderr = String::from_utf8_lossy(&client.all_stderr()).into_owned();
    assert!(!said.contains("s3cr3t-canary"), "{said}");
    assert!(!stderr.contains("s3cr3t-canary"), "{stderr}");
}
