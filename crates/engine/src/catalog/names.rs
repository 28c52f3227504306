//! Public names: `SERVER__NAME`, within what model providers take, and the same ones every time.

use crate::hash::fingerprint;

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
        clean_parts([self.server, separator, self.name])
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
        let parts = match self.alias {
            Some(alias) => [alias, "", ""],
            None if self.plain => [self.name, "", ""],
            None => [self.server, separator, self.name],
        };
        let length: usize = parts.iter().map(|part| part.len()).sum();
        length <= LONGEST && parts.iter().all(|part| part.chars().all(is_allowed))
    }
}

/// The public name of each wish. Of several that would be called the same, or as one of `reserved`, all are called
/// otherwise, so that none depends on the order in which they came.
///
/// Mostly the first choices are all different, and then that is found out once.
pub(super) fn choose(separator: &str, reserved: &[&str], wishes: &[Wish<'_>]) -> Vec<String> {
    let mut names: Vec<String> = wishes.iter().map(|wish| wish.first_choice(separator)).collect();
    // Plain names that two servers have become full ones; then what is still not alone, or not itself, gets a suffix.
    let lost = not_alone(reserved, &names);
    let to_full = |(wish, lost): (&Wish<'_>, bool)| {
        let fails = wish.alias.is_none() && wish.plain && (lost || !wish.is_faithful(separator));
        fails.then(|| wish.full(separator))
    };
    let lost = if rename(&mut names, wishes, &lost, to_full) { not_alone(reserved, &names) } else { lost };
    let own: Vec<bool> = names.iter().zip(wishes).map(|(name, wish)| is_own(name, wish)).collect();
    let cut =
        |wish: &Wish<'_>| wish.alias.is_none() && !Wish { plain: false, ..*wish }.is_faithful(separator);
    let bad: Vec<bool> =
        wishes.iter().zip(lost.iter().zip(own)).map(|(w, (lost, own))| *lost || (!own && cut(w))).collect();
    let to_suffixed = |(wish, bad): (&Wish<'_>, bool)| bad.then(|| wish.unmistakable(separator, SUFFIX));
    if rename(&mut names, wishes, &bad, to_suffixed) {
        // A tool may be called what another gets with its suffix.
        let lost = not_alone(reserved, &names);
        let to_longer =
            |(wish, lost): (&Wish<'_>, bool)| lost.then(|| wish.unmistakable(separator, LONG_SUFFIX));
        rename(&mut names, wishes, &lost, to_longer);
    }
    names
}

/// Gives new names to those that get one. Whether any did.
fn rename(
    names: &mut [String],
    wishes: &[Wish<'_>],
    marks: &[bool],
    new: impl Fn((&Wish<'_>, bool)) -> Option<String>,
) -> bool {
    let mut any = false;
    for (name, (wish, mark)) in names.iter_mut().zip(wishes.iter().zip(marks)) {
        if let Some(new) = new((wish, *mark)) {
            (*name, any) = (new, true);
        }
    }
    any
}

/// Which of these names are not the only ones of their kind.
fn not_alone(reserved: &[&str], names: &[String]) -> Vec<bool> {
    let mut lost: Vec<bool> = names.iter().map(|name| reserved.contains(&name.as_str())).collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_unstable_by_key(|at| &names[*at]);
    for pair in order.windows(2).filter(|pair| names[pair[0]] == names[pair[1]]) {
        (lost[pair[0]], lost[pair[1]]) = (true, true);
    }
    lost
}

/// Whether an entry has kept its own name.
fn is_own(name: &str, wish: &Wish<'_>) -> bool {
    wish.plain && name == wish.name
}

/// What is left of a name in letters, digits, `_` and `-`, and not too long.
fn clean(name: &str) -> String {
    clean_parts([name, "", ""])
}

fn clean_parts(parts: [&str; 3]) -> String {
    let mut clean = String::with_capacity(LONGEST);
    let characters = parts.into_iter().flat_map(str::chars).take(LONGEST);
    clean.extend(characters.map(|c| if is_allowed(c) { c } else { '_' }));
    clean
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
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
