//! What one client sees: the listings of its servers under public names.

use super::listing::{Entry, Listing};
use super::names::{self, Wish};
use super::page::{Page, Writer};
use super::search::Index;
use super::{Kind, bounds, template};
use crate::config::{Expose, Exposure};
use crate::error::json_text;
use crate::hash::fingerprint;
use crate::id::DefinitionId;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// What one server adds.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) definition: DefinitionId,
    pub(crate) server: Arc<str>,
    pub(crate) exposure: Arc<Exposure>,
    /// How this client sees its tools.
    pub(crate) expose: Expose,
    pub(crate) listing: Arc<Listing>,
}

/// One entry as it is shown.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) public: Box<str>,
    pub(crate) definition: DefinitionId,
    pub(crate) entry: Entry,
    /// It is found by those who look for it, and not listed.
    pub(crate) on_demand: bool,
    pub(crate) server: Arc<str>,
    /// Its place among those of its server.
    nth: usize,
}

/// A merged list.
#[derive(Debug)]
pub(crate) struct View {
    kind: Kind,
    shown: Vec<Shown>,
    /// The places of all entries, in the order of their public names.
    by_name: Vec<usize>,
    /// Of what is not listed, made when somebody searches for the first time; and the place of each.
    hidden: OnceLock<(Index, Vec<usize>)>,
}

impl View {
    /// In the order of the servers' names, and of each in its own order.
    /// Nothing is called as one of `reserved`, which are names of ours.
    pub(crate) fn new(kind: Kind, separator: &str, reserved: &[&str], parts: &[Part]) -> View {
        let mut parts: Vec<&Part> = parts.iter().collect();
        parts.sort_by(|one, other| one.server.cmp(&other.server));
        let visible =
            |part: &&Part, entry: &&Entry| !matches!(kind, Kind::Tools) || part.exposure.shows(&entry.name);
        let all: Vec<(&Part, &Entry)> = parts
            .iter()
            .flat_map(|part| part.listing.entries.iter().map(move |entry| (*part, entry)))
            .filter(|(part, entry)| visible(part, entry))
            .collect();
        let publics = match kind {
            Kind::Tools | Kind::Prompts => names::choose(separator, reserved, &wishes(&all)),
            Kind::Resources | Kind::Templates => uris(&all),
        };
        // Names that are still the same were made to be: the first one has it.
        let again = said_before(&publics);
        let mut shown: Vec<Shown> = Vec::with_capacity(all.len());
        for ((part, entry), (public, _)) in
            all.iter().zip(publics.into_iter().zip(again)).filter(|(_, (_, again))| !again)
        {
            let before = shown.last().filter(|before| before.server == part.server);
            let nth = before.map_or(0, |before| before.nth + 1);
            shown.push(show(kind, part, entry, (public, nth)));
        }
        let mut by_name: Vec<usize> = (0..shown.len()).collect();
        by_name.sort_unstable_by_key(|at| &shown[*at].public);
        View { kind, shown, by_name, hidden: OnceLock::new() }
    }

    /// What is not listed and fits a query, the best first; all of it if nothing is asked for.
    pub(crate) fn find(&self, query: &str) -> Vec<&Shown> {
        let (index, places) = self.hidden.get_or_init(|| self.index());
        let found = if query.trim().is_empty() { (0..places.len()).collect() } else { index.find(query) };
        found.into_iter().filter_map(|nth| self.shown.get(*places.get(nth)?)).collect()
    }

    fn index(&self) -> (Index, Vec<usize>) {
        let hidden = || self.shown.iter().enumerate().filter(|(_, shown)| shown.on_demand);
        let index = Index::new(hidden().map(|(_, shown)| (&*shown.public, &shown.entry.bytes[..])));
        (index, hidden().map(|(at, _)| at).collect())
    }

    /// What a public name means.
    pub(crate) fn resolve(&self, public: &str) -> Option<&Shown> {
        let found = self.by_name.binary_search_by(|at| (*self.shown[*at].public).cmp(public)).ok()?;
        self.shown.get(*self.by_name.get(found)?)
    }

