//! How a recording writes what has a better form than its fields: bytes and messages as text, shared values as
//! themselves.

use crate::event::Line;
use crate::wire::{Message, Outgoing, Scanned, scan, scan_message};
use bytes::Bytes;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Something that is written in the form of something else.
pub(crate) trait Form: Sized {
    /// What is written.
    type Written: Serialize + DeserializeOwned;

    /// To be written.
    fn write(&self) -> Self::Written;

    /// Takes what was written back.
    fn read(written: Self::Written) -> Result<Self, &'static str>;
}

pub(crate) fn serialize<T: Form, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.write().serialize(serializer)
}

pub(crate) fn deserialize<'de, T: Form, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::read(T::Written::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Bytes, mostly text; the others with a character for each byte.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Text {
    Utf8(String),
    Latin1 { latin1: String },
}

impl Text {
    fn of(bytes: &[u8]) -> Text {
        match std::str::from_utf8(bytes) {
            Ok(text) => Text::Utf8(text.to_owned()),
            Err(_) => Text::Latin1 { latin1: bytes.iter().copied().map(char::from).collect() },
        }
    }

    fn bytes(self) -> Result<Vec<u8>, &'static str> {
        match self {
            Text::Utf8(text) => Ok(text.into_bytes()),
            Text::Latin1 { latin1 } => {
                let byte = |c| u8::try_from(c).map_err(|_| "`latin1` holds more than bytes");
                latin1.chars().map(byte).collect()
            }
        }
    }
}

impl Form for Bytes {
    type Written = Text;

    fn write(&self) -> Text {
        Text::of(self)
    }

    fn read(text: Text) -> Result<Bytes, &'static str> {
        Ok(text.bytes()?.into())
    }
}

impl Form for Box<[u8]> {
    type Written = Text;

    fn write(&self) -> Text {
        Text::of(self)
    }

    fn read(text: Text) -> Result<Box<[u8]>, &'static str> {
        Ok(text.bytes()?.into())
    }
}

/// Random bytes, in the digits that names are made of.
impl Form for [u8; 32] {
    type Written = String;

    fn write(&self) -> String {
        crate::hex::encode(self)
    }

    fn read(text: String) -> Result<[u8; 32], &'static str> {
        crate::hex::decode(&text).ok_or("these are not 64 hexadecimal digits")
    }
}

/// Its text; where its fields are is found again.
impl Form for Message {
    type Written = Text;

    fn write(&self) -> Text {
        Text::of(&self.bytes)
    }

    fn read(text: Text) -> Result<Message, &'static str> {
        scan_message(text.bytes()?.into()).ok_or("this is not a JSON-RPC message")
    }
}

impl Form for Outgoing {
    type Written = Text;

    fn write(&self) -> Text {
        Text::of(&self.to_vec())
    }

    fn read(text: Text) -> Result<Outgoing, &'static str> {
        Ok(Outgoing::plain(text.bytes()?))
    }
}

/// What was read, and not what was found in it.
impl Form for Line {
    type Written = Text;

    fn write(&self) -> Text {
        match self {
            Ok(Scanned::Message(message)) => message.write(),
            Ok(Scanned::Batch(members)) => {
                let bytes = |member: &Result<Message, _>| match member {
                    Ok(Message { bytes, .. }) => bytes.clone(),
                    Err(crate::wire::Refused { bytes, .. }) => bytes.clone(),
                };
                let members: Vec<Bytes> = members.iter().map(bytes).collect();
                Text::of(&[b"[", members.join(&b","[..]).as_slice(), b"]"].concat())
            }
            Err(refused) => Text::of(&refused.bytes),
        }
    }

    fn read(text: Text) -> Result<Line, &'static str> {
        Ok(scan(text.bytes()?.into()))
    }
}

impl<T: Serialize + DeserializeOwned + Clone> Form for Arc<T> {
    type Written = T;

    fn write(&self) -> T {
        (**self).clone()
    }

    fn read(written: T) -> Result<Arc<T>, &'static str> {
        Ok(Arc::new(written))
    }
}

impl<T: Form> Form for Option<T> {
    type Written = Option<T::Written>;

    fn write(&self) -> Self::Written {
        self.as_ref().map(T::write)
    }

    fn read(written: Self::Written) -> Result<Self, &'static str> {
        written.map(T::read).transpose()
    }
}

impl<T: Form> Form for Vec<T> {
    type Written = Vec<T::Written>;

    fn write(&self) -> Self::Written {
        self.iter().map(T::write).collect()
    }

    fn read(written: Self::Written) -> Result<Self, &'static str> {
        written.into_iter().map(T::read).collect()
    }
}

/// The number of an event, the method of a list.
impl<A: Serialize + DeserializeOwned + Clone, T: Form> Form for (A, T) {
    type Written = (A, T::Written);

    fn write(&self) -> Self::Written {
        (self.0.clone(), self.1.write())
    }

    fn read((name, written): Self::Written) -> Result<Self, &'static str> {
        Ok((name, T::read(written)?))
    }
}
