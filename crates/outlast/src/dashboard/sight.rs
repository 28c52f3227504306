//! What a visitor of the dashboard may see and do.

use serde_json::{Value, json};

/// What the token of somebody is for, as a file says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Sees and cancels what is its own.
    #[default]
    Own,
    /// Decides its own holds, too.
    Decide,
    /// Sees, cancels, decides and restarts everything.
    All,
}

impl Reach {
    /// With their names in a file.
    pub const WORDS: [(&str, Reach); 3] =
        [("own", Reach::Own), ("decide", Reach::Decide), ("all", Reach::All)];
}

/// What those see who see everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Everything {
    /// What came over HTTP to the servers of this process.
    Served,
    /// All that this user runs.
    OfThisUser,
}

/// One visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// The name of its token; without, whoever is let in is everybody.
    pub principal: Option<Box<str>>,
    /// What it may do.
    pub reach: Reach,
}

impl Sight {
    /// Whether something of this principal is shown to it. Calls name the token; what is stored says `token:NAME`.
    pub fn sees(&self, principal: &Value) -> bool {
        let own = || {
            let shown = principal.as_str().unwrap_or_default();
            self.principal
                .as_deref()
                .is_some_and(|name| shown.strip_prefix("token:").unwrap_or(shown) == name)
        };
        self.reach == Reach::All || own()
    }

    /// Whether what belongs to nobody in particular is shown to it: servers, and what was measured of tools.
    pub fn sees_all(&self) -> bool {
        self.reach == Reach::All
    }

    /// Whether its word on a hold counts.
    pub fn decides(&self) -> bool {
        self.reach >= Reach::Decide
    }

    /// For the page.
    pub fn shown(&self) -> Value {
        json!({
            "sees": if self.sees_all() { "all" } else { "own" },
            "principal": self.principal,
            "decides": self.decides(),
            "restarts": self.sees_all(),
        })
    }

    /// Who said something, for the audit log.
    pub fn name(&self) -> &str {
        self.principal.as_deref().unwrap_or("somebody without a token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(name: Option<&str>, reach: Reach) -> Sight {
        Sight { principal: name.map(Box::from), reach }
    }

    #[test]
    fn a_principal_sees_its_own_and_nothing_else() {
        let ana = sight(Some("ana"), Reach::Decide);
        for own in ["ana", "token:ana"] {
            assert!(ana.sees(&json!(own)), "{own}");
        }
        for other in
            [json!("bob"), json!("token:bob"), json!("stdio"), json!(""), json!("token:"), Value::Null]
        {
            assert!(!ana.sees(&other), "{other}");
        }
        assert!(ana.decides() && !ana.sees_all());
        assert!(!sight(Some("ana"), Reach::Own).decides());
    }

    #[test]
    fn whoever_sees_everything_sees_what_is_nobodys() {
        let all = sight(None, Reach::All);
        assert!(all.sees(&Value::Null) && all.sees(&json!("token:bob")) && all.decides());
    }
}
