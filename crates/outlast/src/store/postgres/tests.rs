//! The suite on a real PostgreSQL, and what only a database can do.

use super::*;
use crate::store::conformance::{Bench, new, ticket};
use crate::store::desk::{Desk, Ledger, Reader};
use crate::store::owner::World;
use crate::store::{Machine, Store};
use outlast_engine::store::{Found, Name, Usage};
use outlast_testkit::postgres::Postgres;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A clock that stands where a test puts it.
const FAKE_CLOCK: &str = "
CREATE TABLE public.fake (at bigint NOT NULL); INSERT INTO public.fake VALUES (0);
CREATE OR REPLACE FUNCTION outlast.clock() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT at FROM public.fake';
CREATE OR REPLACE FUNCTION outlast.began() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT -1000000::bigint';
CREATE OR REPLACE FUNCTION public.set(bigint) RETURNS bigint LANGUAGE sql
    AS 'UPDATE public.fake SET at = $1 RETURNING at'";

/// A database with our tables and a fake clock, copied for each test.
fn template() -> &'static str {
    static TEMPLATE: OnceLock<String> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let server = Postgres::shared();
        let url = server.database();
        reach(&Database::parse(&url).unwrap()).unwrap();
        server.sql(&url, FAKE_CLOCK);
        url.rsplit('/').next().unwrap().to_owned()
    })
}

/// One database for all processes of a test.
pub struct InDatabase(String);

impl Default for InDatabase {
    fn default() -> InDatabase {
        let server = Postgres::shared();
        let template = template();
        let url = server.database();
        let name = url.rsplit('/').next().unwrap();
        server.sql("postgres", &format!("DROP DATABASE {name}; "));
        server.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE {template}"));
        InDatabase(url)
    }
}

impl Bench for InDatabase {
    fn open(&self, world: Arc<dyn World>, bounds: Bounds) -> Store {
        let database = Database::parse(&self.0).unwrap();
        let clock = Clock { line: Line::new(database.clone(), Me::new(world.clone())), world: world.clone() };
        let writer = Writer::new(database, Me::new(world), bounds);
        Store(Desk::start(move || Box::new(Clocked { clock, writer })).unwrap())
    }
}

/// Puts the database's clock where the test's is.
struct Clock {
    line: Line,
    world: Arc<dyn World>,
}

impl Clock {
    fn set(&mut self) {
        let runtime = self.line.take_runtime().unwrap();
        runtime.block_on(async {
            self.line.connect().await.unwrap();
            let set = Statement::new("SELECT public.set($1)").int(self.world.wall().0);
            self.line.connection.as_ref().unwrap().rows(&set).await.unwrap();
        });
        self.line.runtime = Some(runtime);
    }
}

/// A writer whose database has the test's clock.
struct Clocked {
    clock: Clock,
    writer: Writer,
}

impl Reader for Clocked {
    fn find(&mut self, query: &Query) -> Loaded {
        self.clock.set();
        self.writer.find(query)
    }
}

impl Ledger for Clocked {
    fn commit(&mut self, group: &[Vec<Write>]) -> Vec<Stored> {
        self.clock.set();
        self.writer.commit(group)
    }

    fn readers(&self) -> Vec<Box<dyn Reader>> {
        Vec::new()
    }
}

/// A writer on a database with its own clock.
fn writer(url: &str) -> Writer {
    Writer::new(Database::parse(url).unwrap(), Me::new(Arc::new(Machine::new())), Bounds::shared())
}

fn create(number: u8) -> Vec<Write> {
    vec![Write::Create(new(number).into())]
}

fn says(outcome: &Stored) -> String {
    outcome.as_ref().unwrap_err().to_string()
}

/// Whoever ends in order says so: nobody waits for its lease, not even while the database is so young that silence says
/// nothing.
#[test]
fn what_is_left_in_order_is_taken_over_at_once() {
    let server = Postgres::start(&["fsync=off"]);
    let url = server.database();
    let (mut ends, mut lives) = (writer(&url), writer(&url));
    assert!(ends.commit(&[create(1)])[0].is_ok());
    let claims = |writer: &mut Writer| {
        let outcome = writer.commit(&[vec![Write::Claim { server: "files".into() }]]).remove(0).unwrap();
        let [Done::Claimed(heads)] = &outcome.done[..] else { panic!("{outcome:?}") };
        heads.len()
    };
    assert_eq!(claims(&mut lives), 0);
    ends.leave();
    assert_eq!(claims(&mut lives), 1);
}

