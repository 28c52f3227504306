//! The page, and what a browser may do with it.
//!
//! `page.html` is made by `node build.mjs` in `crates/outlast/dashboard`; a test makes it again and compares.

use ring::digest::{SHA256, digest};
use std::sync::OnceLock;

/// One file with its script and its style inside.
pub const PAGE: &str = include_str!("page.html");

/// `Content-Security-Policy` of the page: its own script and style, by their hashes, and requests to where it came
/// from. Everything else is forbidden, also to be shown inside another page.
pub fn policy() -> &'static str {
    static POLICY: OnceLock<String> = OnceLock::new();
    POLICY.get_or_init(|| {
        format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; connect-src 'self'; img-src data:; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
             trusted-types 'none'",
            hash("script"),
            hash("style")
        )
    })
}

/// As the policy writes it, of what stands inside an element.
fn hash(element: &str) -> String {
    let inside = PAGE
        .split_once(&format!("<{element}>"))
        .and_then(|(_, rest)| rest.split_once(&format!("</{element}>")))
        .map_or("", |(inside, _)| inside);
    format!("sha256-{}", base64(digest(&SHA256, inside.as_bytes()).as_ref()))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| {
        let number = (0..3).fold(0_usize, |sum, at| sum << 8 | usize::from(*three.get(at).unwrap_or(&0)));
        let digit = |place: usize| match place <= three.len() {
            true => char::from(DIGITS[number >> (18 - 6 * place) & 63]),
            false => '=',
        };
        (0..4).map(digit).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_what_others_write() {
        let cases = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, written) in cases {
            assert_eq!(base64(plain.as_bytes()), written, "{plain}");
        }
    }

    /// What the policy does not name would not run: the page has one script and one style, both inside.
    #[test]
    fn the_page_asks_nobody_else_for_anything() {
        for (what, most) in [("<script", 1), ("<style", 1), (" src=", 0), ("@import", 0), ("<link", 1)] {
            assert_eq!(PAGE.matches(what).count(), most, "{what}");
        }
        assert!(PAGE.contains("<link rel=\"icon\" href=\"data:"));
        assert!(!policy().contains("unsafe") && hash("script") != hash("style"));
    }
}
