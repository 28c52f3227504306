//! The machine the figures are from, and the one core that everything is put on.

use std::fmt;

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;

/// Above this load other work most likely shares our core.
const QUIET: f64 = 0.5;

pub struct Machine {
    pub processor: String,
    pub kernel: String,
    pub core: usize,
    pub load: f64,
}

/// Puts this process on one core; every process started from now on inherits it.
///
/// The last core, because interrupts and other programs tend to the first.
pub fn pin_to_one_core() -> Result<Machine> {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).context("cannot ask which cores we may use")?;
    let core = (0..CpuSet::count())
        .rev()
        .find(|core| allowed.is_set(*core).unwrap_or(false))
        .context("no core is allowed to us")?;
    let mut set = CpuSet::new();
    set.set(core)?;
    sched_setaffinity(this, &set).with_context(|| format!("cannot pin to core {core}"))?;
    Ok(Machine {
        processor: processor(),
        kernel: first_word("/proc/sys/kernel/osrelease"),
        core,
        load: first_word("/proc/loadavg").parse().unwrap_or(0.0),
    })
}

/// Ten thousand connections need as many descriptors, here and in the programs we start.
pub fn allow_many_files() -> Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most).context("cannot raise the limit of open files")
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':'));
    name.map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.trim().to_owned())
}

fn first_word(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { processor, kernel, core, load } = self;
        write!(f, "{processor}, Linux {kernel}, pinned to core {core}")?;
        if *load > QUIET {
            write!(f, "\nnote: the load average is {load}; other work makes the figures noisy")?;
        }
        Ok(())
    }
}
