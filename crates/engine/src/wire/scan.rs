//! The scanner: strict JSON in one pass, with the spans of the fields we act on.
//!
//! Values that we do not look into are skipped by a loop, not by recursion, so that a message of
//! 100,000 nested arrays costs a few kilobytes and no stack. Strings are skipped in words and blocks.
//! The tolerant variant accepts what today's SDKs accept from a careless server (a Latin-1 byte,
//! `NaN`, a field that stands twice); it is used only for answers that the strict one refused.

use super::{Envelope, Fault, Field, Message, Refused, Scanned, Shape, Span};
use crate::limits;
use bytes::Bytes;

/// Scans one line: a message, or an array of them.
pub fn scan(bytes: Bytes) -> Result<Scanned, Refused> {
    // Built where it is returned: a message is large, and every move of it would cost each line.
    let mut scanned =
        Ok(Scanned::Message(Message { bytes, shape: Shape::Request, envelope: Envelope::default() }));
    scan_into(&mut scanned);
    scanned
}

/// Scans the bytes of a message that nothing is known of yet.
fn scan_into(scanned: &mut Result<Scanned, Refused>) {
    let Ok(Scanned::Message(Message { bytes, shape, envelope })) = scanned else { return };
    let mut scanner = Scanner::<false>::new(bytes, envelope);
    scanner.space();
    if scanner.peek() == b'[' {
        *scanned = batch(bytes, &mut scanner);
        return;
    }
    match scanner.whole() {
        Ok(found) => *shape = found,
        Err(fault) => *scanned = Err(refuse(bytes, fault, envelope)),
    }
}

/// One message; `None` for anything else.
pub fn scan_message(bytes: Bytes) -> Option<Message> {
    match scan(bytes) {
        Ok(Scanned::Message(message)) => Some(message),
        Ok(Scanned::Batch(_)) | Err(_) => None,
    }
}

fn batch(bytes: &Bytes, scanner: &mut Scanner<'_, false>) -> Result<Scanned, Refused> {
    let Some(members) = scanner.members() else {
        return Err(refuse(bytes, scanner.fault, &Envelope::default()));
    };
    let scanned = members.into_iter().map(|(start, end)| message::<false>(&bytes.slice(start..end)));
    Ok(Scanned::Batch(scanned.collect()))
}

/// Scans one object and accepts bytes that are not UTF-8, control characters in strings, words such
/// as `NaN` as values, and fields that stand twice: every usual reader takes the last of them. Not so
/// the id and the method, by which others could take the message for another one.
pub fn scan_tolerant(bytes: &Bytes) -> Option<Message> {
    message::<true>(bytes).ok()
}

fn message<const TOLERANT: bool>(bytes: &Bytes) -> Result<Message, Refused> {
    let mut envelope = Envelope::default();
    match Scanner::<TOLERANT>::new(bytes, &mut envelope).whole() {
        Ok(shape) => Ok(Message { bytes: bytes.clone(), shape, envelope }),
        Err(fault) => Err(refuse(bytes, fault, &envelope)),
    }
}

/// The id goes along if it was met.
fn refuse(bytes: &Bytes, fault: Fault, envelope: &Envelope) -> Refused {
    let id = envelope.get(Field::Id).filter(|_| fault != Fault::Duplicate);
    Refused { fault, id: id.map(|id| bytes.slice(id.start()..id.end())), bytes: bytes.clone() }
}

/// An object whose keys we look at.
#[derive(Clone, Copy)]
enum Place {
    Top,
    Params,
    ParamsMeta,
    Result,
    ResultMeta,
}

