//! What a path below `/outlast/` means.

use super::link::HoldLink;
use http::Method;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Route {
    /// The page.
    Page,
    /// The page, without the `/` at the end that its own addresses need.
    Bare,
    /// The state as it is now.
    State,
    /// The state, and every change.
    Feed,
    /// The story of a call.
    Story(String),
    /// Something is to be done.
    Act(Act),
    /// A page that decides one held call, and what its buttons send.
    Linked(HoldLink),
    /// The path is there, the method is not.
    Method(&'static str),
    /// Nothing.
    Unknown,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Act {
    /// A call is to end.
    CancelCall(String),
    /// A person says yes or no to the hold with this number.
    Decide(u64),
    /// A task is to end.
    CancelTask(String),
    /// A server is to be started again.
    Restart(String),
}

/// Understands a path; `None` if it is none of ours.
pub fn route(method: &Method, path: &str) -> Option<Route> {
    let rest = path.strip_prefix("/outlast")?;
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let route = match rest {
        "" => Route::Bare,
        "/" => Route::Page,
        "/api/state" => Route::State,
        "/api/feed" => Route::Feed,
        _ => return rest.strip_prefix('/').map(|rest| named(method, rest)),
    };
    Some(if reads { route } else { Route::Method("GET") })
}

/// Paths with a name in them.
fn named(method: &Method, rest: &str) -> Route {
    let parts: Option<Vec<String>> = rest.split('/').map(decoded).collect();
    let parts = parts.unwrap_or_default();
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    if let ["hold", callback, number, until, signature] = words[..] {
        let (callback, until, signature) = (callback.into(), until.into(), signature.into());
        let link = number.parse().map(|hold| HoldLink { callback, hold, until, signature });
        return match (link, method) {
            (Ok(link), &Method::GET | &Method::HEAD | &Method::POST) => Route::Linked(link),
            (Ok(_), _) => Route::Method("GET, POST"),
            (Err(_), _) => Route::Unknown,
        };
    }
    let (route, wanted) = match words[..] {
        ["api", "calls", id] => (Route::Story(id.into()), "GET"),
        ["api", "calls", id, "cancel"] => (Route::Act(Act::CancelCall(id.into())), "POST"),
        ["api", "tasks", id, "cancel"] => (Route::Act(Act::CancelTask(id.into())), "POST"),
        ["api", "servers", name, "restart"] => (Route::Act(Act::Restart(name.into())), "POST"),
        ["api", "holds", number] => match number.parse() {
            Ok(number) => (Route::Act(Act::Decide(number)), "POST"),
            Err(_) => return Route::Unknown,
        },
        _ => return Route::Unknown,
    };
    if method.as_str() == wanted { route } else { Route::Method(wanted) }
}

/// A part of a path without its `%41`; `None` if that is no text.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok().filter(|text| !text.starts_with('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str) -> Option<Route> {
        route(&Method::GET, path)
    }

    fn post(path: &str) -> Option<Route> {
        route(&Method::POST, path)
    }

    #[test]
    fn every_path_means_one_thing() {
        assert_eq!(get("/outlast"), Some(Route::Bare));
        assert_eq!(get("/outlast/"), Some(Route::Page));
        assert_eq!(get("/outlast/api/state"), Some(Route::State));
        assert_eq!(route(&Method::HEAD, "/outlast/"), Some(Route::Page));
        assert_eq!(get("/outlast/api/calls/a%2fb.7"), Some(Route::Story("a/b.7".into())));
        assert_eq!(post("/outlast/api/holds/12"), Some(Route::Act(Act::Decide(12))));
        assert_eq!(post("/outlast/api/tasks/ab/cancel"), Some(Route::Act(Act::CancelTask("ab".into()))));
        assert_eq!(post("/outlast/api/servers/%C3%A9/restart"), Some(Route::Act(Act::Restart("é".into()))));
    }

    #[test]
    fn nothing_is_done_by_looking() {
        assert_eq!(get("/outlast/api/calls/a/cancel"), Some(Route::Method("POST")));
        assert_eq!(get("/outlast/api/holds/1"), Some(Route::Method("POST")));
        assert_eq!(post("/outlast/api/state"), Some(Route::Method("GET")));
        assert_eq!(post("/outlast/"), Some(Route::Method("GET")));
    }

    #[test]
    fn a_link_is_looked_at_and_sent_back() {
        let link =
            || HoldLink { callback: "ops".into(), hold: 7, until: "2027".into(), signature: "ab".into() };
        assert_eq!(get("/outlast/hold/ops/7/2027/ab"), Some(Route::Linked(link())));
        assert_eq!(post("/outlast/hold/ops/7/2027/ab"), Some(Route::Linked(link())));
        assert_eq!(get("/outlast/hold/ops/x/2027/ab"), Some(Route::Unknown));
        assert_eq!(route(&Method::DELETE, "/outlast/hold/ops/7/2027/ab"), Some(Route::Method("GET, POST")));
    }

    #[test]
    fn odd_paths_mean_nothing() {
        for path in ["/outlasting", "/mcp", "/", ""] {
            assert_eq!(get(path), None, "{path}");
        }
        for path in [
            "/outlast/x",
            "/outlast/api/holds/x",
            "/outlast/api/calls/%",
            "/outlast/api/calls/%ff",
            "/outlast//",
        ] {
            assert_eq!(get(path), Some(Route::Unknown), "{path}");
        }
    }
}