    /// The template that stands for a uri: the one that says most of it, then the first.
    pub(crate) fn template_for(&self, uri: &str) -> Option<&Shown> {
        let fitting = |shown: &Shown| template::matches(&shown.public, uri);
        let found = self.shown.iter().rev().filter_map(|shown| Some((fitting(shown)?, shown)));
        found.max_by_key(|(literal, _)| *literal).map(|(_, shown)| shown)
    }

    /// Where a page begins. `None` for a cursor that is not ours.
    ///
    /// A cursor names the entry that the last page ended with. If that has gone meanwhile, the next page begins with
    /// what would have come after it, so that nothing that stayed is lost.
    pub(crate) fn begins(&self, cursor: Option<&str>) -> Option<usize> {
        cursor.map_or(Some(0), |cursor| self.after(cursor))
    }

    /// A page from there on. What is not for its reader is passed over.
    pub(crate) fn page(&self, from: usize, is_for: impl Fn(&Shown) -> bool) -> Page {
        let mut page = Writer::new(self.kind.member());
        let (mut count, mut last) = (0, None);
        for shown in self.shown[from..].iter().filter(|shown| !shown.on_demand && is_for(shown)) {
            if count == bounds::LIST_PAGE || (count > 0 && page.len() > bounds::LIST_PAGE_BYTES) {
                return page.goes_on(&json_text(&last.map(Shown::cursor).unwrap_or_default()));
            }
            page.add(|page| shown.write(page));
            (count, last) = (count + 1, Some(shown));
        }
        page.ends()
    }

    /// The place after the entry that a cursor names.
    fn after(&self, cursor: &str) -> Option<usize> {
        let (server, rest) = cursor.strip_prefix("outlast:")?.split_once(':')?;
        let (nth, name) = rest.split_once(':')?;
        let nth: usize = nth.parse().ok()?;
        let name = u64::from_str_radix(name, 16).ok()?;
        let of_server = || self.shown.iter().enumerate().filter(|(_, shown)| *shown.server == *server);
        let same = of_server().find(|(_, shown)| shown.number() == name).map(|(at, _)| at + 1);
        let beside = || of_server().nth(nth).map(|(at, _)| at);
        let behind = || self.shown.iter().position(|shown| *shown.server > *server);
        Some(same.or_else(beside).or_else(behind).unwrap_or(self.shown.len()))
    }
}

impl Shown {
    /// The entry under its public name; every other byte as it came.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let Entry { name, bytes, at } = &self.entry;
        if **name == *self.public {
            return out.extend_from_slice(bytes);
        }
        out.extend_from_slice(&bytes[..at.start]);
        out.extend_from_slice(&json_text(&self.public));
        out.extend_from_slice(&bytes[at.end..]);
    }

    fn cursor(&self) -> String {
        format!("outlast:{}:{}:{:x}", self.server, self.nth, self.number())
    }

    /// Its own name as a number: a cursor must not become as long as a server likes.
    fn number(&self) -> u64 {
        fingerprint(self.entry.name.as_bytes())
    }
}

/// Which of these texts were there before.
fn said_before(texts: &[String]) -> Vec<bool> {
    let mut again = vec![false; texts.len()];
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|at| &texts[*at]);
    for pair in order.windows(2).filter(|pair| texts[pair[0]] == texts[pair[1]]) {
        again[pair[1]] = true;
    }
    again
}

fn wishes<'a>(all: &[(&'a Part, &'a Entry)]) -> Vec<Wish<'a>> {
    let wish = |(part, entry): &(&'a Part, &'a Entry)| Wish {
        server: &part.server,
        name: &entry.name,
        alias: part.exposure.alias(&entry.name),
        plain: part.expose == Expose::PlainNames,
    };
    all.iter().map(wish).collect()
}

fn show(kind: Kind, part: &Part, entry: &Entry, (public, nth): (String, usize)) -> Shown {
    Shown {
        public: public.into(),
        definition: part.definition,
        entry: entry.clone(),
        on_demand: kind == Kind::Tools && part.expose == Expose::OnDemand,
        server: part.server.clone(),
        nth,
    }
}

/// Uris stay as they are, unless two servers have the same one: then each says whose it is, in front.
fn uris(all: &[(&Part, &Entry)]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    all.iter().for_each(|(_, entry)| *counts.entry(&entry.name).or_default() += 1);
    let public = |(part, entry): &(&Part, &Entry)| match counts[&*entry.name] {
        1 => entry.name.to_string(),
        _ => format!("outlast+{}:{}", scheme(&part.server), entry.name),
    };
    all.iter().map(public).collect()
}

