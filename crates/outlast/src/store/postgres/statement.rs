//! A statement with its values, and what is read from its rows.

use crate::store::Id;
use bytes::Bytes;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// A statement and what stands for `$1`, `$2`…
#[derive(Debug)]
pub struct Statement<'a> {
    pub text: &'static str,
    values: Vec<Value<'a>>,
}

/// Something that stands in a statement.
#[derive(Debug)]
enum Value<'a> {
    Int(i64),
    MaybeInt(Option<i64>),
    Flag(bool),
    Blob(&'a [u8]),
    Own(Vec<u8>),
    MaybeBlob(Option<&'a [u8]>),
    Ints(Vec<i64>),
    Blobs(Vec<&'a [u8]>),
}

impl<'a> Statement<'a> {
    pub fn new(text: &'static str) -> Statement<'a> {
        Statement { text, values: Vec::new() }
    }

    fn with(mut self, value: Value<'a>) -> Statement<'a> {
        self.values.push(value);
        self
    }

    pub fn int(self, number: u64) -> Statement<'a> {
        self.with(Value::Int(int(number)))
    }

    pub fn signed(self, number: i64) -> Statement<'a> {
        self.with(Value::Int(number))
    }

    pub fn maybe_int(self, number: Option<u64>) -> Statement<'a> {
        self.with(Value::MaybeInt(number.map(int)))
    }

    pub fn flag(self, flag: bool) -> Statement<'a> {
        self.with(Value::Flag(flag))
    }

    pub fn text(self, text: &'a str) -> Statement<'a> {
        self.with(Value::Blob(text.as_bytes()))
    }

    /// How a secret name is looked up.
    pub fn id(self, id: Id) -> Statement<'a> {
        self.with(Value::Own(id.to_vec()))
    }

    pub fn blob(self, bytes: &'a [u8]) -> Statement<'a> {
        self.with(Value::Blob(bytes))
    }

    pub fn maybe_blob(self, bytes: Option<&'a [u8]>) -> Statement<'a> {
        self.with(Value::MaybeBlob(bytes))
    }

    pub fn ints(self, numbers: impl IntoIterator<Item = u64>) -> Statement<'a> {
        self.with(Value::Ints(numbers.into_iter().map(int).collect()))
    }

    pub fn blobs(self, all: impl IntoIterator<Item = &'a [u8]>) -> Statement<'a> {
        self.with(Value::Blobs(all.into_iter().collect()))
    }

    pub fn types(&self) -> Vec<Type> {
        self.values.iter().map(Value::kind).collect()
    }

    pub fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(Value::as_sql).collect()
    }

    pub fn typed(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        self.values.iter().map(|value| (value.as_sql(), value.kind())).collect()
    }
}

impl Value<'_> {
    fn kind(&self) -> Type {
        match self {
            Value::Int(_) | Value::MaybeInt(_) => Type::INT8,
            Value::Flag(_) => Type::BOOL,
            Value::Blob(_) | Value::Own(_) | Value::MaybeBlob(_) => Type::BYTEA,
            Value::Ints(_) => Type::INT8_ARRAY,
            Value::Blobs(_) => Type::BYTEA_ARRAY,
        }
    }

    fn as_sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Value::Int(number) => number,
            Value::MaybeInt(number) => number,
            Value::Flag(flag) => flag,
            Value::Blob(bytes) => bytes,
            Value::Own(bytes) => bytes,
            Value::MaybeBlob(bytes) => bytes,
            Value::Ints(numbers) => numbers,
            Value::Blobs(all) => all,
        }
    }
}

/// PostgreSQL's integers have a sign; nothing of ours needs the last bit.
pub fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub fn count(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column).unsigned_abs()
}

pub fn blob(row: &Row, column: usize) -> Bytes {
    Bytes::copy_from_slice(row.get::<_, &[u8]>(column))
}

/// Only we write these, from texts.
pub fn text(row: &Row, column: usize) -> Box<str> {
    String::from_utf8_lossy(row.get::<_, &[u8]>(column)).into()
}
