//! Headers that mirror a message of the modern era, so that what stands between can route it without
//! reading its body: `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name`, and `Mcp-Param-*` for the
//! arguments that a tool's schema marks with `x-mcp-header`.

use crate::base64;
use crate::limits;
use crate::method::Method;
use crate::wire::{Edit, Field, Message, Patch};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

const BEFORE: &str = "=?base64?";
const AFTER: &str = "?=";

/// Arguments of one tool that are mirrored. More: the rest is not.
const PER_TOOL: usize = 64;

/// Writes a value as a header can hold it.
pub fn encode(value: &str) -> Cow<'_, str> {
    let blank = |c: char| c == ' ' || c == '\t';
    // Without an early end the check runs on many bytes at once.
    let visible = value.bytes().fold(true, |seen, byte| seen & matches!(byte, b'\t' | b' '..=b'~'));
    let marked = value.starts_with(BEFORE) && value.ends_with(AFTER);
    if visible && !marked && !value.starts_with(blank) && !value.ends_with(blank) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{BEFORE}{}{AFTER}", base64::encode(value.as_bytes())))
}

/// Reads it back; `None` if it is marked as encoded and is not.
pub fn decode(header: &str) -> Option<Cow<'_, str>> {
    let inner = header.strip_prefix(BEFORE).and_then(|rest| rest.strip_suffix(AFTER));
    match inner {
        None => Some(Cow::Borrowed(header)),
        Some(inner) => String::from_utf8(base64::decode(inner)?).ok().map(Cow::Owned),
    }
}

/// The field that `Mcp-Name` mirrors.
fn name_field(method: &Method) -> Option<Field> {
    match method {
        Method::ToolsCall | Method::PromptsGet => Some(Field::ParamsName),
        Method::ResourcesRead => Some(Field::ParamsUri),
        Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => Some(Field::ParamsTaskId),
        _ => None,
    }
}