/// The field that a key names in a place, and the place to go on in if its value is an object.
fn known(place: Place, key: &[u8]) -> Option<(Field, Option<Place>)> {
    let field = match (place, key) {
        (Place::Top, b"jsonrpc") => Field::Jsonrpc,
        (Place::Top, b"id") => Field::Id,
        (Place::Top, b"method") => Field::Method,
        (Place::Top, b"params") => return Some((Field::Params, Some(Place::Params))),
        (Place::Top, b"result") => return Some((Field::Result, Some(Place::Result))),
        (Place::Top, b"error") => Field::Error,
        (Place::Params, b"_meta") => return Some((Field::ParamsMeta, Some(Place::ParamsMeta))),
        (Place::Params, b"name") => Field::ParamsName,
        (Place::Params, b"requestId") => Field::ParamsRequestId,
        (Place::Params, b"progressToken") => Field::ParamsProgressToken,
        (Place::Params, b"progress") => Field::ParamsProgress,
        (Place::Params, b"total") => Field::ParamsTotal,
        (Place::Params, b"task") => Field::ParamsTask,
        (Place::Params, b"requestState") => Field::ParamsRequestState,
        (Place::Params, b"inputResponses") => Field::ParamsInputResponses,
        (Place::Params, b"cursor") => Field::ParamsCursor,
        (Place::Params, b"uri") => Field::ParamsUri,
        (Place::Params, b"taskId") => Field::ParamsTaskId,
        (Place::Params, b"idempotencyKey") => Field::ParamsIdempotencyKey,
        (Place::ParamsMeta, b"progressToken") => Field::MetaProgressToken,
        (Place::ParamsMeta, b"io.modelcontextprotocol/subscriptionId") => Field::MetaSubscriptionId,
        (Place::ParamsMeta, b"io.modelcontextprotocol/protocolVersion") => Field::MetaProtocolVersion,
        (Place::ParamsMeta, b"io.modelcontextprotocol/clientCapabilities") => Field::MetaClientCapabilities,
        (Place::ParamsMeta, b"io.modelcontextprotocol/clientInfo") => Field::MetaClientInfo,
        (Place::ParamsMeta, b"io.modelcontextprotocol/logLevel") => Field::MetaLogLevel,
        (Place::ParamsMeta, b"dev.outlast/timeoutMs") => Field::MetaTimeoutMs,
        (Place::ParamsMeta, b"dev.outlast/keepAlive") => Field::MetaKeepAlive,
        (Place::Result, b"resultType") => Field::ResultType,
        (Place::Result, b"_meta") => return Some((Field::ResultMeta, Some(Place::ResultMeta))),
        (Place::ResultMeta, b"io.modelcontextprotocol/subscriptionId") => Field::ResultMetaSubscriptionId,
        _ => return None,
    };
    Some((field, None))
}

/// The longest key in [`known`] when every character is written as an escape.
const LONGEST_ESCAPED_KEY: usize = 6 * 42;

struct Scanner<'a, const TOLERANT: bool> {
    bytes: &'a [u8],
    at: usize,
    envelope: &'a mut Envelope,
    nesting: Nesting,
    /// The bits that any byte of any string has set: with the top one clear, all of it is ASCII.
    high: u64,
    fault: Fault,
}

/// `None` when the input is refused; why is in [`Scanner::fault`]. It keeps the hot functions' results
/// in one register.
type Step<T> = Option<T>;

impl<'a, const TOLERANT: bool> Scanner<'a, TOLERANT> {
    fn new(bytes: &'a [u8], envelope: &'a mut Envelope) -> Self {
        Scanner { bytes, at: 0, envelope, nesting: Nesting::default(), high: 0, fault: Fault::NotAMessage }
    }

    /// A whole message: its shape, and where its fields are in the envelope.
    fn whole(&mut self) -> Result<Shape, Fault> {
        self.shape().ok_or(self.fault)
    }

    fn shape(&mut self) -> Step<Shape> {
        self.space();
        if self.peek() != b'{' {
            self.value()?;
            self.end()?;
            return self.refuse(Fault::NotAMessage);
        }
        if self.opens_as_usual() {
            self.rest_of_object(Place::Top)?;
        } else {
            self.object(Place::Top)?;
        }
        self.end()?;
        if self.envelope.has(Field::Result) && self.envelope.has(Field::Error) {
            self.one_of_both();
        }
        let shape = self.envelope.shape(self.bytes);
        shape.or_else(|| self.refuse(Fault::NotAMessage))
    }

    /// Writers of the old JSON-RPC put `"error":null` beside every result, and the other way round.
    #[cold]
    fn one_of_both(&mut self) {
        let is_null = |field| self.envelope.get(field).is_some_and(|span| span.of(self.bytes) == b"null");
        let absent = if is_null(Field::Error) { Field::Error } else { Field::Result };
        if is_null(absent) {
            self.envelope.set(absent, None);
        }
    }

