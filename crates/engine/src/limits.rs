//! Every bound in the system that is not a setting, and what happens at it.

use std::time::Duration;

/// Members of a client's array. One more: the array is refused with -32600.
pub const BATCH_MEMBERS: usize = 1_000;

/// Calls in flight per client. One more: answered at once with `overloaded`.
pub const CALLS: usize = 100_000;

/// Requests of a server that wait for the client. One more: the server gets an error at once.
pub const ASKS: usize = 10_000;

/// Open subscriptions per client. One more: answered at once with `overloaded`.
pub const SUBSCRIPTIONS: usize = 1_000;

/// Progress tokens of task-augmented calls that were answered with a handle; progress may follow
/// until the task ends. One more: the oldest is forgotten, its progress dropped.
pub const TASK_TOKENS: usize = 1_000;

/// Bytes of calls that wait for a server to come back. More: answered at once with `overloaded`.
pub const WAITING_BYTES: usize = 64 << 20;

/// Bytes of a client's `initialize` that are kept for a restarted server. A longer one is not
/// kept, and its server is not restarted.
pub const HANDSHAKE_BYTES: usize = 1 << 20;

/// Bytes of a server's stderr that are kept for errors. More: the oldest go.
pub const STDERR_TAIL: usize = 16 << 10;

/// Lines of these that are kept.
pub const STDERR_LINES: usize = 50;

/// Bytes of a call that are kept so that it can be repeated. A longer one is not repeated.
pub const REPEATABLE_BYTES: usize = 1 << 20;

/// Bytes of all calls that are kept so. What comes above is not repeated.
pub const KEPT_BYTES: usize = 32 << 20;

/// Resources of which it is known who subscribed to them, so that a restarted server is subscribed to them again.
/// One more: it is not, all who share the server hear of it, and the first who unsubscribes does so for all.
pub const SUBSCRIBED: usize = 1_000;

/// Bytes of a session's log level and subscriptions that are remembered for a server that it is woken on. What
/// comes above is not told to it.
pub const SETUP_BYTES: usize = 256 << 10;

/// Attempts that a server was told to cancel and that are remembered, to see whether it obeys. More: the
/// oldest are forgotten.
pub const TOLD_TO_CANCEL: usize = 64;

/// How long after a cancel an answer may come that was sent before it arrived.
pub const CANCEL_CROSSES: Duration = Duration::from_millis(500);

/// Between asking a hung server to end and ending it.
pub const HUNG_GRACE: Duration = Duration::from_secs(1);

/// How old a call becomes before it is told of, where only slow ones are.
pub const SLOW: Duration = Duration::from_secs(1);

/// Bytes of `traceparent`, and of `tracestate`. What is longer is no trace context, and is not passed to observers.
pub const TRACE: usize = 1_024;

/// Tools whose durations are told apart. One more: counted together with others.
pub const MEASURED: usize = 10_000;

/// Days for which it is kept how long tools took. Older ones go.
pub const MEASURED_DAYS: u64 = 30;

/// Buckets and sums of durations in a store. More: the oldest day goes.
pub const MEASURED_ROWS: u64 = 500_000;

/// Bytes that a process shows others. More: refused.
pub const SHOWN_BYTES: usize = 1 << 20;

/// Calls, and servers, in a snapshot. More: it says how many.
pub const SNAPSHOT: usize = 1_000;

/// Characters of an error's message. More: cut.
pub const ERROR_MESSAGE: usize = 300;

/// Bytes of the stderr tail inside an error, so that `data` stays below 2 KiB.
pub const ERROR_TAIL: usize = 600;

/// Bytes of a name (tool, method, server) inside errors, notes and words. More: cut.
pub const NAME: usize = 128;

/// Bad lines of a server per note about them.
pub const BAD_LINES_PER_NOTE: u64 = 100;

/// How much of a bad line a note shows.
pub const BAD_LINE_SHOWN: usize = 200;

/// How long a client may take to send its first request to a server that cannot run, so that the
/// request gets an answer instead of a closed pipe.
pub const FIRST_REQUEST: Duration = Duration::from_millis(500);

/// How long the output of a server that has ended is read on; a grandchild may hold it open.
pub const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// How long a server may live on without stdin, or after it closed its stdout.
pub const END_GRACE: Duration = Duration::from_secs(1);

/// Between SIGTERM and SIGKILL.
pub const KILL_GRACE: Duration = Duration::from_millis(500);

/// How long after SIGKILL a server's end is waited for before we end all the same.
pub const REAP_GRACE: Duration = Duration::from_millis(300);

/// How long a client may take to read what is left when a signal ends us.
pub const HASTY_WRITE: Duration = Duration::from_millis(100);

/// How long one sample of a server's signs of life serves every call that asks.
pub const SAMPLE_SHARED: Duration = Duration::from_secs(1);

/// The longest time between the two samples that are compared.
pub const SAMPLE_LEAD: Duration = Duration::from_secs(10);