/// What is under way when the database goes away waits for it, and is written once.
#[test]
fn a_restart_of_the_database_costs_no_write() {
    let mut server = Postgres::start(&["fsync=off"]);
    let url = server.database();
    let mut writer = writer(&url);
    assert!(writer.commit(&[create(1)])[0].is_ok());
    server.stop();
    let (sender, receiver) = std::sync::mpsc::channel();
    let waits = std::thread::spawn(move || {
        sender.send(()).unwrap();
        let outcomes = writer.commit(&[create(2), create(3)]);
        (writer, outcomes)
    });
    receiver.recv().unwrap();
    server.begin();
    let (mut writer, outcomes) = waits.join().unwrap();
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let Found::Usage(usage) = writer.find(&Query::Usage).unwrap() else { panic!() };
    assert_eq!(usage.records, 3);
    // Connections are ended one by one, too.
    let others = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'outlast'";
    server.sql("postgres", others);
    assert!(writer.commit(&[create(4)])[0].is_ok());
    assert!(matches!(writer.find(&Query::Record(ticket(4))), Ok(Found::Record(Some(_)))));
}

/// A commit whose answer is lost has happened, or not; the database tells which.
#[test]
fn a_commit_whose_answer_was_lost_is_made_once() {
    let server = Postgres::shared();
    let url = server.database();
    let mut writer = writer(&url);
    let outcomes = writer.commit(&[create(1)]);
    // As if the connection had been lost before the answer.
    writer.unsure = Some(outcomes.clone());
    assert_eq!(writer.commit(&[create(1)]), outcomes, "it has happened");
    writer.unsure = Some(outcomes);
    writer.turn += 1;
    assert!(writer.commit(&[create(2)])[0].is_ok(), "it has not happened");
    let Found::Usage(usage) = writer.find(&Query::Usage).unwrap() else { panic!() };
    assert_eq!(usage.records, 2);
    // Whoever was told that it was not written can rely on that.
    writer.unsure = Some(Vec::new());
    writer.give_up(&[create(2)]);
    assert!(writer.commit(&[create(3)])[0].is_ok());
    assert!(matches!(writer.find(&Query::Record(ticket(2))), Ok(Found::Record(None))));
    let Found::Usage(usage) = writer.find(&Query::Usage).unwrap() else { panic!() };
    assert_eq!(usage.records, 2);
}

/// A newer outlast may come while this one runs. One that says that we can go on is no reason to stop.
#[test]
fn nothing_is_written_into_tables_that_became_too_new() {
    let server = Postgres::shared();
    let url = server.database();
    let mut writer = writer(&url);
    assert!(writer.commit(&[create(1)])[0].is_ok());
    server.sql(&url, "UPDATE outlast.format SET version = 7, oldest = 1");
    assert!(writer.commit(&[create(2)])[0].is_ok());
    reach(&Database::parse(&url).unwrap()).unwrap();
    server.sql(&url, "UPDATE outlast.format SET version = 8, oldest = 8");
    let why = says(&writer.commit(&[create(3)])[0]);
    assert!(
        why.contains("was changed by a newer outlast (format 8, this one knows 3); update this one"),
        "{why}"
    );
    let why = reach(&Database::parse(&url).unwrap()).unwrap_err();
    assert!(why.contains("format 8"), "{why}");
}

/// Whoever comes at the same time waits for the tables, and finds them.
#[test]
fn replicas_that_start_together_make_the_tables_once() {
    let url = Postgres::shared().database();
    let start = || {
        let database = Database::parse(&url).unwrap();
        std::thread::spawn(move || shared_key(&database, &crate::random::bytes::<32>()).unwrap())
    };
    let keys: Vec<Vec<u8>> = (0..6).map(|_| start()).map(|thread| thread.join().unwrap()).collect();
    assert!(keys.windows(2).all(|pair| pair[0] == pair[1]));
}

/// A statement that a full disk stops says so, and those beside it are written.
#[test]
fn a_full_disk_takes_what_fits_and_says_so_of_the_rest() {
    let server = Postgres::shared();
    let url = server.database();
    let mut writer = writer(&url);
    assert!(writer.commit(&[create(1)])[0].is_ok());
    let full = "CREATE FUNCTION outlast.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF length(NEW.bytes) > 1000 THEN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END IF;
            RETURN NEW; END $$;
        CREATE TRIGGER is_full BEFORE INSERT ON outlast.requests FOR EACH ROW EXECUTE FUNCTION outlast.full()";
    server.sql(&url, full);
    let large = outlast_engine::record::New { request: vec![0; 2_000].into(), ..new(3) };
    let outcomes = writer.commit(&[create(2), vec![Write::Create(large.into())], create(4)]);
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok(), "{outcomes:?}");
    let why = says(&outcomes[1]);
    assert!(why.contains("is full; make room there; meanwhile calls that ask for a task"), "{why}");
}