    /// Nothing may follow; and what is not ASCII must be UTF-8.
    fn end(&mut self) -> Step<()> {
        self.space();
        if self.at != self.bytes.len() {
            return self.fail();
        }
        if TOLERANT || self.high & TOPS == 0 {
            return Some(());
        }
        match simdutf8::compat::from_utf8(self.bytes) {
            Ok(_) => Some(()),
            Err(error) => self.refuse(Fault::NotJson(error.valid_up_to() as u32)),
        }
    }

    /// The members of a top-level array, as ranges.
    fn members(&mut self) -> Step<Vec<(usize, usize)>> {
        self.at += 1;
        self.space();
        let mut members = Vec::new();
        if self.eat(b']') {
            self.end()?;
            return self.refuse(Fault::EmptyBatch);
        }
        loop {
            self.space();
            let start = self.at;
            self.value()?;
            if reached!(BATCH_MEMBERS, members.len() == limits::BATCH_MEMBERS) {
                return self.refuse(Fault::LongBatch);
            }
            members.push((start, self.at));
            self.space();
            if self.eat(b']') {
                self.end()?;
                return Some(members);
            }
            self.expect(b',')?;
        }
    }

    /// Takes the beginning that most messages have, up to the next key.
    fn opens_as_usual(&mut self) -> bool {
        const OPENING: &[u8] = br#"{"jsonrpc":"2.0","#;
        let usual = self.bytes[self.at..].starts_with(OPENING);
        if usual {
            self.envelope.set(Field::Jsonrpc, Span::new(self.at + 11, self.at + 16));
            self.at += OPENING.len();
        }
        usual
    }

    /// An object whose keys matter. Recursion goes no deeper than `Top` → `Params` → `ParamsMeta`.
    fn object(&mut self, place: Place) -> Step<()> {
        self.at += 1;
        if self.next() == b'}' {
            self.at += 1;
            return Some(());
        }
        self.rest_of_object(place)
    }

    /// The same from a key on.
    fn rest_of_object(&mut self, place: Place) -> Step<()> {
        loop {
            match self.key(place)? {
                None => self.value()?,
                Some((field, inner)) => self.field(field, inner)?,
            }
            match self.next() {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return self.fail(),
            }
        }
    }

    fn field(&mut self, field: Field, inner: Option<Place>) -> Step<()> {
        if self.envelope.has(field) {
            self.again(field)?;
        }
        let start = self.at;
        match inner {
            Some(place) if self.peek() == b'{' => self.object(place)?,
            _ => self.value()?,
        }
        self.envelope.set(field, Span::new(start, self.at));
        Some(())
    }

    /// A field stands here for the second time.
    #[cold]
    fn again(&mut self, field: Field) -> Step<()> {
        if !TOLERANT || matches!(field, Field::Id | Field::Method) {
            return self.refuse(Fault::Duplicate);
        }
        if field == Field::Result {
            // What stood in the first one does not count either.
            for inner in [Field::ResultType, Field::ResultMeta, Field::ResultMetaSubscriptionId] {
                self.envelope.set(inner, None);
            }
        }
        Some(())
    }

    /// A key and everything up to its value; which field it names.
    #[inline]
    fn key(&mut self, place: Place) -> Step<Option<(Field, Option<Place>)>> {
        if self.next() != b'"' {
            return self.fail();
        }
        let start = self.at;
        let escaped = self.string()?;
        let end = self.at;
        self.colon()?;
        if !escaped {
            return Some(known(place, &self.bytes[start + 1..end - 1]));
        }
        let quoted = &self.bytes[start..end];
        if quoted.len() > LONGEST_ESCAPED_KEY {
            return Some(None);
        }
        // Half a surrogate pair has no decoded form, and so names no field of ours.
        let decoded: Option<String> = serde_json::from_slice(quoted).ok();
        Some(decoded.and_then(|key| known(place, key.as_bytes())))
    }

    /// Any value, skipped.
    #[inline]
    fn value(&mut self) -> Step<()> {
        match self.peek() {
            b'{' | b'[' => self.nested(),
            b'"' => self.string().map(|_| ()),
            _ => self.scalar(),
        }
    }

