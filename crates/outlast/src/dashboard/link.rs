//! A page that decides one held call, for whoever a callback has told of it.
//!
//! The link is the right to decide: it is signed with the secret of that callback, names one hold, and ends with it. To
//! look decides nothing, because programs look at links, too; a decision is sent by the page's own buttons, and the
//! first one counts.

use super::Dashboard;
use super::act::{Denied, broken, not_there};
use crate::observe::text::escape_up_to;
use http::StatusCode;
use outlast_engine::hold::{Decision, Hold, Scope, Verdict};
use outlast_engine::limits;
use outlast_engine::store::{Done, Write};

/// What the page may load, and where it may send something: nothing, and to itself.
pub const POLICY: &str = "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// What a link says.
#[derive(Debug, PartialEq, Eq)]
pub struct HoldLink {
    /// Whose secret has signed it.
    pub callback: String,
    /// Which hold it decides.
    pub hold: u64,
    /// When it ends.
    pub until: String,
    /// In hex.
    pub signature: String,
}

impl Dashboard {
    /// The page of a link; with a decision, what came of that.
    pub async fn linked(&self, link: &HoldLink, said: Option<&[u8]>) -> Result<String, Denied> {
        let gone = || not_there(&format!("call {}", link.hold));
        let known = self.driver.callers().knows(link);
        if !known {
            return Err(gone());
        }
        let holds = self.holds().await.map_err(broken)?;
        let hold = holds.into_iter().find(|hold| hold.number == link.hold).ok_or_else(gone)?;
        let Some(said) = said else { return Ok(shown(&hold)) };
        let verdict = verdict(link, said)?;
        let wanted = verdict.clone();
        let written =
            self.driver.write_down(vec![Write::Decide { hold: link.hold, verdict: verdict.into() }]).await;
        let done = written.map_err(|why| broken(why.to_string()))?.done;
        self.look_at_once();
        match done.into_iter().next() {
            Some(Done::Decided(Some(decision))) => Ok(decided(&hold, &decision, decision.verdict == wanted)),
            _ => Err(gone()),
        }
    }
}

fn verdict(link: &HoldLink, said: &[u8]) -> Result<Verdict, Denied> {
    let yes = match said {
        b"decision=approve" => true,
        b"decision=decline" => false,
        _ => return Err(Denied(StatusCode::BAD_REQUEST, "that is no decision; reload the page".into())),
    };
    let by = format!("who has the link of callback {}", link.callback).into();
    Ok(Verdict { yes, scope: Scope::Once, reason: "".into(), place: "link".into(), by })
}

/// A call that waits, and two buttons; or what was said of it.
fn shown(hold: &Hold) -> String {
    if let Some(decision) = &hold.decision {
        return decided(hold, decision, false);
    }
    let about = &hold.about;
    let client = if about.client.is_empty() { "a client" } else { &*about.client };
    page(&format!(
        "<h1>May <code>{}</code> of <code>{}</code> be run?</h1>\n<p>Asked for {}, since {}.</p>\n<pre>{}</pre>\n\
         <form method=\"post\"><button name=\"decision\" value=\"approve\">Approve</button>\n\
         <button name=\"decision\" value=\"decline\">Decline</button></form>",
        plain(&about.tool),
        plain(&about.name),
        plain(client),
        hold.asked.timestamp(),
        plain(&about.arguments)
    ))
}

fn decided(hold: &Hold, decision: &Decision, ours: bool) -> String {
    let word = if decision.verdict.yes { "approved" } else { "declined" };
    let before = match ours {
        true => String::new(),
        false => format!(" before, by {} ({})", plain(&decision.verdict.by), plain(&decision.verdict.place)),
    };
    let tool = plain(&hold.about.tool);
    page(&format!("<h1><code>{tool}</code> was {word}{before}</h1>\n<p>You can close this page.</p>"))
}

fn page(body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"robots\" content=\"noindex\"><title>outlast: a call waits for a yes</title></head>\n\
         <body><main>\n{body}\n</main></body></html>\n"
    )
}

/// A text of a server or a client, as text: nothing in it is markup, or steers anything.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in escape_up_to(text, limits::HELD_ARGUMENTS).chars() {
        match c {
            '&' => plain.push_str("&amp;"),
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            '"' => plain.push_str("&quot;"),
            '\'' => plain.push_str("&#39;"),
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_markup() {
        assert_eq!(
            plain("<b onx='1'>&\"\u{202e}\u{1b}"),
            "&lt;b onx=&#39;1&#39;&gt;&amp;&quot;\\u{202e}\\u{1b}"
        );
    }

    #[test]
    fn only_the_buttons_of_the_page_decide() {
        let link = HoldLink { callback: "ops".into(), hold: 7, until: "2027".into(), signature: "00".into() };
        assert!(verdict(&link, b"decision=approve").unwrap().yes);
        assert!(!verdict(&link, b"decision=decline").unwrap().yes);
        assert!(verdict(&link, b"").is_err() && verdict(&link, b"decision=approve&x").is_err());
    }
}
