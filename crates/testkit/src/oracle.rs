//! What `serde_json` says about a message, to hold our scanner against.
//!
//! Used by the property test and by the fuzzer: [`compare`] panics when the two disagree.

use bytes::Bytes;
use outlast_engine::wire::{Fault, Field, Message, Scanned, scan, scan_tolerant};
use serde_json::from_slice;
use serde_json::value::RawValue;
use std::fmt;

/// Members of an object in order, duplicates included.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// The fields of each place that we look into, by key.
const PLACES: [(&str, &[(&str, Field)]); 5] = [
    (
        "",
        &[
            ("jsonrpc", Field::Jsonrpc),
            ("id", Field::Id),
            ("method", Field::Method),
            ("params", Field::Params),
            ("result", Field::Result),
            ("error", Field::Error),
        ],
    ),
    (
        "params",
        &[
            ("_meta", Field::ParamsMeta),
            ("name", Field::ParamsName),
            ("requestId", Field::ParamsRequestId),
            ("progressToken", Field::ParamsProgressToken),
            ("progress", Field::ParamsProgress),
            ("total", Field::ParamsTotal),
            ("task", Field::ParamsTask),
            ("requestState", Field::ParamsRequestState),
            ("inputResponses", Field::ParamsInputResponses),
            ("cursor", Field::ParamsCursor),
            ("uri", Field::ParamsUri),
            ("taskId", Field::ParamsTaskId),
            ("idempotencyKey", Field::ParamsIdempotencyKey),
        ],
    ),
    (
        "params._meta",
        &[
            ("progressToken", Field::MetaProgressToken),
            ("io.modelcontextprotocol/subscriptionId", Field::MetaSubscriptionId),
            ("io.modelcontextprotocol/protocolVersion", Field::MetaProtocolVersion),
            ("io.modelcontextprotocol/clientCapabilities", Field::MetaClientCapabilities),
            ("io.modelcontextprotocol/clientInfo", Field::MetaClientInfo),
            ("io.modelcontextprotocol/logLevel", Field::MetaLogLevel),
            ("dev.outlast/timeoutMs", Field::MetaTimeoutMs),
            ("dev.outlast/keepAlive", Field::MetaKeepAlive),
        ],
    ),
    ("result", &[("resultType", Field::ResultType), ("_meta", Field::ResultMeta)]),
    ("result._meta", &[("io.modelcontextprotocol/subscriptionId", Field::ResultMetaSubscriptionId)]),
];

/// Panics if our scanner and `serde_json` disagree about these bytes.
pub fn compare(bytes: &[u8]) {
    let ours = scan(Bytes::copy_from_slice(bytes));
    let valid = std::str::from_utf8(bytes).is_ok() && from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
    match &ours {
        Err(refused) if matches!(refused.fault, Fault::NotJson(_)) => assert!(!valid, "refused valid JSON"),
        // These two are found before the rest of the line is looked at.
        Err(refused) if matches!(refused.fault, Fault::Duplicate | Fault::LongBatch) => {}
        Err(_) | Ok(Scanned::Message(_)) | Ok(Scanned::Batch(_)) => assert!(valid, "accepted invalid JSON"),
    }
    match ours {
        Ok(Scanned::Message(message)) => {
            compare_fields(&message);
            let tolerant =
                scan_tolerant(&message.bytes).expect("the tolerant scanner accepts what the strict one does");
            assert_eq!(tolerant.envelope, message.envelope);
        }
        Ok(Scanned::Batch(members)) => {
            let theirs: Vec<&RawValue> = from_slice(bytes).expect("an array");
            assert_eq!(theirs.len(), members.len());
            for message in members.iter().flatten() {
                compare_fields(message);
            }
        }
        Err(refused) if refused.fault == Fault::Duplicate => {
            let object = from_slice::<Members<'_>>(bytes).map(|_| ());
            assert!(
                object.is_err() || fields(bytes).is_none_or(|fields| has_duplicate(&fields)),
                "saw a duplicate"
            );
        }
        Err(_) => {
            // Whatever it is, the tolerant scanner must come back too.
            let _ = scan_tolerant(&Bytes::copy_from_slice(bytes));
        }
    }
}

/// Every field of ours with its raw text; `None` where `serde_json` cannot say, because a key holds
/// half a surrogate pair.
fn fields(bytes: &[u8]) -> Option<Vec<(Field, String)>> {
    let mut found = Vec::new();
    for (path, known) in PLACES {
        let mut objects = vec![from_slice::<&RawValue>(bytes).ok()?.get()];
        for step in path.split('.').filter(|step| !step.is_empty()) {
            let mut inner = Vec::new();
            for object in objects.iter().filter(|object| object.starts_with('{')) {
                let members: Members<'_> = serde_json::from_str(object).ok()?;
                inner.extend(
                    members.0.into_iter().filter(|(key, _)| key == step).map(|(_, value)| value.get()),
                );
            }
            objects = inner;
        }
        for object in objects.iter().filter(|object| object.starts_with('{')) {
            let members: Members<'_> = serde_json::from_str(object).ok()?;
            for (key, value) in members.0 {
                if let Some((_, field)) = known.iter().find(|(name, _)| *name == key) {
                    found.push((*field, value.get().to_owned()));
                }
            }
        }
    }
    Some(found)
}

/// `"error":null` beside a result says that there is none, and the other way round.
fn forget_what_is_absent(found: &mut Vec<(Field, String)>) {
    let has = |field: Field| found.iter().any(|(known, _)| *known == field);
    if !has(Field::Result) || !has(Field::Error) {
        return;
    }
    let is_null = |field: Field| found.iter().any(|(known, raw)| *known == field && raw == "null");
    let absent = if is_null(Field::Error) { Field::Error } else { Field::Result };
    if is_null(absent) {
        found.retain(|(known, _)| *known != absent);
    }
}

fn has_duplicate(fields: &[(Field, String)]) -> bool {
    fields
        .iter()
        .enumerate()
        .any(|(index, (field, _))| fields[..index].iter().any(|(earlier, _)| earlier == field))
}

fn compare_fields(message: &Message) {
    let Some(mut expected) = fields(&message.bytes) else { return };
    assert!(!has_duplicate(&expected), "took a duplicate");
    forget_what_is_absent(&mut expected);
    let all = PLACES.iter().flat_map(|(_, known)| known.iter().map(|(_, field)| *field));
    for field in all {
        let theirs = expected.iter().find(|(found, _)| *found == field).map(|(_, raw)| raw.as_bytes());
        assert_eq!(message.raw(field), theirs, "{field:?}");
    }
}