/// The shortest keep-alive interval; a client needs no more.
pub const KEEP_ALIVE_MIN: Duration = Duration::from_millis(50);

// HTTP: clients.

/// Events of one stream that are kept for a client that comes back. More: the oldest go, and the
/// stream cannot be taken up from before them.
pub const STREAM_EVENTS: usize = 1_000;

/// Bytes of events that are kept for one session. More: those of the oldest streams go first. A longer event is
/// not kept, and its stream cannot be taken up from before it.
pub const SESSION_BYTES: usize = 16 << 20;

/// Streams of a session that are kept, settled or not. More: the oldest settled ones go.
pub const SESSION_STREAMS: usize = 256;

/// Bytes of events that are kept for all sessions. More: nothing further is kept, and a stream cannot be taken up
/// from before what was not.
pub const EVENTS_BYTES: usize = 256 << 20;

/// Former owners of a session that are told what its client says of calls that run there. One more: the earliest is
/// not told any more.
pub const FORMER_OWNERS: usize = 8;

/// How long such a message is kept for a process that does not take it. Later: dropped; that process is gone, or has
/// other trouble than a cancel that it did not hear of.
pub const FORWARDED: Duration = Duration::from_secs(60);

/// Sessions that sleep: only their names and handshakes are kept. More: the oldest are forgotten.
pub const SLEEPERS: usize = 10_000;

/// Requests that wait for a session or a stream to be looked up. One more: 503.
pub const KNOCKS: usize = 1_000;

/// How often it is looked whether another process has added to a stream that is read here, so that what it says is at
/// most so much later.
pub const RELAY: Duration = Duration::from_millis(100);

/// How long after such a look the next one is at the earliest, where the store has said that there is something new.
pub const RELAY_HINTED: Duration = Duration::from_millis(10);

/// Connections that read a stream of another process. One more ends after what there is; its client comes back.
pub const RELAYS: usize = 1_000;

/// How long a stream may be missing whose owner may not know yet that its client is gone. Longer: 400.
pub const RELAY_WAIT: Duration = Duration::from_secs(2);

/// How long a stream counts as read elsewhere after that was last said, which is done every [`RENEW`]. After that its
/// progress is kept back again until its client comes back.
pub const RELAYED: Duration = Duration::from_secs(15);

/// How long a sleeping session is remembered.
pub const SLEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a legacy request may take before its stream begins: an answer that comes so soon leaves in one
/// piece with it. Nobody notices so short a time, and it saves a write and a wake-up. It is not shorter
/// because a timer that rings before the system's own next tick costs more than the call.
pub const STREAM_HEAD: Duration = Duration::from_millis(25);

/// How long a modern request may take before its response begins as a stream. Until then an answer
/// still decides about the status.
pub const BEGIN_STREAM: Duration = Duration::from_millis(500);

// HTTP: servers.

/// The wait before a broken stream is opened again, where the server wishes nothing; doubles.
pub const RECONNECT: Duration = Duration::from_millis(500);

/// The longest such wait.
pub const RECONNECT_LONGEST: Duration = Duration::from_secs(30);

/// The shortest wait before a stream is opened again, whatever the server wishes (`retry`).
pub const RETRY_LEAST: Duration = Duration::from_millis(100);

/// The longest, whatever it wishes.
pub const RETRY_MOST: Duration = Duration::from_secs(5 * 60);

/// Answers to questions of one server that wait until it can be reached again. One more: the oldest is dropped, and
/// noted.
pub const UNSENT_ANSWERS: usize = 100;

/// Bytes of such answers to one server. More: in the same way.
pub const UNSENT_BYTES: usize = 16 << 20;

/// How long such an answer is kept. Later: dropped, and noted; whoever asked has given up.
pub const UNSENT: Duration = Duration::from_secs(10 * 60);

// The store.

/// How long a process that says nothing is taken for alive.
pub const LEASE: Duration = Duration::from_secs(15);

/// How often it says so.
pub const RENEW: Duration = Duration::from_secs(5);

/// How often the mailbox is looked at, and tasks of other processes, while any are open.
pub const UPKEEP: Duration = Duration::from_millis(500);

/// How often a replica looks for records of processes that have ended while somebody waits for one; otherwise, and
/// where the end of a process is seen at once, every [`RENEW`].
pub const CLAIM: Duration = Duration::from_secs(1);

/// How long a session that begins waits until other replicas can find it. Longer, and it begins all the same.
pub const OPENING: Duration = Duration::from_secs(1);

/// How long a replica that will end takes new connections, so that every balancer sees that it is not ready.
pub const LEAVE: Duration = Duration::from_secs(2);

/// How often what is over is forgotten, while tasks are open.
pub const EXPIRE: Duration = Duration::from_secs(60);

/// Records in a store. One more: the one that ended longest ago goes; if none has ended, it is refused.
pub const RECORDS: u64 = 100_000;

