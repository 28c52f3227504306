//! Public names: `SERVER__NAME`, within what model providers take, and the same ones every time.

use crate::hash::fingerprint;
use std::collections::BTreeMap;

/// Characters of a public name at most: what model providers take.
pub(super) const LONGEST: usize = 64;

/// Characters of the suffix that tells two names apart; and of the one that does so if that is not enough.
const SUFFIX: usize = 7;
const LONG_SUFFIX: usize = 17;

/// What an entry is called before it is known whether another has the same name.
pub(super) struct Wish<'a> {
    pub(super) server: &'a str,
    pub(super) name: &'a str,
    /// What a person wrote for it.
    pub(super) alias: Option<&'a str>,
    /// It keeps its own name as long as no other wants it.
    pub(super) plain: bool,
}

impl Wish<'_> {
    fn first_choice(&self, separator: &str) -> String {
        match self.alias {
            Some(alias) => clean(alias),
            None if self.plain => clean(self.name),
            None => self.full(separator),
        }
    }

    fn full(&self, separator: &str) -> String {
        clean(&format!("{}{separator}{}", self.server, self.name))
    }

    /// A name that no other has: made of the whole of both names, so that it does not depend on who else is there.
    fn unmistakable(&self, separator: &str, suffix: usize) -> String {
        let whole = fingerprint(format!("{}\0{}", self.server, self.name).as_bytes());
        let digits = format!("{whole:016x}");
        let mut name = self.full(separator);
        name.truncate(LONGEST - suffix);
        name + "_" + &digits[digits.len() - (suffix - 1)..]
    }

    /// Whether its first choice says all of it: nothing was replaced or cut.
    fn is_faithful(&self, separator: &str) -> bool {
        let whole = match self.alias {
            Some(alias) => alias.to_owned(),
            None if self.plain => self.name.to_owned(),
            None => format!("{}{separator}{}", self.server, self.name),
        };
        whole.len() <= LONGEST && whole == clean(&whole)
    }
}

/// The public name of each wish. Of several that would be called the same, or as one of `reserved`, all are called
/// otherwise, so that none depends on the order in which they came.
pub(super) fn choose(separator: &str, reserved: &[&str], wishes: &[Wish<'_>]) -> Vec<String> {
    let mut names: Vec<String> = wishes.iter().map(|wish| wish.first_choice(separator)).collect();
    // Plain names that two servers have become full ones; then what is still not alone, or not itself, gets a suffix.
    let lost = not_alone(reserved, &names);
    for ((name, wish), lost) in names.iter_mut().zip(wishes).zip(lost) {
        if wish.alias.is_none() && wish.plain && (lost || !wish.is_faithful(separator)) {
            *name = wish.full(separator);
        }
    }
    let lost = not_alone(reserved, &names);
    for ((name, wish), lost) in names.iter_mut().zip(wishes).zip(lost) {
        let cut = wish.alias.is_none()
            && !Wish { plain: false, ..*wish }.is_faithful(separator)
            && !is_own(name, wish);
        if lost || cut {
            *name = wish.unmistakable(separator, SUFFIX);
        }
    }
    // A tool may be called what another gets with its suffix.
    let lost = not_alone(reserved, &names);
    for ((name, wish), _) in names.iter_mut().zip(wishes).zip(lost).filter(|(_, lost)| *lost) {
        *name = wish.unmistakable(separator, LONG_SUFFIX);
    }
    names
}

/// Which of these names are not the only ones of their kind.
fn not_alone(reserved: &[&str], names: &[String]) -> Vec<bool> {
    let mut counts: BTreeMap<&str, usize> = reserved.iter().map(|name| (*name, 1)).collect();
    names.iter().for_each(|name| *counts.entry(name).or_default() += 1);
    names.iter().map(|name| counts.get(name.as_str()).is_some_and(|count| *count > 1)).collect()
}

/// Whether an entry has kept its own name.
fn is_own(name: &str, wish: &Wish<'_>) -> bool {
    wish.plain && name == wish.name
}

/// What is left of a name in letters, digits, `_` and `-`, and not too long.
fn clean(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    name.chars().take(LONGEST).map(allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(wishes: &[(&str, &str, bool)]) -> Vec<String> {
        let wishes: Vec<Wish<'_>> = wishes
            .iter()
            .map(|(server, name, plain)| Wish { server, name, alias: None, plain: *plain })
            .collect();
        choose("__", &["find_tools"], &wishes)
    }

    #[test]
    fn a_name_says_whose_it_is() {
        assert_eq!(named(&[("ci", "run", false), ("db", "run", false)]), ["ci__run", "db__run"]);
        assert_eq!(named(&[("ci", "run", true), ("db", "query", true)]), ["run", "query"]);
        assert_eq!(named(&[("ci", "run", true), ("db", "run", true)]), ["ci__run", "db__run"]);
    }

    #[test]
    fn what_does_not_fit_or_is_not_alone_gets_a_suffix() {
        let long = "x".repeat(80);
        for odd in ["a b", "a<b>", "a\u{7}b", "ä", "a.b", long.as_str()] {
            let names = named(&[("s", odd, false), ("s", "plain", false)]);
            assert_eq!(names[1], "s__plain");
            assert!(
                names[0].len() <= LONGEST && names[0].contains('_') && names[0] != clean(odd),
                "{names:?}"
            );
            assert!(names[0].chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
        }
        // Cut to the same beginning, or cleaned to the same text.
        let two = named(&[("s", "a b", false), ("s", "a.b", false), ("s", "a_b", false)]);
        assert_eq!(two.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{two:?}");
        // A server whose name holds the separator.
        let odd = named(&[("a", "b__c", false), ("a__b", "c", false)]);
        assert_ne!(odd[0], odd[1]);
    }

    #[test]
    fn a_name_of_ours_is_nobody_elses() {
        let wish = |alias| Wish { server: "ci", name: "find_tools", alias, plain: true };
        assert_eq!(choose("__", &["find_tools"], &[wish(None)]), ["ci__find_tools"]);
        let alias = choose("__", &["find_tools"], &[wish(Some("find_tools"))]);
        assert!(alias[0].starts_with("ci__find_tools_"), "{alias:?}");
    }

    #[test]
    fn a_tool_that_is_called_like_anothers_suffix_does_not_hide_it() {
        let first = named(&[("s", "a b", false)]);
        let copy = first[0].strip_prefix("s__").unwrap();
        let both = named(&[("s", "a b", false), ("s", copy, false)]);
        assert_ne!(both[0], both[1]);
    }

    #[test]
    fn names_do_not_depend_on_the_order() {
        let one = named(&[("a", "b__c", false), ("a__b", "c", false), ("x", "y", true)]);
        let other = named(&[("x", "y", true), ("a__b", "c", false), ("a", "b__c", false)]);
        assert_eq!(one, [other[2].clone(), other[1].clone(), other[0].clone()]);
    }
}