/// A server's name as a part of a scheme, which knows no `_`.
fn scheme(server: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '+' };
    server.chars().map(allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::JsonId;
    use bytes::Bytes;
    use std::collections::BTreeSet;

    fn part(number: u16, server: &str, expose: Expose, result: &str) -> Part {
        let mut listing = Listing::default();
        for kind in Kind::ALL {
            if result.contains(&format!("\"{}\"", kind.member())) {
                listing.add(kind, &Bytes::copy_from_slice(result.as_bytes()));
            }
        }
        let exposure = Arc::default();
        let definition = DefinitionId(number);
        Part { definition, server: server.into(), exposure, expose, listing: Arc::new(listing) }
    }

    /// The result of a page, with these entries at the end of the list.
    fn page(view: &View, cursor: Option<&str>, more: &str) -> String {
        let page = view.page(view.begins(cursor).unwrap(), |_| true);
        let answer = String::from_utf8(page.answer(&JsonId::Int(77), "", more).to_vec()).unwrap();
        let result = answer.strip_prefix(r#"{"jsonrpc":"2.0","id":77,"result":"#).unwrap();
        result.strip_suffix('}').unwrap().to_owned()
    }

    #[test]
    fn lists_are_joined_in_a_fixed_order_and_only_names_change() {
        let ci =
            part(0, "ci", Expose::Names, r#"{"tools":[{"x":1.0, "name": "run" ,"y":[ ]},{"name":"b"}]}"#);
        let db = part(1, "db", Expose::Names, r#"{"tools":[{"name":"run"}]}"#);
        let view = View::new(Kind::Tools, "__", &[], &[db.clone(), ci.clone()]);
        let expected =
            r#"{"tools":[{"x":1.0, "name": "ci__run" ,"y":[ ]},{"name":"ci__b"},{"name":"db__run"}]}"#;
        assert_eq!(page(&view, None, ""), expected);
        assert_eq!(page(&View::new(Kind::Tools, "__", &[], &[ci, db]), None, ""), expected);
        let found = view.resolve("db__run").unwrap();
        assert_eq!((found.definition, &*found.entry.name), (DefinitionId(1), "run"));
        assert!(view.resolve("run").is_none() && view.resolve("").is_none());
    }

    #[test]
    fn what_a_person_hides_is_not_there() {
        let mut ci =
            part(0, "ci", Expose::Names, r#"{"tools":[{"name":"run_a"},{"name":"run_b"},{"name":"list"}]}"#);
        let glob = |text: &str| crate::settings::Glob::new(text).unwrap();
        ci.exposure = Arc::new(Exposure {
            allow: vec![glob("run_*")],
            deny: vec![glob("run_b")],
            aliases: vec![("run_a".into(), "go".into())],
            ..Exposure::default()
        });
        let view = View::new(Kind::Tools, "__", &[], &[ci]);
        assert_eq!(page(&view, None, ""), r#"{"tools":[{"name":"go"}]}"#);
        assert!(view.resolve("ci__run_b").is_none() && view.resolve("go").is_some());
    }

    #[test]
    fn page_by_page_every_entry_comes_once() {
        let tools: Vec<String> =
            (0..2 * bounds::LIST_PAGE + 3).map(|n| format!(r#"{{"name":"t{n}"}}"#)).collect();
        let a = part(0, "a", Expose::Names, &format!(r#"{{"tools":[{}]}}"#, tools.join(",")));
        let b = part(1, "b", Expose::Names, &format!(r#"{{"tools":[{}]}}"#, tools.join(",")));
        let view = View::new(Kind::Tools, "__", &[], &[a, b]);
        let (mut cursor, mut seen, mut pages) = (None::<String>, Vec::new(), 0);
        loop {
            let page: serde_json::Value = serde_json::from_str(&page(&view, cursor.as_deref(), "")).unwrap();
            let names = page["tools"].as_array().unwrap().iter();
            seen.extend(names.map(|tool| tool["name"].as_str().unwrap().to_owned()));
            pages += 1;
            match page["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.into()),
                None => break,
            }
        }
        assert_eq!((pages, seen.len()), (5, 2 * tools.len()));
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len());
        assert_eq!(view.begins(Some("nonsense")), None);
    }

    #[test]
    fn a_page_is_not_much_longer_than_its_bound() {
        let long = "d".repeat(bounds::LIST_PAGE_BYTES / 2);
        let tools: Vec<String> =
            (0..4).map(|n| format!(r#"{{"name":"t{n}","description":"{long}"}}"#)).collect();
        let a = part(0, "a", Expose::Names, &format!(r#"{{"tools":[{}]}}"#, tools.join(",")));
        let page = page(&View::new(Kind::Tools, "__", &[], &[a]), None, "");
        assert!(page.contains(r#""nextCursor":"outlast:a:1:"#), "{}", &page[page.len() - 60..]);
    }

    #[test]
    fn a_page_begins_where_the_last_one_ended_whatever_went_meanwhile() {
        let of = |names: &[&str]| {
            let tools: Vec<String> = names.iter().map(|name| format!(r#"{{"name":"{name}"}}"#)).collect();
            View::new(
                Kind::Tools,
                "__",
                &[],
                &[part(0, "a", Expose::Names, &format!(r#"{{"tools":[{}]}}"#, tools.join(",")))],
            )
        };
        let cursor = of(&["x", "y", "z"]).shown[1].cursor();
        assert_eq!(page(&of(&["x", "y", "z"]), Some(&cursor), ""), r#"{"tools":[{"name":"a__z"}]}"#);
        assert_eq!(page(&of(&["x", "z"]), Some(&cursor), ""), r#"{"tools":[{"name":"a__z"}]}"#);
        assert_eq!(page(&of(&[]), Some(&cursor), ""), r#"{"tools":[]}"#);
    }

    #[test]
    fn what_is_on_demand_is_found_and_not_listed() {
        let a = part(0, "a", Expose::OnDemand, r#"{"tools":[{"name":"build"},{"name":"test"}]}"#);
        let b = part(1, "b", Expose::Names, r#"{"tools":[{"name":"build"}]}"#);
        let view = View::new(Kind::Tools, "__", &[], &[a, b]);
        assert_eq!(page(&view, None, "{}"), r#"{"tools":[{"name":"b__build"},{}]}"#);
        let found = |query| view.find(query).iter().map(|shown| &*shown.public).collect::<Vec<_>>();
        assert_eq!(found("build"), ["a__build"]);
        assert_eq!(found(" "), ["a__build", "a__test"]);
        assert!(view.resolve("a__test").is_some());
    }

    #[test]
    fn two_servers_with_one_uri_are_told_apart() {
        let a = part(0, "a_x", Expose::Names, r#"{"resources":[{"uri":"file:///1"},{"uri":"file:///2"}]}"#);
        let b = part(1, "b", Expose::Names, r#"{"resources":[{"uri":"file:///1"}]}"#);
        let view = View::new(Kind::Resources, "__", &[], &[a, b]);
        let expected = r#"{"resources":[{"uri":"outlast+a+x:file:///1"},{"uri":"file:///2"},{"uri":"outlast+b:file:///1"}]}"#;
        assert_eq!(page(&view, None, ""), expected);
        assert_eq!(view.resolve("outlast+b:file:///1").unwrap().definition, DefinitionId(1));
        assert!(view.resolve("file:///1").is_none());
    }

    #[test]
    fn a_uri_belongs_to_the_template_that_says_most_of_it() {
        let a = part(0, "a", Expose::Names, r#"{"resourceTemplates":[{"uriTemplate":"file:///{+p}"}]}"#);
        let b = part(1, "b", Expose::Names, r#"{"resourceTemplates":[{"uriTemplate":"file:///logs/{p}"}]}"#);
        let view = View::new(Kind::Templates, "__", &[], &[a, b]);
        let found = |uri| view.template_for(uri).map(|shown| shown.definition);
        assert_eq!(found("file:///logs/1"), Some(DefinitionId(1)));
        assert_eq!(found("file:///etc/x"), Some(DefinitionId(0)));
        assert_eq!(found("db://x"), None);
    }
}
