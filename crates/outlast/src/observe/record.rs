//! A record: lines for a file that nobody waits for.
//!
//! A thread of its own puts what it is given into words and writes them, made when there is first something to
//! write. What it cannot write in time waits (`backlog.rs`), up to a bound ([`MOST`]); more is lost, and the record
//! and whoever asks ([`Record::lost`]) learn how much.
//!
//! Not here: what a line says (`trace.rs`, `access.rs`).

use super::backlog::{Backlog, Next};
use super::stderr;
use crate::clock;
use crate::sys::files;
use outlast_engine::Wall;
use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of items that may wait. One item may be as large as it is; beside it no other is taken.
pub const MOST: usize = 16 << 20;

/// How long the end waits for what is left.
const LAST: Duration = Duration::from_secs(1);

/// What the items of a record are, and how they become lines.
pub trait Words: Debug + Send + 'static {
    /// What becomes a line.
    type Item: Debug + Send + 'static;
    /// What its thread is called.
    const NAME: &'static str;

    /// Bytes that an item keeps while it waits.
    fn size(item: &Self::Item) -> usize;
    /// Its line, with the line's end.
    fn line(&self, at: Wall, item: Self::Item) -> String;
    /// The line in place of so many items that were lost.
    fn lost(&self, at: Wall, count: u64) -> String;
}

/// A file of lines.
#[derive(Debug)]
pub struct Record<W: Words> {
    items: Arc<Backlog<(Wall, W::Item)>>,
    /// Until the thread runs.
    start: Option<(Target, W)>,
    /// How many lost items have been told of.
    told: u64,
}

#[derive(Debug)]
enum Target {
    Stderr,
    File(File),
}

impl<W: Words> Record<W> {
    /// Opens a record; `-` is stderr. A pipe that nobody reads is refused instead of waited for.
    pub fn open(path: &str, words: W) -> io::Result<Record<W>> {
        let target = match path {
            "-" => Target::Stderr,
            path => Target::File(files::open_record(path)?),
        };
        Ok(Record::to(target, words))
    }

    fn to(target: Target, words: W) -> Record<W> {
        Record { items: Arc::new(Backlog::new(MOST, 1)), start: Some((target, words)), told: 0 }
    }

    /// Records one item. Never waits.
    pub fn take(&mut self, item: W::Item) {
        let size = W::size(&item);
        self.items.push((clock::wall(), item), size);
        if let Some((target, words)) = self.start.take() {
            let items = self.items.clone();
            let thread = std::thread::Builder::new().name(W::NAME.into());
            // Without a thread the bound is reached, and that is told.
            let _ = thread.spawn(move || write_all(&items, target, &words));
        }
    }

    /// How many items are lost, if that is to be told: the first time, and at the end.
    pub fn lost(&mut self, at_the_end: bool) -> Option<u64> {
        let lost = self.items.lost();
        let news = if at_the_end { lost > self.told } else { self.told == 0 && lost > 0 };
        self.told = if news { lost } else { self.told };
        news.then_some(lost)
    }

    /// Waits a short while for what is left; what is not written then is lost.
    pub fn finish(&mut self) {
        if self.start.is_none() {
            self.items.finish(LAST);
        }
    }
}

/// What the thread does, for ever.
fn write_all<W: Words>(items: &Backlog<(Wall, W::Item)>, mut target: Target, words: &W) {
    loop {
        let Next { gap, item } = items.next();
        if gap > 0 {
            let at = item.as_ref().map_or_else(clock::wall, |(at, _)| *at);
            let _ = target.write(&words.lost(at, gap));
        }
        let Some((at, item)) = item else { continue };
        // A full disk must not cost a call; what is lost is counted.
        if target.write(&words.line(at, item)).is_err() {
            items.lose(1);
        }
    }
}

impl Target {
    fn write(&mut self, line: &str) -> io::Result<()> {
        match self {
            Target::Stderr => stderr::try_write(line.as_bytes()),
            Target::File(file) => file.write_all(line.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    /// Items that are their lines.
    #[derive(Debug)]
    struct Plain;

    impl Words for Plain {
        type Item = String;
        const NAME: &'static str = "plain";

        fn size(item: &String) -> usize {
            item.len()
        }
        fn line(&self, _: Wall, item: String) -> String {
            item + "\n"
        }
        fn lost(&self, _: Wall, count: u64) -> String {
            format!("lost {count}\n")
        }
    }

    fn to(writer: io::PipeWriter) -> Record<Plain> {
        Record::to(Target::File(File::from(std::os::fd::OwnedFd::from(writer))), Plain)
    }

    /// Whoever reads a pipe late holds nobody up, and learns how much is missing.
    #[test]
    fn what_cannot_be_written_in_time_is_lost_and_counted() {
        let (reader, writer) = io::pipe().unwrap();
        let mut record = to(writer);
        for _ in 0..20 {
            record.take("x".repeat(MOST / 4));
        }
        let lost = record.lost(false).expect("not all of it fits");
        assert!((14..=17).contains(&lost), "{lost}");
        assert_eq!(record.lost(false), None, "it is told once");
        let mut lines = BufReader::new(reader).lines().map(Result::unwrap);
        let (mut whole, mut missing) = (0, 0);
        // Where they are missing depends on when the thread took what was there.
        while whole + missing < 20 {
            let line = lines.next().unwrap();
            match line.strip_prefix("lost ") {
                Some(count) => missing += count.parse::<u64>().unwrap(),
                None => whole += u64::from(line.len() == MOST / 4),
            }
        }
        assert_eq!(missing, lost);
        record.take("later".into());
        assert_eq!(lines.next().unwrap(), "later");
        record.finish();
        assert_eq!(record.lost(true), None);
    }

    /// The end does not wait for ever, and what is left then is lost.
    #[test]
    fn a_reader_that_never_reads_does_not_keep_us_from_ending() {
        let (_reader, writer) = io::pipe().unwrap();
        let mut record = to(writer);
        for _ in 0..3 {
            record.take("x".repeat(1 << 20));
        }
        record.finish();
        assert_eq!(record.lost(true), Some(2), "the first one is being written");
    }
}