/// Nobody waits long for what goes, and it goes all the same.
#[test]
fn what_is_over_goes_in_batches() {
    let url = Postgres::shared().database();
    let mut writer = writer(&url);
    let over = |number| Write::Append {
        stream: Name(format!("stream {number}").into()),
        keep: Duration::ZERO,
        events: vec![(1, "one".into())],
    };
    for hundreds in 0..15 {
        let group: Vec<_> = (0..100).map(|number| vec![over(hundreds * 100 + number)]).collect();
        assert!(writer.commit(&group).iter().all(Result::is_ok));
    }
    let swept = writer.commit(&[vec![Write::Expire]]).remove(0).unwrap();
    assert_eq!(swept.done, [Done::Removed(1_000)]);
    assert!(writer.commit(&[vec![Write::Renew]])[0].is_ok());
    assert_eq!(writer.find(&Query::Usage), Ok(Found::Usage(Usage::default())));
}

/// The certificate of a database must be one that we trust, and for its name.
#[test]
fn the_certificate_of_a_database_is_checked() {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap();
    let files = [("server.crt", made.cert.pem()), ("server.key", made.signing_key.serialize_pem())];
    let server = Postgres::start_with(&["fsync=off", "ssl=on"], &files);
    let url = server.database();
    let trusted = server.folder().join("server.crt");
    let secure = format!("{url}?sslmode=verify-full&sslrootcert={}", trusted.display());
    reach(&Database::parse(&secure).unwrap()).unwrap();
    let why = reach(&Database::parse(&format!("{url}?sslmode=require")).unwrap()).unwrap_err();
    assert!(why.contains("the certificate of 127.0.0.1 is"), "{why}");
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), other.cert.pem()).unwrap();
    let wrong = format!("{url}?sslmode=verify-full&sslrootcert={}", file.path().display());
    assert!(reach(&Database::parse(&wrong).unwrap()).is_err());
    let plain = Postgres::shared();
    let why = reach(&Database::parse(&format!("{}?sslmode=require", plain.database())).unwrap()).unwrap_err();
    assert!(why.contains("sslmode=disable"), "{why}");
}

/// In transaction mode each transaction may be on another connection: nothing is prepared, and all works.
#[test]
fn a_pool_that_changes_connections_is_noticed() {
    let server = Postgres::shared();
    let url = server.database();
    let pool = Pool::start(server);
    let through = url.replace(&format!(":{}/", server.port), &format!(":{}/", pool.port));
    let mut writers = [writer(&through), writer(&through), writer(&url)];
    for round in 0..5u8 {
        for (at, writer) in writers.iter_mut().enumerate() {
            let number = 1 + round * 3 + at as u8;
            let outcomes = writer.commit(&[create(number), vec![Write::Renew, Write::Collect]]);
            assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
            assert!(matches!(writer.find(&Query::Record(ticket(number))), Ok(Found::Record(Some(_)))));
        }
    }
    let own = writers.each_ref().map(|writer| writer.line.connection.as_ref().unwrap().own);
    assert_eq!(own, [false, false, true]);
}

/// PgBouncer from Debian; gone with the pipe that it was started with.
struct Pool {
    port: u16,
    keeper: std::process::Child,
}

impl Pool {
    fn start(server: &Postgres) -> Pool {
        let port = outlast_testkit::postgres::free_port();
        let folder = server.folder().join(format!("pool-{port}"));
        std::fs::create_dir(&folder).unwrap();
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = plain\nauth_file = {}/users\npool_mode = transaction\n\
             default_pool_size = 2\n",
            server.port,
            folder.display()
        );
        std::fs::write(folder.join("pool.ini"), settings).unwrap();
        std::fs::write(folder.join("users"), "\"outlast\" \"secret\"\n").unwrap();
        let script = "as() { if [ \"$(id -u)\" = 0 ]; then exec setpriv --reuid=postgres --regid=postgres \
            --clear-groups \"$@\"; else exec \"$@\"; fi; }
            (as pgbouncer -q \"$1\") </dev/null >\"$2/log\" 2>&1 & pool=$!
            while read -r line; do :; done; kill \"$pool\"";
        let keeper = std::process::Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(folder.join("pool.ini"))
            .arg(&folder)
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let answers = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!(
            outlast_testkit::peer::wait_until(outlast_testkit::peer::LIMIT, answers),
            "is pgbouncer installed?"
        );
        Pool { port, keeper }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