/// Bytes in a store. More: as with records.
pub const STORE_BYTES: u64 = 2 << 30;

/// Mailbox messages to one record that its owner has not taken. One more is refused.
pub const MAILBOX: u64 = 1_000;

/// Notes about calls that took longer than a second. More: the oldest go.
pub const CALL_NOTES: u64 = 10_000;

/// Calls that wait for a person, in one process and in one store. One more is refused.
pub const HOLDS: u64 = 1_000;

/// Characters of a call's arguments that a person is shown before deciding; the rest is cut off.
pub const HELD_ARGUMENTS: usize = 4_000;

/// How often the store is asked whether a person has decided, while calls wait.
pub const HOLD_LOOK: Duration = Duration::from_millis(250);

// Callbacks.

/// Callbacks that one process sends at once. More wait in the store.
pub const CALLBACKS_SENDING: usize = 32;

/// Callbacks in a store. More: at the next sweep the parked ones go first, then the oldest.
pub const CALLBACKS: u64 = 100_000;

/// How often each process looks for callbacks that another one has left, or that are due again.
pub const CALLBACK_LOOK: Duration = Duration::from_secs(5);

/// How long a callback belongs to the process that took it. After that it is sent again.
pub const CALLBACK_CLAIM: Duration = Duration::from_secs(30);

/// How long one sending may take in all, well within the claim.
pub const CALLBACK_TIME: Duration = Duration::from_secs(20);

/// The wait before a callback is sent again; doubles.
pub const CALLBACK_BACKOFF: Duration = Duration::from_secs(5);

/// The longest such wait.
pub const CALLBACK_BACKOFF_MOST: Duration = Duration::from_secs(3600);

/// How long a callback is tried. After that it is parked.
pub const CALLBACK_TRIED: Duration = Duration::from_secs(24 * 3600);

/// How long a callback is kept, parked or not. After that it is forgotten.
pub const CALLBACK_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Bytes of an answer to a callback that are read. The rest is left.
pub const CALLBACK_ANSWER: usize = 64 << 10;

/// Lines of the audit log that are kept. More: the oldest go.
pub const AUDIT: u64 = 100_000;

/// Tools of a server of which something is remembered for hand-off. Of more nothing is.
pub const KNOWN_TOOLS: usize = 10_000;

/// Clients that are known by what they say of themselves. One more: the longest known is forgotten, and counts as
/// unknown until it says again who it is.
pub const IDENTITIES: usize = 256;

/// Requests that wait for one task. One more is refused.
pub const WAITERS: usize = 1_000;

/// Bytes of an idempotency key. A longer one is passed on and does nothing here.
pub const KEY: usize = 256;

/// Bytes of a call's arguments that are remembered under its key. Longer ones are remembered by a digest, and
/// are equal only byte for byte.
pub const KEY_ARGUMENTS: usize = 64 << 10;

/// Bytes of arguments that are remembered so in all. More: all further ones by a digest.
pub const KEYED_BYTES: usize = 32 << 20;

/// Requests that join one call, or wait to. One more: answered at once with `overloaded`.
pub const JOINED: usize = 1_000;

/// Bytes of answers whose client hung up, kept until it asks again or `resume-wait` is over. More: such an
/// answer is dropped, and a call that asks again runs again.
pub const UNFETCHED_BYTES: usize = 64 << 20;

/// Tasks that one subscription can ask for. More: the rest is not honoured.
pub const LISTENED_TASKS: usize = 100;

/// Questions of a server that one task shows. One more is refused.
pub const QUESTIONS: usize = 100;

/// Bytes of these that are stored with the task, so that other processes show them too. One that does not fit
/// is shown only by the process that runs the call.
pub const STORED_QUESTIONS: usize = 64 << 10;

/// Pages of a tool list that are read on behalf of one call whose headers its server missed. More: the call is
/// sent with what is known by then.
pub const TOOL_PAGES: usize = 100;

/// Bytes of a cursor that such a list is continued from. A longer one ends it in the same way.
pub const CURSOR: usize = 64 << 10;

/// Tools of a server whose arguments are mirrored in headers. More: the server misses the headers and says so.
pub const MIRRORED_TOOLS: usize = 10_000;

// Servers that have tasks of their own.

/// How often a server is asked about its task if it does not say.
pub const POLL: Duration = Duration::from_secs(1);

/// The shortest time between two such questions, whatever it says.
pub const POLL_LEAST: Duration = Duration::from_millis(100);

/// The longest, and how long a question may stay without an answer before it is put again.
pub const POLL_MOST: Duration = Duration::from_secs(60);

/// What is added to each such time at random, as a share of it, so that many tasks are not asked about at
/// one moment.
pub const POLL_JITTER: f64 = 0.1;

/// Tools of a server that are known to need a task, and those that are known to take none. More: the server is asked
/// plainly first, or refuses the task itself.
pub const TASK_TOOLS: usize = 10_000;

/// Records in one page of a list.
pub const PAGE: usize = 1_000;
