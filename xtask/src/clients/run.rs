//! One start of one client: an empty home, the scripted model, the probe, no network; and its records.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::list::Client;
use super::record::{PATIENCE_MS, Record};
use super::setup::Installed;
use super::sources;
use crate::interop::client::wait;
use crate::interop::{Places, setup as interop};
use crate::needs;

/// Clients under way at once. They mostly wait, but each start costs seconds of a processor.
const SIDE_BY_SIDE: usize = 24;
/// How much longer than its own deadline a driver may take.
const GRACE: Duration = Duration::from_secs(30);
/// A network with nothing but loopback, where the system lets us make one.
const OFFLINE: [&str; 6] =
    ["unshare", "--map-root-user", "--net", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""];

/// What all runs share.
pub struct Bench {
    pub places: Places,
    pub outlast: PathBuf,
    pub offline: bool,
    /// Read the records of the last run again, and run only what is missing.
    again: bool,
    free: Mutex<usize>,
    freed: Condvar,
}

/// How the client is to be started.
pub struct Plan<'a> {
    /// Names the run's folder.
    pub label: &'a str,
    pub scenario: String,
    pub answer_after: Option<Duration>,
    /// Flags of outlast; without them the client starts the probe itself.
    pub outlast: Option<&'a [String]>,
    pub obey: bool,
    /// The calls that the model makes instead of the probe's tool, and the server is `outlast doctor client`.
    pub doctor: Option<Value>,
    pub deadline: Duration,
}

impl Plan<'_> {
    pub fn direct(label: &str, scenario: impl Into<String>, deadline: Duration) -> Plan<'_> {
        Plan {
            label,
            scenario: scenario.into(),
            answer_after: None,
            outlast: None,
            obey: false,
            doctor: None,
            deadline,
        }
    }
}

impl Bench {
    pub fn prepare(outlast: Option<PathBuf>, again: bool) -> Result<Self> {
        needs::require(&["node", "npm", "python3", "venv"])?;
        let mut places = Places::find()?;
        places.installed.set_file_name("clients");
        fs::create_dir_all(places.installed.join("logs"))?;
        let outlast = match outlast {
            Some(path) => std::path::absolute(path)?,
            None => interop::build_outlast(&places)?.into(),
        };
        let offline = can_be_offline();
        if !offline {
            eprintln!(
                "no network namespace here (`unshare`, `ip`): the clients are not kept from the network"
            );
        }
        Ok(Self { places, outlast, offline, again, free: Mutex::new(SIDE_BY_SIDE), freed: Condvar::new() })
    }

    pub fn logs(&self) -> PathBuf {
        self.places.installed.join("logs")
    }

    fn take(&self) -> Slot<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Slot(self)
    }

    /// Runs the client once and reads what was written down.
    pub fn run(&self, client: &Client, installed: &Installed, plan: &Plan<'_>) -> Result<Record> {
        let _slot = self.take();
        let driver = Path::new(&client.driver).file_stem().unwrap_or_default();
        let folder = self.places.installed.join("runs").join(driver).join(plan.label);
        if self.again
            && let Ok(record) = Record::read(&folder)
        {
            return Ok(record);
        }
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("home"))?;
        let mut command = self.command(installed, plan, &folder)?;
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let ended = wait(child, plan.deadline + GRACE);
        Record::read(&folder).with_context(|| match ended {
            Ok(status) => format!("the driver ended with {status}"),
            Err(error) => format!("the driver was stopped: {error:#}"),
        })
    }

    fn command(&self, installed: &Installed, plan: &Plan<'_>, folder: &Path) -> Result<Command> {
        let prefix: &[&str] = if self.offline { &OFFLINE } else { &[] };
        let run = sources().join("run.mjs").display().to_string();
        let words: Vec<&str> = prefix.iter().copied().chain(["node", run.as_str()]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(&installed.driver).current_dir(folder).process_group(0);
        command.stdin(Stdio::null());
        command.stdout(File::create(folder.join("stdout"))?).stderr(File::create(folder.join("stderr"))?);
        command.env("CLIENT_SERVER", self.server(plan, folder)?.to_string());
        command.env("CLIENT_HOME", folder.join("home")).env("CLIENT_INSTALLED", &installed.folder);
        command.env("CLIENT_DEADLINE", plan.deadline.as_secs().to_string());
        command.env("MODEL_LOG", folder.join("model.jsonl"));
        command.env("MODEL_MODE", if plan.obey { "obey" } else { "plain" });
        if let Some(calls) = &plan.doctor {
            command.env("MODEL_CALLS", calls.to_string());
        }
        command.env("MODEL_LINGER_MS", "3000").env("MODEL_PATIENCE_MS", PATIENCE_MS.to_string());
        Ok(command)
    }

    /// What the client is told to start.
    fn server(&self, plan: &Plan<'_>, folder: &Path) -> Result<Value> {
        if plan.doctor.is_some() {
            return Ok(json!({ "command": self.outlast, "args": ["doctor", "client"], "env": {} }));
        }
        let node = which("node")?;
        let probe = sources().join("probe.mjs").display().to_string();
        let mut words = match plan.outlast {
            Some(flags) => {
                let outlast = [self.outlast.display().to_string(), "--state".to_owned()];
                let state = folder.join("state").display().to_string();
                [&outlast[..], &[state], flags, &["--".to_owned()]].concat()
            }
            None => Vec::new(),
        };
        words.extend([node, probe]);
        let mut env = json!({ "PROBE_LOG": folder.join("probe.jsonl"), "PROBE_SCENARIO": plan.scenario });
        if let Some(after) = plan.answer_after {
            env["PROBE_ANSWER_AFTER"] = after.as_millis().to_string().into();
        }
        Ok(json!({ "command": words[0], "args": words[1..], "env": env }))
    }
}

/// The right to run one more.
struct Slot<'a>(&'a Bench);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

fn can_be_offline() -> bool {
    let mut command = Command::new(OFFLINE[0]);
    command.args(&OFFLINE[1..]).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The whole path: a client may give its server another PATH.
fn which(name: &str) -> Result<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    Ok(found.with_context(|| format!("{name} is not on the PATH"))?.display().to_string())
}
