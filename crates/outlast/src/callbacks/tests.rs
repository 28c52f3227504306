use super::*;
use crate::http1::body::Framing;
use crate::http1::fields::Fields;

const BODY: &str = r#"{"test": 2432232314}"#;

fn receiver(url: &str) -> Receiver {
    let secret = read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    Receiver::new(&url.parse().unwrap(), &secret, Vec::new(), None, Some("https://outlast.example".into()))
        .unwrap()
}

/// The example of the specification: `hmac` of Python says the same.
#[test]
fn a_signature_is_that_of_standard_webhooks() {
    let signature =
        receiver("http://127.0.0.1/").signature("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", BODY);
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[test]
fn a_request_says_all_that_a_receiver_checks() {
    let request = receiver("http://127.0.0.1:81/in?from=us").request("cb_1_2", 1_614_265_330, BODY);
    let request = String::from_utf8(request).unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, BODY);
    let mut lines = head.split("\r\n");
    assert_eq!(lines.next(), Some("POST /in?from=us HTTP/1.1"));
    let lines: Vec<String> = lines.map(str::to_ascii_lowercase).collect();
    for line in
        ["host: 127.0.0.1:81", "content-length: 20", "webhook-id: cb_1_2", "webhook-timestamp: 1614265330"]
    {
        assert!(lines.iter().any(|found| found == line), "{line} is not in {lines:?}");
    }
}

#[test]
fn a_secret_has_enough_bytes_and_is_never_shown() {
    for (text, why) in [
        ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "the secret is not `whsec_` and base64"),
        ("whsec_*", "the secret is not `whsec_` and base64"),
        ("whsec_Zm9v", "the secret does not have 24 to 64 bytes"),
    ] {
        assert_eq!(read_secret(text), Err(why));
    }
}

#[test]
fn only_a_receiver_that_is_gone_ends_it() {
    let answer = |status, pairs: &[(&str, &str)]| {
        let framing = Framing::Length(0);
        judge(&Response { status, fields: Fields::of_pairs(pairs), framing, keeps: false })
    };
    assert_eq!(answer(204, &[]), Delivery::Done);
    assert_eq!(answer(410, &[]), Delivery::Unwanted("410 Gone".into()));
    for status in [301, 400, 401, 404, 408, 500] {
        assert!(matches!(answer(status, &[]), Delivery::Failed { retry_after: None, .. }), "{status}");
    }
    let moved = answer(307, &[("location", "http://169.254.169.254/")]);
    assert_eq!(moved, failed("307 Temporary Redirect (redirects are not followed)".into()));
    let Delivery::Failed { retry_after, .. } = answer(429, &[("retry-after", "17")]) else { panic!() };
    assert_eq!(retry_after.map(|wait| wait.as_secs()), Some(17));
}

#[test]
fn a_link_decides_one_hold_until_its_end() {
    let body = r#"{"type":"call.waiting_for_approval","data":{"hold":{"number":7,"until":"2999-01-01T00:00:00.000Z"}}}"#;
    let receiver = receiver("https://127.0.0.1/");
    let told: Value = serde_json::from_str(&receiver.with_link("ops", body)).unwrap();
    let link = told["data"]["link"].as_str().unwrap();
    let rest =
        link.strip_prefix("https://outlast.example/outlast/hold/ops/7/2999-01-01T00:00:00.000Z/").unwrap();
    let link = |hold: u64, until: &str, signature: &str| HoldLink {
        callback: "ops".into(),
        hold,
        until: until.into(),
        signature: signature.into(),
    };
    let until = "2999-01-01T00:00:00.000Z";
    assert!(receiver.knows(&link(7, until, rest)));
    assert!(!receiver.knows(&link(8, until, rest)) && !receiver.knows(&link(7, "2998", rest)));
    assert!(!receiver.knows(&link(7, until, "")) && !receiver.knows(&link(7, until, &"0".repeat(64))));
    // One that has ended.
    let past = receiver.with_link("ops", &body.replace("2999", "1999"));
    let told: Value = serde_json::from_str(&past).unwrap();
    let signature = told["data"]["link"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    assert!(!receiver.knows(&link(7, "1999-01-01T00:00:00.000Z", &signature)));
    // What is no hold has no link.
    assert_eq!(receiver.with_link("ops", BODY), BODY);
}

/// The paused clock jumps over the whole wait.
#[tokio::test(start_paused = true)]
async fn a_silent_receiver_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut receiver = receiver(&format!("http://{address}/"));
    receiver.allowed = vec![Network::parse("127.0.0.1").unwrap()];
    assert_eq!(receiver.call("cb_1_1", "{}").await, failed("no answer within 20s".into()));
}
