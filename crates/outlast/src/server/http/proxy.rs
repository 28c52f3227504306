//! The way through a proxy that the environment names.

use super::tcp::Host;
use super::words;
use http::Uri;
use http::header::HeaderValue;
use hyper_util::client::proxy::matcher::Matcher;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes of a proxy's answer. A longer one is refused.
const ANSWER: usize = 8 << 10;

/// A proxy.
pub struct Proxy {
    pub host: Host,
    pub authorization: Option<HeaderValue>,
}

/// The proxies that the environment names, as `variable` reads it, for one URL. A variable that counts for it
/// and cannot be understood is an error: to go directly instead could be just what it was set to prevent.
/// The error never shows the value, which may hold a password.
pub fn of_environment(url: &Uri, variable: impl Fn(&str) -> Option<String>) -> Result<Matcher, String> {
    // Under a web server that runs us for each request a client could set HTTP_PROXY by a header.
    if variable("REQUEST_METHOD").is_some() {
        return Ok(Matcher::builder().build());
    }
    // Capitals first; one that is set and empty is none.
    let set = |name: &'static str, small: &'static str| {
        let found = [name, small].into_iter().find_map(|name| Some((name, variable(name)?)));
        found.filter(|(_, value)| !value.is_empty())
    };
    let own = match url.scheme_str() {
        Some("https") => set("HTTPS_PROXY", "https_proxy"),
        _ => set("HTTP_PROXY", "http_proxy"),
    };
    let Some((name, value)) = own.or_else(|| set("ALL_PROXY", "all_proxy")) else {
        return Ok(Matcher::builder().build());
    };
    let exempt = set("NO_PROXY", "no_proxy").map(|(_, value)| value).unwrap_or_default();
    let matcher = |proxy: &str| Matcher::builder().all(proxy.to_owned()).no(exempt.clone()).build();
    let needed = matcher("http://proxy.invalid").intercept(url).is_some()
        && Host::of(url).is_some_and(|host| !host.is_loopback());
    if needed && !is_proxy(&value) {
        return Err(format!(
            "{name} is set, but not to the URL of a proxy such as http://proxy.example:3128; \
             correct it, or exempt the host with NO_PROXY"
        ));
    }
    Ok(matcher(&value))
}

/// Whether a value can be understood; without a scheme it means `http`.
fn is_proxy(value: &str) -> bool {
    let Ok(url) = value.parse::<Uri>() else { return false };
    Host::of(&url).is_some()
        && Matcher::builder()
            .all(value.to_owned())
            .build()
            .intercept(&Uri::from_static("http://server.invalid"))
            .is_some()
}

/// The proxy for a URL; none for this machine itself. The error is for people.
pub fn of(url: &Uri, host: &Host, proxies: &Matcher) -> Result<Option<Proxy>, String> {
    let Some(found) = proxies.intercept(url).filter(|_| !host.is_loopback()) else { return Ok(None) };
    let scheme = found.uri().scheme_str().unwrap_or_default();
    let proxy =
        Host::of(found.uri()).ok_or("the proxy of the environment has no host, or no port that can be")?;
    if scheme != "http" {
        return Err(format!(
            "the proxy {proxy} of the environment speaks {scheme}; only http:// proxies are supported \
             (NO_PROXY exempts a host)"
        ));
    }
    Ok(Some(Proxy { host: proxy, authorization: found.basic_auth().cloned() }))
}

impl Proxy {
    /// Has the proxy connect us to a host. The error is for people.
    pub async fn tunnel(&self, stream: &mut TcpStream, to: &Host) -> Result<(), String> {
        let mut request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n").into_bytes();
        if let Some(authorization) = &self.authorization {
            request.extend_from_slice(b"Proxy-Authorization: ");
            request.extend_from_slice(authorization.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        let failed = |error: std::io::Error| format!("the proxy {}: {}", self.host, words::of_io(&error));
        stream.write_all(&request).await.map_err(failed)?;
        let mut answer = Vec::with_capacity(512);
        while !answer.ends_with(b"\r\n\r\n") {
            // Byte for byte, once per connection: what follows is not ours to read.
            match stream.read_u8().await {
                Ok(byte) if answer.len() < ANSWER => answer.push(byte),
                Ok(_) => return Err(format!("the proxy {} answers too much", self.host)),
                Err(error) => return Err(failed(error)),
            }
        }
        match status(&answer) {
            Some(200..=299) => Ok(()),
            Some(407) => Err(format!("the proxy {} wants other credentials (407)", self.host)),
            Some(status) => Err(format!("the proxy {} refused to connect to {to} ({status})", self.host)),
            None => Err(format!("the proxy {} does not speak HTTP", self.host)),
        }
    }
}

fn status(answer: &[u8]) -> Option<u16> {
    let rest = answer.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    std::str::from_utf8(rest).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &'static str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let url = Uri::from_static(url);
        let host = Host::of(&url).unwrap();
        let proxy = of(&url, &host, &of_environment(&url, variable)?)?;
        Ok(proxy.map(|proxy| proxy.host.to_string()))
    }

    #[test]
    fn the_variable_of_the_scheme_counts_and_then_the_one_for_all() {
        let all = [("HTTPS_PROXY", "http://a:1"), ("http_proxy", "b:2"), ("ALL_PROXY", "http://c:3")];
        assert_eq!(read("https://x.example", &all), Ok(Some("a:1".into())));
        assert_eq!(read("http://x.example", &all), Ok(Some("b:2".into())));
        assert_eq!(read("http://x.example", &all[2..]), Ok(Some("c:3".into())));
        assert_eq!(read("https://x.example", &[("HTTPS_PROXY", ""), all[2]]), Ok(Some("c:3".into())));
        assert_eq!(read("https://x.example", &[all[0], ("NO_PROXY", "x.example")]), Ok(None));
        assert_eq!(read("https://x.example", &[all[0], ("REQUEST_METHOD", "GET")]), Ok(None));
        assert_eq!(read("https://x.example", &[]), Ok(None));
    }

    /// To go directly in silence would be what a person wanted to prevent.
    #[test]
    fn a_proxy_that_cannot_be_understood_is_an_error_that_names_its_variable() {
        let odd = [
            "http://me:s3cret@proxy:99999",
            "proxy:99999",
            "http://proxy:0",
            "http:/proxy",
            "http://",
            "ftp://proxy:1",
            "pro xy",
            " http://proxy",
            "/proxy",
            "http://proxy:port",
        ];
        for value in odd {
            for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
                let told = read("https://x.example", &[(name, value)]).expect_err(value);
                assert!(told.starts_with(&format!("{name} is set")) && !told.contains("s3cret"), "{told}");
            }
            // It does not count here.
            assert_eq!(read("http://x.example", &[("HTTPS_PROXY", value)]), Ok(None));
            assert_eq!(read("https://x.example", &[("HTTPS_PROXY", value), ("NO_PROXY", "*")]), Ok(None));
            assert_eq!(read("https://127.0.0.1", &[("HTTPS_PROXY", value)]), Ok(None));
        }
    }
}