    /// An object or an array, skipped. `nesting` holds the open brackets; it is empty before and after.
    fn nested(&mut self) -> Step<()> {
        loop {
            match self.peek() {
                b'{' => {
                    self.at += 1;
                    if self.next() != b'}' {
                        self.nesting.push(true);
                        self.skip_key()?;
                        continue;
                    }
                    self.at += 1;
                }
                b'[' => {
                    self.at += 1;
                    if self.next() != b']' {
                        self.nesting.push(false);
                        continue;
                    }
                    self.at += 1;
                }
                b'"' => {
                    self.string()?;
                }
                _ => self.scalar()?,
            }
            if self.close()? {
                return Some(());
            }
        }
    }

    /// After a value: closes what ends here and moves to the next value. True when nothing is open.
    fn close(&mut self) -> Step<bool> {
        loop {
            let Some(object) = self.nesting.top() else { return Some(true) };
            match self.next() {
                b',' => {
                    self.at += 1;
                    if object {
                        self.skip_key()?;
                    } else {
                        self.next();
                    }
                    return Some(false);
                }
                b'}' if object => self.nesting.pop(),
                b']' if !object => self.nesting.pop(),
                _ => return self.fail(),
            }
            self.at += 1;
        }
    }

    #[inline]
    fn skip_key(&mut self) -> Step<()> {
        if self.next() != b'"' {
            return self.fail();
        }
        self.string()?;
        self.colon()
    }

    /// What stands between a key and its value.
    #[inline]
    fn colon(&mut self) -> Step<()> {
        if self.next() != b':' {
            return self.fail();
        }
        self.at += 1;
        self.next();
        Some(())
    }

    /// A string, from its opening to its closing quote; whether it holds an escape.
    #[inline]
    fn string(&mut self) -> Step<bool> {
        self.at += 1;
        // Most keys and many values end within eight bytes: those are dealt with right here.
        if let Some(b'"') = self.next_word() {
            self.at += 1;
            return Some(false);
        }
        self.longer_string()
    }

    #[inline(never)]
    fn longer_string(&mut self) -> Step<bool> {
        let mut escaped = false;
        loop {
            match self.plain_run()? {
                b'"' => return Some(escaped),
                _ => self.escape()?,
            }
            escaped = true;
        }
    }

    /// Moves past the next quote or backslash and says which it was.
    #[inline]
    fn plain_run(&mut self) -> Step<u8> {
        match self.next_word().or_else(|| self.long_run()) {
            Some(found @ (b'"' | b'\\')) => {
                self.at += 1;
                Some(found)
            }
            _ => self.fail(),
        }
    }

    /// Moves to the next special byte, if there is one among the next eight, or past them.
    #[inline]
    fn next_word(&mut self) -> Option<u8> {
        let word = u64::from_le_bytes(*self.bytes.get(self.at..)?.first_chunk()?);
        let special = special_bytes::<TOLERANT>(word);
        if special == 0 {
            self.high |= word;
            self.at += 8;
            return None;
        }
        // What lies above the mark belongs to the next run; it is looked at there.
        self.high |= word & (special ^ (special - 1));
        let at = special.trailing_zeros();
        self.at += at as usize / 8;
        Some((word >> (at & !7)) as u8)
    }

    /// Moves to the next special byte: in blocks, then in words, then byte by byte.
    fn long_run(&mut self) -> Option<u8> {
        let mut rest = self.bytes.get(self.at..)?;
        while let Some((block, after)) = rest.split_first_chunk::<BLOCK>() {
            let (special, high) = survey::<TOLERANT>(block);
            if special {
                break;
            }
            self.high |= if high { TOPS } else { 0 };
            rest = after;
        }
        self.at = self.bytes.len() - rest.len();
        for _ in 0..rest.len() / 8 {
            if let Some(found) = self.next_word() {
                return Some(found);
            }
        }
        loop {
            let byte = *self.bytes.get(self.at)?;
            if is_special::<TOLERANT>(byte) {
                return Some(byte);
            }
            self.high |= u64::from(byte);
            self.at += 1;
        }
    }

