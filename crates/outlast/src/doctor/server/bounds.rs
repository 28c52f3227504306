//! How long and how much a checkup waits and reads. `outlast doctor --help` and `docs/doctor.md`
//! say the same.

use std::time::Duration;

/// The longest wait for any one answer, unless `--timeout` says otherwise.
pub const ANSWER: Duration = Duration::from_secs(60);

/// For `server/discover`, beyond what the server took for its first answer. Clients give it 5 to 10 s.
pub const DISCOVER: Duration = Duration::from_secs(10);

/// For a ping.
pub const PING: Duration = Duration::from_secs(5);

/// For all pages of one list.
pub const LIST: Duration = Duration::from_secs(30);

/// Pages of one list. One more is not asked for.
pub const PAGES: usize = 100;

/// The least and the most that the second process is listened to before it is asked anything. In
/// between it is as long as the first one took to answer: then a banner has been printed.
pub const LISTEN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

/// For the end after stdin was closed; then SIGTERM.
pub const AFTER_EOF: Duration = Duration::from_secs(3);

/// For the end after SIGTERM; then SIGKILL.
pub const AFTER_TERM: Duration = Duration::from_secs(2);

/// For the end after SIGKILL; then it is reported as still there.
pub const AFTER_KILL: Duration = Duration::from_secs(2);

/// For descendants of a process that has ended; then they are orphans.
pub const ORPHANS: Duration = Duration::from_millis(500);

/// For the system to start the process.
pub const EXEC: Duration = Duration::from_secs(10);

/// Bytes of a line on stdout. A longer one is skipped and reported.
pub const LINE: usize = 16 << 20;

/// What is heard and not yet looked at. More: the server waits.
pub const HEARD: usize = 8;

/// Messages to the server that it has not read. More: dropped, and it never answers them.
pub const UNREAD: usize = 64;

/// Bytes of stderr that are kept for the report.
pub const STDERR_TAIL: usize = 1000;

/// Bytes of an odd line that are shown.
pub const SHOWN: usize = 200;

/// A first answer later than this is a slow start.
pub const SLOW_START: Duration = Duration::from_secs(3);

/// A larger list answer is reported.
pub const LARGE_LIST: usize = 1 << 20;

/// More lines on stderr are reported.
pub const STDERR_LINES: u64 = 1000;
