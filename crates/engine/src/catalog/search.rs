//! Full-text search over entries: BM25 over names, titles, descriptions and the names of parameters.
//!
//! A word of a name counts more than one of a description. A query finds words that begin with one of its own, too,
//! so that `repo` finds `repository`; those count half.
//!
//! Not here: which entries there are (`view.rs`), how the result is shown (`engine/merged/on_demand.rs`).

use super::listing::Fields;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Entries that can be found. What comes after them is not.
const ENTRIES: usize = 50_000;

/// Bytes of a title, a description and a query that are read.
const READ: usize = 4 << 10;

/// Parameters of one entry that are read.
const PARAMETERS: usize = 64;

/// Words of one entry that are kept, and words of a query that are looked for.
const WORDS: usize = 400;
const QUERIED: usize = 32;

/// Words that begin with a queried one and are looked for in its place.
const LONGER: usize = 20;

/// Characters of a word. What is longer is cut.
const WORD: usize = 40;

/// How much a word counts by where it stands.
const OF_NAME: f32 = 3.0;
const OF_TITLE: f32 = 2.0;
const OF_REST: f32 = 1.0;

/// The usual constants of BM25: how soon repetition stops to count, and how much length does.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// The words of many entries, and where each stands.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// For each word the entries that have it, in rising order, and how much it counts there.
    words: BTreeMap<Box<str>, Vec<(u32, f32)>>,
    /// How long each entry is, by the same measure.
    lengths: Vec<f32>,
    average: f32,
}

impl Index {
    /// Of entries in their order: the public name, and the entry as it came.
    pub(crate) fn new<'a>(entries: impl Iterator<Item = (&'a str, &'a [u8])>) -> Index {
        let mut index = Index::default();
        for (nth, (name, entry)) in (0..).zip(entries.take(ENTRIES)) {
            let mut count = 0;
            index.lengths.push(0.0);
            each_word(name, entry, &mut |word, weight| index.add(nth, word, weight, &mut count));
        }
        index.average = index.lengths.iter().sum::<f32>() / index.lengths.len().max(1) as f32;
        index
    }

    /// The newest entry has a word, perhaps once more; `count` is how many different ones it has.
    fn add(&mut self, nth: u32, word: &str, weight: f32, count: &mut usize) {
        let found = match self.words.get_mut(word) {
            Some(found) => found,
            None if *count == WORDS => return,
            None => self.words.entry(word.into()).or_default(),
        };
        match found.last_mut().filter(|(last, _)| *last == nth) {
            Some((_, known)) => *known += weight,
            None if *count == WORDS => return,
            None => {
                found.push((nth, weight));
                *count += 1;
            }
        }
        if let Some(length) = self.lengths.last_mut() {
            *length += weight;
        }
    }

    /// The entries that a query finds, the best first; equals in their order.
    pub(crate) fn find(&self, query: &str) -> Vec<usize> {
        let mut asked = BTreeMap::new();
        split(start_of(query, READ), &mut |word| {
            if asked.len() < QUERIED {
                asked.entry(word.to_owned()).or_insert(());
            }
        });
        let mut scores = vec![0.0; self.lengths.len()];
        for word in asked.keys() {
            self.score(word, 1.0, &mut scores);
            let longer = self.words.range::<str, _>((Bound::Included(word.as_str()), Bound::Unbounded));
            let longer = longer.map(|(longer, _)| longer).take_while(|longer| longer.starts_with(word));
            for longer in longer.filter(|longer| longer.len() > word.len() && word.len() > 2).take(LONGER) {
                self.score(longer, 0.5, &mut scores);
            }
        }
        let mut found: Vec<usize> = (0..scores.len()).filter(|nth| scores[*nth] > 0.0).collect();
        found.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
        found
    }

    fn score(&self, word: &str, share: f32, scores: &mut [f32]) {
        let Some(found) = self.words.get(word) else { return };
        let (all, having) = (self.lengths.len() as f32, found.len() as f32);
        // Not `f32::ln`: the system's library of mathematics would be loaded at every start for it.
        let rarity = libm::logf(1.0 + (all - having + 0.5) / (having + 0.5));
        for (nth, weight) in found {
            let nth = *nth as usize;
            let length = self.lengths[nth] / self.average.max(1.0);
            let counts = weight * (K1 + 1.0) / (weight + K1 * (1.0 - B + B * length));
            scores[nth] += share * rarity * counts;
        }
    }
}

/// What of an entry is searched, and shown of what was found.
#[derive(Debug, Default)]
pub(crate) struct Readable<'a> {
    pub(crate) title: Option<&'a RawValue>,
    pub(crate) description: Option<&'a RawValue>,
    pub(crate) parameters: Vec<Cow<'a, str>>,
}

