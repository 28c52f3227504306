//! `${VAR}`, `${env:VAR}` and `${VAR:-otherwise}` in a text; `$${` is a plain `${`.

/// What a text becomes, or what is wrong with it and how it could be right.
pub fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, (String, String)> {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            result.push_str(before);
            result.push_str("${");
            rest = after;
            continue;
        }
        result.push_str(before);
        let Some((inside, after)) = after.split_once('}') else {
            return Err(("`${` has no `}`".into(), "write ${VAR}, or $${ for a plain ${".into()));
        };
        result.push_str(&value(inside, variable)?);
        rest = after;
    }
    result.push_str(rest);
    Ok(result)
}

fn value(inside: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, (String, String)> {
    let (name, otherwise) = match inside.split_once(":-") {
        Some((name, otherwise)) => (name, Some(otherwise)),
        None => (inside, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(letters) {
        let how = "outlast knows ${VAR}, ${env:VAR} and ${VAR:-otherwise}; write $${ for a plain ${";
        return Err((format!("`${{{inside}}}` is not a variable of the environment"), how.into()));
    }
    variable(name).or_else(|| otherwise.map(str::to_owned)).ok_or_else(|| {
        let how = format!("set it before outlast starts, or write ${{{name}:-otherwise}}");
        (format!("the variable {name} is not set"), how)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_taken_and_missing_ones_are_named() {
        let known = |name: &str| (name == "HOME").then(|| "/home/x".to_owned());
        let expand = |text| expand(text, &known).map_err(|(what, _)| what);
        assert_eq!(expand("${HOME}/a-${env:HOME}"), Ok("/home/x/a-/home/x".into()));
        assert_eq!(expand("a $b $${HOME} ${X:-y}"), Ok("a $b ${HOME} y".into()));
        assert_eq!(expand("${X}"), Err("the variable X is not set".into()));
        assert_eq!(expand("${input:key}"), Err("`${input:key}` is not a variable of the environment".into()));
        assert_eq!(expand("${X"), Err("`${` has no `}`".into()));
    }
}