/// The headers of a message that goes to an HTTP server of the modern era.
pub(crate) fn headers(message: &Message, mirrors: &Mirrors) -> Vec<(Cow<'static, str>, Box<str>)> {
    let mut headers: Vec<(Cow<'static, str>, Box<str>)> = Vec::with_capacity(4);
    if let Some(version) = message.text(Field::MetaProtocolVersion) {
        headers.push(("mcp-protocol-version".into(), version.as_ref().into()));
    }
    let method = Method::of(message);
    headers.push(("mcp-method".into(), encode(method.as_str()).as_ref().into()));
    if let Some(name) = name_field(&method).and_then(|field| message.text(field)) {
        headers.push(("mcp-name".into(), encode(&name).as_ref().into()));
        if method == Method::ToolsCall {
            mirrors.add_headers(&name, message, &mut headers);
        }
    }
    headers
}

/// What a client's headers claim about its message, against the message itself.
pub(crate) fn contradiction(head: &crate::http::Head, message: &Message) -> Option<String> {
    let method = Method::of(message);
    let says = |field: Field, written: &Option<Box<str>>| {
        written.as_ref().is_some_and(|written| !written.starts_with(BEFORE) && message.says(field, written))
    };
    if !says(Field::MetaProtocolVersion, &head.version) {
        let version = message.text(Field::MetaProtocolVersion);
        if let Some(why) = differs("MCP-Protocol-Version", head.version.as_deref(), version.as_deref()) {
            return Some(why);
        }
    }
    if let Some(why) = differs("Mcp-Method", head.method.as_deref(), Some(method.as_str())) {
        return Some(why);
    }
    let field = name_field(&method).filter(|field| !says(*field, &head.name))?;
    differs("Mcp-Name", head.name.as_deref(), Some(&message.text(field)?))
}

fn differs(header: &str, written: Option<&str>, body: Option<&str>) -> Option<String> {
    let Some(written) = written else { return Some(format!("{header} header is missing")) };
    match decode(written) {
        None => Some(format!("{header} header is not valid base64")),
        Some(value) if Some(value.as_ref()) == body => None,
        Some(_) => Some(format!("{header} header does not match the body")),
    }
}

/// Which arguments of which tools are mirrored.
#[derive(Debug, Default)]
pub(crate) struct Mirrors(BTreeMap<Box<str>, Vec<Mirror>>);

#[derive(Debug)]
struct Mirror {
    header: Box<str>,
    /// From the arguments down.
    path: Vec<Box<str>>,
}

impl Mirrors {
    /// Learns from a page of a tool list.
    pub(crate) fn learn(&mut self, result: &[u8]) {
        #[derive(Deserialize)]
        struct List<'a> {
            #[serde(borrow)]
            tools: Vec<Tool<'a>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Tool<'a> {
            name: Box<str>,
            #[serde(borrow)]
            input_schema: Option<&'a RawValue>,
        }
        let Ok(list) = serde_json::from_slice::<List<'_>>(result) else { return };
        for tool in list.tools {
            let marked = tool.input_schema.map(RawValue::get).filter(|raw| raw.contains("x-mcp-header"));
            let schema = marked.and_then(|raw| serde_json::from_str::<Value>(raw).ok());
            let mut found = Vec::new();
            if let Some(schema) = schema {
                find(&schema, &mut Vec::new(), &mut found);
            }
            if found.is_empty() {
                self.0.remove(&tool.name);
            } else if self.0.contains_key(&tool.name)
                || !reached!(MIRRORED_TOOLS, self.0.len() >= limits::MIRRORED_TOOLS)
            {
                self.0.insert(tool.name, found);
            }
        }
    }

    fn add_headers(&self, tool: &str, message: &Message, headers: &mut Vec<(Cow<'static, str>, Box<str>)>) {
        let Some(mirrors) = self.0.get(tool) else { return };
        for (mirror, value) in values(mirrors, message) {
            headers.push((format!("mcp-param-{}", mirror.header).into(), encode(&value).as_ref().into()));
        }
    }

    /// What a client's `Mcp-Param-*` headers claim, against the arguments.
    pub(crate) fn contradiction(&self, params: &[(Box<str>, Box<str>)], message: &Message) -> Option<String> {
        let tool = message.text(Field::ParamsName)?;
        let mirrors = self.0.get(tool.as_ref())?;
        let expected = values(mirrors, message);
        for mirror in mirrors {
            let name = format!("Mcp-Param-{}", mirror.header);
            let written = params.iter().find(|(header, _)| header.eq_ignore_ascii_case(&mirror.header));
            let value =
                expected.iter().find(|(known, _)| std::ptr::eq(*known, mirror)).map(|(_, value)| value);
            let why = match (written, value) {
                (None, None) => None,
                (Some(_), None) => Some(format!("{name} header has no argument in the body")),
                (written, Some(value)) => {
                    let written = written.map(|(_, text)| &**text);
                    let same = written.and_then(decode).is_some_and(|written| same_number(&written, value));
                    if same { None } else { differs(&name, written, Some(value)) }
                }
            };
            if why.is_some() {
                return why;
            }
        }
        None
    }
}

/// Takes tools out of a list whose marks are not valid: a client over HTTP must not show them. `added` is
/// put in at the end.
pub(crate) fn without_invalid_tools(answer: &Message, added: &str) -> Option<Edit> {
    #[derive(Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        tools: &'a RawValue,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Tool<'a> {
        #[serde(borrow)]
        input_schema: Option<&'a RawValue>,
    }
    let result = answer.raw(Field::Result)?;
    memchr::memmem::find(result, b"x-mcp-header")?;
    let list: List<'_> = serde_json::from_slice(result).ok()?;
    let tools: Vec<&RawValue> = serde_json::from_str(list.tools.get()).ok()?;
    let is_valid = |tool: &&&RawValue| {
        let schema = serde_json::from_str::<Tool<'_>>(tool.get()).ok().and_then(|tool| tool.input_schema);
        let schema = schema.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        schema.is_none_or(|schema| marks_are_valid(&schema, true, &mut BTreeSet::new()))
    };
    let mut kept: Vec<&str> = tools.iter().filter(is_valid).map(|tool| tool.get()).collect();
    if kept.len() == tools.len() {
        return None;
    }
    kept.extend(Some(added).filter(|added| !added.is_empty()));
    let start = list.tools.get().as_ptr() as usize - answer.bytes.as_ptr() as usize;
    let range = start..start + list.tools.get().len();
    Some(Edit::range(range, Patch::of(&[b"[", kept.join(",").as_bytes(), b"]"])))
}

/// Whether every mark in a schema is a name that no other has, on a plain value that is reached by
/// properties alone.
fn marks_are_valid(schema: &Value, reached: bool, names: &mut BTreeSet<String>) -> bool {
    match schema {
        Value::Array(parts) => parts.iter().all(|part| marks_are_valid(part, false, names)),
        Value::Object(members) => {
            if let Some(mark) = members.get("x-mcp-header") {
                let name = mark.as_str().filter(|name| is_token(name)).map(str::to_ascii_lowercase);
                let kind = members.get("type").and_then(Value::as_str);
                let plain = matches!(kind, Some("string" | "integer" | "boolean"));
                if !reached || !plain || !name.is_some_and(|name| names.insert(name)) {
                    return false;
                }
            }
            members.iter().all(|(key, value)| match (key.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    properties.values().all(|property| marks_are_valid(property, reached, names))
                }
                ("default" | "const" | "enum" | "examples", _) => true,
                _ => marks_are_valid(value, false, names),
            })
        }
        _ => true,
    }
}

