//! A PostgreSQL of Debian's for tests: in a folder of its own, on a free port, gone with the process that started it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Where Debian puts the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// Starts the server, and ends it by its number when nobody holds the pipe any more. PostgreSQL refuses to run as root: then everything is done as `postgres`.
const KEEPER: &str = r#"
set -eu
bin=$1; folder=$2; port=$3; shift 3
as() { if [ "$(id -u)" = 0 ]; then exec setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; else exec "$@"; fi; }
if [ "$(id -u)" = 0 ]; then chown -R postgres:postgres "$folder"; fi
cd /
if [ ! -d "$folder/data" ]; then
    (as "$bin/initdb" -D "$folder/data" -A scram-sha-256 -U outlast --pwfile="$folder/password" --no-sync) >"$folder/initdb.log" 2>&1
fi
as "$bin/postgres" -D "$folder/data" -p "$port" -k "$folder" -c listen_addresses=127.0.0.1 "$@" >>"$folder/log" 2>&1 </dev/null &
server=$!
echo started
while read -r line; do
    if [ "$line" = keep ]; then keep=yes; fi
done
kill -INT "$server" 2>/dev/null || true
wait "$server" 2>/dev/null || true
if [ "${keep:-no}" = no ]; then rm -rf "$folder"; fi
"#;

/// A running server.
pub struct Postgres {
    folder: PathBuf,
    /// Where it listens.
    pub port: u16,
    /// When this closes, the server ends.
    keeper: Option<(Child, ChildStdin)>,
    options: Vec<String>,
    databases: AtomicU32,
}

impl Postgres {
    /// The one server of this process, fast because it writes nothing safely.
    pub fn shared() -> &'static Postgres {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED
            .get_or_init(|| Postgres::start(&["fsync=off", "synchronous_commit=off", "full_page_writes=off"]))
    }

    /// A server with settings of its own.
    pub fn start(settings: &[&str]) -> Postgres {
        Postgres::start_with(settings, &[])
    }

    /// The same with files in its folder, such as a certificate.
    pub fn start_with(settings: &[&str], files: &[(&str, String)]) -> Postgres {
        let name = format!("outlast-postgres-{}-{}", std::process::id(), free_port());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder for the database");
        std::fs::write(folder.join("password"), "secret\n").expect("a password");
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("a file");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("its mode");
        }
        let places = files.iter().filter_map(|(name, _)| match name.rsplit_once('.') {
            Some((_, "crt")) => Some(format!("ssl_cert_file={}", folder.join(name).display())),
            Some((_, "key")) => Some(format!("ssl_key_file={}", folder.join(name).display())),
            _ => None,
        });
        let settings: Vec<String> = settings.iter().map(|one| (*one).to_owned()).chain(places).collect();
        let mut server = Postgres {
            folder,
            port: free_port(),
            keeper: None,
            options: settings.into_iter().flat_map(|one| ["-c".to_owned(), one]).collect(),
            databases: AtomicU32::new(0),
        };
        server.begin();
        server
    }

    /// Starts it, also again after [`Postgres::stop`].
    pub fn begin(&mut self) {
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "sh"])
            .arg(programs())
            .arg(&self.folder)
            .arg(self.port.to_string())
            .args(&self.options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh");
        let way = keeper.stdin.take().expect("a pipe");
        let mut started = [0; 8];
        let read = keeper.stdout.take().expect("a pipe").read_exact(&mut started);
        read.unwrap_or_else(|error| panic!("PostgreSQL does not start ({error}): {}", self.log()));
        self.keeper = Some((keeper, way));
        self.wait_until_it_answers();
    }

    /// Ends it; what it has stays.
    pub fn stop(&mut self) {
        if let Some((mut keeper, mut way)) = self.keeper.take() {
            let _ = way.write_all(b"keep\n");
            drop(way);
            let _ = keeper.wait();
        }
    }

    fn wait_until_it_answers(&self) {
        for _ in 0..600 {
            let ready = Command::new(programs().join("pg_isready"))
                .args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()])
                .status();
            if ready.is_ok_and(|status| status.success()) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        panic!("PostgreSQL does not answer: {}", self.log());
    }

    /// What it says.
    pub fn log(&self) -> String {
        let mut text = String::new();
        for name in ["initdb.log", "log"] {
            text += &std::fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        }
        text
    }

    /// The folder it is in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a database is, for a user of the name and the password.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://outlast:secret@127.0.0.1:{}/{database}", self.port)
    }

    /// A database of its own for one test: its URL.
    pub fn database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Runs something, and gives what it says.
    pub fn sql(&self, database: &str, text: &str) -> String {
        let database = database.rsplit('/').next().unwrap_or(database);
        let done = Command::new(programs().join("psql"))
            .env("PGPASSWORD", "secret")
            .args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(["-U", "outlast", "-d", database, "-c", text])
            .output()
            .expect("psql");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{text}: {said}");
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Where the newest version that is installed has its programs.
pub fn programs() -> PathBuf {
    let versions = std::fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, path): &(u32, PathBuf)| path.join("postgres").exists())
        .collect();
    found.sort();
    found
        .pop()
        .map(|(_, path)| path)
        .unwrap_or_else(|| panic!("no PostgreSQL in {VERSIONS}; `apt-get install postgresql` installs it"))
}

/// A port that nobody has, and that nobody else gets: the system gives these out only to who asks for one by its number,
/// so it is still free when a server has made its files, or is started again.
pub fn free_port() -> u16 {
    const FIRST: u32 = 20_000;
    const COUNT: u32 = 12_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at the same time begin at different ports.
    let begin = std::process::id().wrapping_mul(97);
    let ports = (0..COUNT).map(|_| FIRST + begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT);
    let mut ports = ports.filter_map(|port| u16::try_from(port).ok());
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}
