//! Patterns for names: `*` stands for any text, `?` for one character, `{a,b}` for one of these.

use super::BadValue;
use serde::{Deserialize, Serialize};

/// The longest pattern, in bytes.
const LONGEST: usize = 4096;
/// Into how many patterns without braces one may unfold. What unfolds into more is refused.
const ALTERNATIVES: usize = 64;

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Glob {
    text: Box<str>,
    /// What it unfolds into; empty if it has no braces, as most have none.
    unfolded: Box<[Box<str>]>,
}

/// How near a pattern comes to a name that it stands for: exactly, or with so many literal characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Closeness {
    exact: bool,
    literal: usize,
}

impl Glob {
    /// Checks a pattern.
    pub fn new(text: &str) -> Result<Glob, BadValue> {
        if text.is_empty() {
            return bad("the glob before `=` is missing; write 'run_*=timeout:5m'");
        }
        if text.len() > LONGEST {
            return bad(format!("a glob is longer than {LONGEST} bytes"));
        }
        if let Some(odd) = text.chars().find(|c| "[]!\\".contains(*c) || c.is_control()) {
            return bad(format!(
                "glob `{text}`: `{}` has no meaning here; only *, ? and {{a,b}} do",
                odd.escape_debug()
            ));
        }
        let unfolded = if text.contains(['{', '}']) { unfold(text)? } else { Vec::new() };
        Ok(Glob { text: text.into(), unfolded: unfolded.into() })
    }

    /// Whether it stands for this text.
    pub fn matches(&self, text: &str) -> bool {
        self.patterns().any(|pattern| matches(pattern, text))
    }

    /// How near it comes to this text; `None` if it does not stand for it.
    pub fn closeness(&self, text: &str) -> Option<Closeness> {
        self.patterns().filter(|pattern| matches(pattern, text)).map(closeness).max()
    }

    /// How many characters of it are literal; the more, the nearer.
    pub fn literal(&self) -> usize {
        self.patterns().map(|pattern| closeness(pattern).literal).max().unwrap_or_default()
    }

    /// The names that it stands for, if it has neither `*` nor `?`.
    pub fn names(&self) -> Option<Vec<&str>> {
        let names: Vec<&str> = self.patterns().collect();
        names.iter().all(|name| closeness(name).exact).then_some(names)
    }

    /// What it unfolds into.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &str> {
        let whole = self.unfolded.is_empty().then_some(&*self.text);
        whole.into_iter().chain(self.unfolded.iter().map(|pattern| &**pattern))
    }
}

impl TryFrom<String> for Glob {
    type Error = BadValue;

    fn try_from(text: String) -> Result<Glob, BadValue> {
        Glob::new(&text)
    }
}

impl From<Glob> for String {
    fn from(glob: Glob) -> String {
        glob.text.into()
    }
}

impl std::fmt::Display for Glob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

fn bad<T>(text: impl Into<String>) -> Result<T, BadValue> {
    Err(BadValue(text.into()))
}

fn closeness(pattern: &str) -> Closeness {
    let literal = pattern.chars().filter(|c| !matches!(c, '*' | '?')).count();
    Closeness { exact: !pattern.contains(['*', '?']), literal }
}

/// Every pattern without braces that one with braces stands for.
fn unfold(text: &str) -> Result<Vec<Box<str>>, BadValue> {
    let mut found = vec![String::new()];
    let mut rest = text;
    while let Some(open) = rest.find(['{', '}']) {
        let (before, braces) = rest.split_at(open);
        let (inside, after) = braces
            .strip_prefix('{')
            .and_then(|inside| inside.split_once('}'))
            .filter(|(inside, _)| !inside.contains('{'))
            .ok_or_else(|| {
                BadValue(format!("glob `{text}`: braces do not pair; write {{a,b}}, not nested"))
            })?;
        let words: Vec<&str> = inside.split(',').collect();
        if found.len() * words.len() > ALTERNATIVES {
            return bad(format!("glob `{text}` stands for more than {ALTERNATIVES} patterns; write several"));
        }
        found = found
            .iter()
            .flat_map(|old| words.iter().map(move |word| format!("{old}{before}{word}")))
            .collect();
        rest = after;
    }
    Ok(found.into_iter().map(|pattern| (pattern + rest).into()).collect())
}

/// Linear in practice: only the last `*` is gone back to.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(b'?') => {
                p += 1;
                t += 1;
                // One character, not one byte of it.
                while text.get(t).is_some_and(|byte| byte & 0xc0 == 0x80) {
                    t += 1;
                }
            }
            Some(byte) if *byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> Glob {
        Glob::new(text).unwrap()
    }

    #[test]
    fn globs_match_any_text_and_single_characters() {
        let matches = |pattern, text| glob(pattern).matches(text);
        assert!(matches("run_*", "run_build") && matches("run_*", "run_") && !matches("run_*", "run"));
        assert!(matches("*", "") && matches("*a*b", "xxaxab") && !matches("*a*b", "xxaxa"));
        assert!(matches("a?c", "abc") && matches("a?c", "aüc") && !matches("a?c", "ac"));
        assert!(matches("x", "x") && !matches("x", "xy"));
        assert!(Glob::new("").is_err() && Glob::new("a[b]").is_err());
        assert_eq!(glob("run_*").literal(), 4);
    }

    #[test]
    fn braces_stand_for_one_of_their_words() {
        let tiers = glob("{list_files,get_*}");
        assert!(tiers.matches("list_files") && tiers.matches("get_status") && !tiers.matches("list_file"));
        assert!(glob("a{b,}c{d,e}").matches("acd") && glob("a{b,}c{d,e}").matches("abce"));
        assert_eq!(glob("{a,b}_x").names(), Some(vec!["a_x", "b_x"]));
        assert_eq!(tiers.names(), None);
    }

    #[test]
    fn an_exact_word_in_braces_is_an_exact_name() {
        let near = |pattern, text| glob(pattern).closeness(text);
        assert_eq!(near("{run_build,x}", "run_build"), near("run_build", "run_build"));
        assert!(near("{run_build,x}", "run_build") > near("run_buil*", "run_build"));
        assert!(near("{r*,run_buil?}", "run_build") > near("run*", "run_build"));
        assert!(near("x", "x") > near("xx*", "xx_long_name"));
    }

    #[test]
    fn braces_are_bounded_and_must_pair() {
        for wrong in ["{a", "a}", "{a,{b,c}}", "}{", "{a,b}{"] {
            assert!(Glob::new(wrong).unwrap_err().0.contains("do not pair"), "{wrong}");
        }
        assert!(Glob::new(&"{a,b}".repeat(6)).is_ok());
        assert!(Glob::new(&"{a,b}".repeat(7)).unwrap_err().0.contains("more than 64"));
        assert!(Glob::new(&"{a,b}".repeat(700)).is_err());
        assert!(Glob::new(&"a".repeat(5000)).is_err());
    }
}
