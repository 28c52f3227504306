//! Bodies: where their parts stand in what was read, and where they end.

use super::{Fault, HEADERS};
use std::ops::Range;

/// Bytes of one body that are neither data nor its delimiters: extensions of chunks, and trailers with their
/// line ends. A body with as many is refused. Of trailers there are at most [`HEADERS`].
pub const FRAMING_BYTES: usize = 16 << 10;

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After so many bytes.
    Length(u64),
    /// With an empty chunk.
    Chunked,
    /// With the connection.
    ToTheEnd,
}

/// Reads one body.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    /// Bytes that may still come beside the data.
    spare: usize,
    /// Lines of trailers that may still come.
    trailers: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// So many bytes of a body of known length.
    Length(u64),
    /// Everything.
    ToTheEnd,
    /// The size of a chunk so far, and whether it has a digit.
    Size(u64, bool),
    /// Blanks after a size: no digit may follow them.
    Blank(u64),
    /// What may follow a size.
    Extension(u64),
    /// The line feed after a size.
    SizeEnd(u64),
    /// So many bytes of a chunk.
    Chunk(u64),
    /// What follows a chunk.
    ChunkCr,
    ChunkLf,
    /// The next line of the trailers.
    Trailer,
    /// The name of a trailer.
    TrailerName,
    /// Its value.
    TrailerValue,
    /// The line feed after it.
    TrailerLf,
    /// The line feed after the empty line at the end.
    EndLf,
    Done,
}

impl Decoder {
    /// For a body that ends so.
    pub fn new(framing: Framing) -> Decoder {
        let state = match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size(0, false),
            Framing::ToTheEnd => State::ToTheEnd,
        };
        Decoder { state, spare: FRAMING_BYTES - 1, trailers: HEADERS }
    }

    /// Whether it has ended.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the end of the connection is its end.
    pub fn may_end(&self) -> bool {
        matches!(self.state, State::Done | State::ToTheEnd)
    }

    /// Bytes that must still come, as far as that is known.
    pub fn missing(&self) -> u64 {
        match self.state {
            State::Length(left) | State::Chunk(left) => left,
            _ => 0,
        }
    }

    /// Whether it has a known length.
    pub fn has_length(&self) -> bool {
        matches!(self.state, State::Length(_))
    }

    /// Counts bytes that were read elsewhere, of a body with a known length and no more than are missing.
    pub fn took(&mut self, bytes: u64) {
        if let State::Length(missing) = self.state {
            self.state = if bytes >= missing { State::Done } else { State::Length(missing - bytes) };
        }
    }

    /// Where the next data stands in what was read. All before its end is used up then; an empty range
    /// means that there is no more data, yet or at all.
    pub fn next(&mut self, read: &[u8]) -> Result<Range<usize>, Fault> {
        let mut at = 0;
        loop {
            let left = (read.len() - at) as u64;
            let taken = match self.state {
                State::Done => return Ok(at..at),
                _ if left == 0 => return Ok(at..at),
                State::ToTheEnd => left,
                State::Length(missing) => {
                    self.took(missing.min(left));
                    missing.min(left)
                }
                State::Chunk(missing) => {
                    let taken = missing.min(left);
                    self.state =
                        if taken == missing { State::ChunkCr } else { State::Chunk(missing - taken) };
                    taken
                }
                _ => {
                    self.state = self.after(read[at])?;
                    at += 1;
                    continue;
                }
            };
            return Ok(at..at + taken as usize);
        }
    }

    /// Where a byte between the data leads.
    fn after(&mut self, byte: u8) -> Result<State, Fault> {
        let state = match (self.state, byte) {
            (State::Size(size, true) | State::Blank(size) | State::Extension(size), b'\r') => {
                State::SizeEnd(size)
            }
            (State::Size(size, true) | State::Blank(size), b';') => State::Extension(size),
            (State::Size(size, true) | State::Blank(size), b' ' | b'\t') => {
                self.spend()?;
                State::Blank(size)
            }
            (State::Size(size, _), byte) => {
                let digit = char::from(byte).to_digit(16).ok_or(Fault::Malformed("invalid chunk size"))?;
                let size = size.checked_mul(16).ok_or(Fault::Malformed("chunk size is too large"))?;
                State::Size(size + u64::from(digit), true)
            }
            (State::Extension(size), byte) if byte != b'\n' => {
                self.spend()?;
                State::Extension(size)
            }
            (State::SizeEnd(0), b'\n') => State::Trailer,
            (State::SizeEnd(size), b'\n') => State::Chunk(size),
            (State::ChunkCr, b'\r') => State::ChunkLf,
            (State::ChunkLf, b'\n') => State::Size(0, false),
            _ => return self.after_in_trailers(byte),
        };
        Ok(state)
    }

    /// Where a byte after the last chunk leads. Nobody here needs trailers; whoever reads them must find the
    /// same lines in them.
    fn after_in_trailers(&mut self, byte: u8) -> Result<State, Fault> {
        self.spend()?;
        match (self.state, byte) {
            (State::Trailer, b'\r') => Ok(State::EndLf),
            (State::EndLf, b'\n') => Ok(State::Done),
            (State::Trailer, byte) if is_token(byte) => {
                self.trailers = self.trailers.checked_sub(1).ok_or(Fault::Malformed("too many trailers"))?;
                Ok(State::TrailerName)
            }
            (State::TrailerName, byte) if is_token(byte) => Ok(State::TrailerName),
            (State::TrailerName, b':') => Ok(State::TrailerValue),
            (State::TrailerValue, b'\r') => Ok(State::TrailerLf),
            (State::TrailerValue, b'\t' | b' '..=b'~' | 0x80..) => Ok(State::TrailerValue),
            (State::TrailerLf, b'\n') => Ok(State::Trailer),
            _ => Err(Fault::Malformed("invalid chunk")),
        }
    }

    fn spend(&mut self) -> Result<(), Fault> {
        self.spare = self.spare.checked_sub(1).ok_or(Fault::Malformed("chunk extensions are too long"))?;
        Ok(())
    }
}