    fn escape(&mut self) -> Step<()> {
        let byte = self.peek();
        self.at += 1;
        match byte {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.bytes.get(self.at..self.at + 4);
                self.at += 4;
                match digits {
                    Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => Some(()),
                    _ => self.fail(),
                }
            }
            _ if TOLERANT && self.at <= self.bytes.len() => Some(()),
            _ => self.fail(),
        }
    }

    fn scalar(&mut self) -> Step<()> {
        if TOLERANT {
            return self.word();
        }
        match self.peek() {
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.number(),
        }
    }

    /// Tolerant only: `NaN`, `-Infinity`, or whatever else a careless writer put here.
    fn word(&mut self) -> Step<()> {
        let rest = &self.bytes[self.at..];
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | b'"' | b'{' | b'[');
        let length = rest.iter().position(|b| ends(b) || is_space(*b)).unwrap_or(rest.len());
        self.at += length;
        if length == 0 { self.fail() } else { Some(()) }
    }

    fn literal(&mut self, word: &[u8]) -> Step<()> {
        if !self.bytes[self.at..].starts_with(word) {
            return self.fail();
        }
        self.at += word.len();
        Some(())
    }

    fn number(&mut self) -> Step<()> {
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if !matches!(self.peek(), b'.' | b'e' | b'E') {
            return Some(());
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Step<()> {
        let rest = &self.bytes[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { self.fail() } else { Some(()) }
    }

    #[inline]
    fn space(&mut self) {
        self.next();
    }

    /// Moves to the next byte that is no blank; see [`Scanner::peek`].
    #[inline]
    fn next(&mut self) -> u8 {
        loop {
            let byte = self.peek();
            if !is_space(byte) {
                return byte;
            }
            self.at += 1;
        }
    }

    /// The next byte; 0, which begins nothing, at the end.
    #[inline]
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte;
        self.at += usize::from(found);
        found
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Step<()> {
        if self.eat(byte) { Some(()) } else { self.fail() }
    }

    #[cold]
    fn fail<T>(&mut self) -> Step<T> {
        let at = self.at.min(self.bytes.len());
        self.refuse(Fault::NotJson(at as u32))
    }

    #[cold]
    fn refuse<T>(&mut self, fault: Fault) -> Step<T> {
        self.fault = fault;
        None
    }
}

/// Bytes of a long string that are looked at together.
const BLOCK: usize = 64;

/// A quote and the control characters, and nothing else, are below the second once the first is turned.
const QUOTE_OR_CONTROL: (u8, u8) = (0x02, 0x21);

/// The top bit of every byte of a word.
const TOPS: u64 = u64::from_ne_bytes([0x80; 8]);

/// Marks, in the top bit of each byte, a quote, a backslash or (strictly) a control character. Only
/// the lowest mark is certain; those above it may be borrows.
fn special_bytes<const TOLERANT: bool>(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    // Both are a byte that is below a bound once some of its bits are turned.
    let below = |turned: u8, bound: u8| {
        let word = word ^ (ONES * u64::from(turned));
        word.wrapping_sub(ONES * u64::from(bound)) & !word
    };
    let quote = if TOLERANT { below(b'"', 1) } else { below(QUOTE_OR_CONTROL.0, QUOTE_OR_CONTROL.1) };
    (quote | below(b'\\', 1)) & TOPS
}

/// Whether a byte ends a run of plain ones.
fn is_special<const TOLERANT: bool>(byte: u8) -> bool {
    let quote = if TOLERANT { byte == b'"' } else { byte ^ QUOTE_OR_CONTROL.0 < QUOTE_OR_CONTROL.1 };
    quote | (byte == b'\\')
}

/// Whether there is a special byte, and one that is not ASCII. Written as a fold without an early exit,
/// which the compiler turns into vector code.
fn survey<const TOLERANT: bool>(block: &[u8; BLOCK]) -> (bool, bool) {
    block.iter().fold((false, false), |(special, high), &byte| {
        (special | is_special::<TOLERANT>(byte), high | !byte.is_ascii())
    })
}

fn is_space(byte: u8) -> bool {
    byte <= b' ' && matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The open brackets of a skipped value, one bit each: true for an object.
#[derive(Default)]
struct Nesting {
    depth: usize,
    top: u64,
    below: Vec<u64>,
}

impl Nesting {
    fn push(&mut self, object: bool) {
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.below.push(self.top);
        }
        self.top = self.top << 1 | u64::from(object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.top >>= 1;
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.top = self.below.pop().unwrap_or_default();
        }
    }

    fn top(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.top & 1 == 1)
    }
}