/// `42` and `42.0` are the same integer.
fn same_number(a: &str, b: &str) -> bool {
    matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}

/// The mirrored values that are there.
fn values<'a>(mirrors: &'a [Mirror], message: &Message) -> Vec<(&'a Mirror, String)> {
    #[derive(Deserialize)]
    struct Params {
        arguments: Option<Value>,
    }
    let params = message.raw(Field::Params).and_then(|raw| serde_json::from_slice::<Params>(raw).ok());
    let Some(arguments) = params.and_then(|params| params.arguments) else { return Vec::new() };
    let value = |mirror: &'a Mirror| {
        let value = mirror.path.iter().try_fold(&arguments, |value, key| value.get(&**key))?;
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((mirror, text))
    };
    mirrors.iter().filter_map(value).collect()
}

/// Marked properties, reached through `properties` alone.
fn find(schema: &Value, path: &mut Vec<Box<str>>, found: &mut Vec<Mirror>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (key, property) in properties {
        path.push(key.as_str().into());
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str)
            && is_token(header)
            // Numbers are written in more ways than one.
            && property.get("type").and_then(Value::as_str) != Some("number")
            && found.len() < PER_TOOL
        {
            found.push(Mirror { header: header.to_ascii_lowercase().into(), path: path.clone() });
        }
        find(property, path, found);
        path.pop();
    }
}

/// A name that a header may have.
fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.len() <= 128 && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Scanned, scan};

    #[test]
    fn values_survive_a_header() {
        for value in [
            "search",
            "a b",
            "",
            " lead",
            "trail\t",
            "grün",
            "line\nbreak",
            "=?base64?eA==?=",
            "ab",
            "abc",
            "abcd",
        ] {
            let header = encode(value);
            assert!(header.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\t'), "{header}");
            assert_eq!(decode(&header).as_deref(), Some(value));
        }
        assert_eq!(encode("search"), "search");
        assert_eq!(encode("grün"), "=?base64?Z3LDvG4=?=");
        for bad in ["=?base64?*?=", "=?base64?abc?=", "=?base64?/w==?="] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }

    fn message(text: &str) -> Message {
        match scan(bytes::Bytes::copy_from_slice(text.as_bytes())) {
            Ok(Scanned::Message(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn marked_arguments_are_mirrored() {
        let mut mirrors = Mirrors::default();
        mirrors.learn(
            br#"{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{
                "region":{"type":"string","x-mcp-header":"Region"},
                "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},
                "bad":{"type":"string","x-mcp-header":"not a token"},
                "list":{"type":"array","items":{"properties":{"x":{"x-mcp-header":"X"}}}}}}}]}"#,
        );
        let call = message(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"region":"eu","deep":{"n":42},"bad":"b"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        );
        let pairs = headers(&call, &mirrors);
        let shown: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(
            shown,
            [
                "mcp-protocol-version: 2026-07-28",
                "mcp-method: tools/call",
                "mcp-name: t",
                "mcp-param-n: 42",
                "mcp-param-region: eu"
            ]
        );
        let params = |pairs: &[(&str, &str)]| -> Vec<(Box<str>, Box<str>)> {
            pairs.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect()
        };
        assert_eq!(mirrors.contradiction(&params(&[("region", "eu"), ("N", "42.0")]), &call), None);
        assert!(mirrors.contradiction(&params(&[("region", "us"), ("n", "42")]), &call).is_some());
        assert!(mirrors.contradiction(&params(&[("n", "42")]), &call).is_some(), "one is missing");
    }

    #[test]
    fn so_many_arguments_of_a_tool_are_mirrored_and_no_more() {
        let marked =
            |number: usize| format!(r#""a{number:03}":{{"type":"string","x-mcp-header":"A{number}"}}"#);
        let all: Vec<String> = (0..=PER_TOOL).map(marked).collect();
        let schema = serde_json::from_str(&format!(r#"{{"properties":{{{}}}}}"#, all.join(","))).unwrap();
        let mut found = Vec::new();
        find(&schema, &mut Vec::new(), &mut found);
        assert_eq!(found.len(), PER_TOOL);
    }
}