/// Whether a byte may stand in the name of a field.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a body holds, however it is cut; `None` while it has not ended.
    fn decode(framing: Framing, parts: &[&[u8]]) -> Result<Option<Vec<u8>>, Fault> {
        let (mut decoder, mut data, mut kept) = (Decoder::new(framing), Vec::new(), Vec::new());
        for part in parts {
            kept.extend_from_slice(part);
            loop {
                let found = decoder.next(&kept)?;
                data.extend_from_slice(&kept[found.clone()]);
                kept.drain(..found.end);
                if found.is_empty() {
                    break;
                }
            }
        }
        assert!(decoder.is_done() || kept.is_empty());
        Ok(decoder.is_done().then_some(data))
    }

    fn decode_every_way(framing: Framing, text: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let whole = decode(framing, &[text]);
        for cut in 0..=text.len() {
            assert_eq!(decode(framing, &[&text[..cut], &text[cut..]]), whole, "{cut}");
        }
        assert_eq!(decode(framing, &text.chunks(1).collect::<Vec<_>>()), whole);
        whole
    }

    #[test]
    fn chunks_are_read_however_they_are_cut() {
        let read = |text: &str| decode_every_way(Framing::Chunked, text.as_bytes());
        let data = |text: &str| Ok(Some(text.as_bytes().to_vec()));
        assert_eq!(read("5\r\nhello\r\n0\r\n\r\n"), data("hello"));
        assert_eq!(
            read("0005 \t;a=b\r\nhello\r\nA \r\n, new worl\r\n1\r\nd\r\n0\r\nx: y\r\nz: 1\r\n\r\n"),
            data("hello, new world")
        );
        assert_eq!(read("0\r\n\r\nmore"), data(""));
        assert_eq!(read("5\r\nhel"), Ok(None));
        for odd in [
            "\r\n",
            "x\r\n",
            "5\nhello",
            "5\r\nhello0\r\n\r\n",
            "11111111111111111\r\n",
            "-1\r\n",
            "5;\n",
            " 5\r\n",
            "0\r\na\n\r\n",
            "5 5\r\nhello\r\n0\r\n\r\n",
            "5\t5\r\nhello\r\n0\r\n\r\n",
            "5 x\r\nhello\r\n0\r\n\r\n",
            "5 =\r\nhello\r\n0\r\n\r\n",
            "0\r\nno colon\r\n\r\n",
            "0\r\n: no name\r\n\r\n",
            "0\r\n folded: x\r\n\r\n",
            "0\r\nx: \0\r\n\r\n",
            "0\r\nx : y\r\n\r\n",
        ] {
            assert!(read(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn what_is_no_data_has_a_bound() {
        let long = "x".repeat(FRAMING_BYTES + 1);
        assert!(decode(Framing::Chunked, &[format!("5;{long}").as_bytes()]).is_err());
        assert!(decode(Framing::Chunked, &[format!("0\r\nx:{long}").as_bytes()]).is_err());
        assert!(decode(Framing::Chunked, &[format!("5{}", " ".repeat(FRAMING_BYTES)).as_bytes()]).is_err());
        let lines = |count| format!("0\r\n{}\r\n", "x: y\r\n".repeat(count));
        assert_eq!(decode(Framing::Chunked, &[lines(HEADERS).as_bytes()]), Ok(Some(Vec::new())));
        assert!(decode(Framing::Chunked, &[lines(HEADERS + 1).as_bytes()]).is_err());
        let many = format!("1;{}\r\na\r\n", "x".repeat(100)).repeat(FRAMING_BYTES / 100 + 1);
        assert!(decode(Framing::Chunked, &[many.as_bytes()]).is_err());
    }

    #[test]
    fn a_length_is_kept_to() {
        assert_eq!(decode_every_way(Framing::Length(3), b"abcd"), Ok(Some(b"abc".to_vec())));
        assert_eq!(decode_every_way(Framing::Length(3), b"ab"), Ok(None));
        assert_eq!(decode_every_way(Framing::Length(0), b"ab"), Ok(Some(Vec::new())));
    }

    #[test]
    fn without_one_the_connection_says_it() {
        let mut decoder = Decoder::new(Framing::ToTheEnd);
        assert_eq!(decoder.next(b"abc"), Ok(0..3));
        assert!(decoder.may_end() && !decoder.is_done());
        assert!(!Decoder::new(Framing::Chunked).may_end() && !Decoder::new(Framing::Length(1)).may_end());
    }
}