impl<'a> Readable<'a> {
    pub(crate) fn of(entry: &'a [u8]) -> Readable<'a> {
        let Ok(fields) = serde_json::from_slice::<Fields<'_>>(entry) else { return Readable::default() };
        let inner = |raw: &'a RawValue, name| serde_json::from_str::<Fields<'_>>(raw.get()).ok()?.find(name);
        let annotated = || inner(fields.find("annotations")?, "title");
        let properties = fields.find("inputSchema").and_then(|schema| inner(schema, "properties"));
        let properties = properties.and_then(|raw| serde_json::from_str::<Fields<'_>>(raw.get()).ok());
        Readable {
            title: fields.find("title").or_else(annotated),
            description: fields.find("description"),
            parameters: properties.into_iter().flat_map(Fields::names).take(PARAMETERS).collect(),
        }
    }
}

/// Each word of one entry, and how much it counts where it stands.
fn each_word(name: &str, entry: &[u8], take: &mut impl FnMut(&str, f32)) {
    let readable = Readable::of(entry);
    split(name, &mut |word| take(word, OF_NAME));
    split(&start_of_string(readable.title), &mut |word| take(word, OF_TITLE));
    for parameter in &readable.parameters {
        split(start_of(parameter, READ), &mut |word| take(word, OF_REST));
    }
    split(&start_of_string(readable.description), &mut |word| take(word, OF_REST));
}

/// The beginning of a JSON string. It is not decoded as a whole, because it may be very long: an escape is a gap
/// between two words.
fn start_of_string(raw: Option<&RawValue>) -> String {
    let raw = raw.map(RawValue::get).unwrap_or_default();
    let inner = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).unwrap_or_default();
    let mut text = String::new();
    let mut rest = start_of(inner, READ);
    while let Some((before, after)) = rest.split_once('\\') {
        text += before;
        text.push(' ');
        let escape = if after.starts_with('u') { 5 } else { 1 };
        rest = after.get(escape..).unwrap_or_default();
    }
    text + rest
}

/// At most so many bytes of a text.
fn start_of(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The words of a text in small letters: `listOpen_issues` has three. A plural is its singular.
fn split(text: &str, take: &mut impl FnMut(&str)) {
    let mut word = String::new();
    let mut small = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && small) {
            end_word(&mut word, take);
        }
        if c.is_ascii_alphanumeric() && word.len() < WORD {
            word.push(c.to_ascii_lowercase());
        } else if c.is_alphanumeric() && word.len() < WORD {
            word.extend(c.to_lowercase());
        }
        small = c.is_lowercase();
    }
    end_word(&mut word, take);
}

fn end_word(word: &mut String, take: &mut impl FnMut(&str)) {
    let singular = match word.strip_suffix('s') {
        Some(singular) if singular.len() > 2 && !singular.ends_with(['s', 'u', 'i']) => singular,
        _ => word,
    };
    if !singular.is_empty() {
        take(singular);
    }
    word.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(entries: &[(&str, &str)]) -> Index {
        Index::new(entries.iter().map(|(name, entry)| (*name, entry.as_bytes())))
    }

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        split(text, &mut |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn names_fall_into_words() {
        assert_eq!(words("gh__listOpen_issues-v2"), ["gh", "list", "open", "issue", "v2"]);
        assert_eq!(words("HTTP status: 404!"), ["http", "status", "404"]);
        assert_eq!(words("class glass bus Grüße"), ["class", "glass", "bus", "grüße"]);
        assert_eq!(words(" \u{7}<b>"), ["b"]);
    }

    #[test]
    fn the_best_comes_first() {
        let index = index(&[
            ("mail__send", r#"{"description":"Sends a message to somebody. Mentions no repository."}"#),
            ("gh__create_repository", r#"{"description":"Makes a new one"}"#),
            ("gh__list_issues", r#"{"inputSchema":{"properties":{"repository":{},"state":{}}}}"#),
            ("ci__run", r#"{"title":"Start a build"}"#),
        ]);
        assert_eq!(index.find("repositories repository"), [1, 2, 0]);
        assert_eq!(index.find("build"), [3]);
        assert_eq!(index.find("repo"), [1, 2, 0], "a word that begins so");
        assert_eq!(index.find("STATE"), [2]);
        assert_eq!(index.find("nothing of this"), [] as [usize; 0]);
        assert_eq!(index.find(""), [] as [usize; 0]);
    }

    #[test]
    fn what_is_odd_or_endless_is_read_as_far_as_it_goes() {
        let endless = format!(r#"{{"description":"needle {} haystack"}}"#, "x ".repeat(1 << 19));
        let odd = r#"{"title":7,"description":["no text"],"inputSchema":{"properties":[]}}"#;
        let escaped = r#"{"description":"one\ntwo\u00e4three \\"}"#;
        let index = index(&[("a", &endless), ("b", odd), ("c", escaped), ("d", "not JSON")]);
        assert_eq!(index.find("needle"), [0]);
        assert_eq!(index.find("haystack"), [] as [usize; 0]);
        assert_eq!(index.find("two"), [2]);
        assert_eq!(index.find("three"), [2]);
        assert_eq!(index.find("d"), [3]);
        assert_eq!(index.find(&"word ".repeat(1 << 20)), [] as [usize; 0]);
    }
}
