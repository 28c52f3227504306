//! URI templates: which uri one stands for (RFC 6570, as far as resources use it).

/// Characters of a uri that is looked for. A longer one matches nothing.
const LONGEST: usize = 8 << 10;

/// How many characters of a template stand for themselves, if it stands for this uri.
pub(super) fn matches(template: &str, uri: &str) -> Option<usize> {
    let parts = parts(template)?;
    let literal = parts.iter().map(|part| if let Part::Text(text) = part { text.len() } else { 0 }).sum();
    (uri.len() <= LONGEST && fits(&parts, uri)).then_some(literal)
}

#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    /// A variable; one that is not reserved holds no `/`.
    Variable {
        reserved: bool,
    },
}

fn parts(template: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((text, after)) = rest.split_once('{') {
        let (variable, after) = after.split_once('}')?;
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        // Two in a row, or several in one, are matched as one.
        let reserved = variable.starts_with(['+', '#', '/', '?', '&', ';', '.']);
        match parts.last_mut() {
            Some(Part::Variable { reserved: before }) => *before |= reserved,
            _ => parts.push(Part::Variable { reserved }),
        }
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Some(parts)
}

/// Greedy from both ends: the texts stand in their order, and each variable takes what is between. Work is bounded
/// by the length of the uri times the number of parts.
fn fits(parts: &[Part<'_>], uri: &str) -> bool {
    let Some((first, rest)) = parts.split_first() else { return uri.is_empty() };
    match (first, rest) {
        (Part::Text(text), _) => uri.strip_prefix(text).is_some_and(|uri| fits(rest, uri)),
        (Part::Variable { reserved }, []) => *reserved || !uri.contains('/'),
        (Part::Variable { reserved }, [Part::Text(text), after @ ..]) => {
            // The last text ends the uri; any other is found at its first place.
            let at = if after.is_empty() { uri.strip_suffix(text).map(str::len) } else { uri.find(text) };
            let Some(at) = at else { return false };
            let taken = *reserved || !uri[..at].contains('/');
            taken && fits(after, &uri[at + text.len()..])
        }
        (Part::Variable { .. }, [Part::Variable { .. }, ..]) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_stands_for_its_uris() {
        assert_eq!(matches("file:///{path}", "file:///a.txt"), Some(8));
        assert_eq!(matches("file:///{path}", "file:///a/b.txt"), None);
        assert_eq!(matches("file:///{+path}", "file:///a/b.txt"), Some(8));
        assert_eq!(matches("db://{table}/rows/{id}", "db://users/rows/7"), Some(11));
        assert_eq!(matches("db://{table}/rows", "db://users/rows/7"), None);
        assert_eq!(matches("a{x}.json", "ab.json.json"), Some(6));
        assert_eq!(matches("plain", "plain"), Some(5));
        assert_eq!(matches("{broken", "x"), None);
        assert_eq!(matches("{x}", &"y".repeat(LONGEST + 1)), None);
    }
}
