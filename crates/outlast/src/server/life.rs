//! Signs of life of a server's process tree, read from the system.
//!
//! Read only around a limit that is about to fire, never on the fast path, and on a thread of its own: to
//! look at every process takes a while, and no call waits for that. Who asks while it looks shares the
//! next look with all others who do.

use crate::sys::proc::{self, Root, Table, Used};
use outlast_engine::Mono;
use outlast_engine::life::Sample;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Called once, on the sampler's thread.
pub type Reply = Box<dyn FnOnce(Option<Signs>) + Send>;

/// What everything below one process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    used: Used,
    /// Differs when a process came or went, whatever the order.
    processes: u64,
}

impl Signs {
    /// The same as the engine knows it, with when it was read and what was read on stderr.
    pub fn sample(self, at: Mono, stderr: u64) -> Sample {
        let Signs { used: Used { cpu, bytes, switches }, processes } = self;
        Sample { at, cpu, bytes, switches, stderr, processes }
    }
}

/// The way to the thread that looks; there is none before somebody asks.
#[derive(Debug, Default)]
pub struct Sampler(Option<Sender<Ask>>);

struct Ask {
    root: Root,
    reply: Reply,
}

impl Sampler {
    /// Asks for the signs of everything below `root`; they are `None` where nothing can be read. False if
    /// nobody will answer, because there can be no thread.
    pub fn ask(&mut self, root: Root, reply: Reply) -> bool {
        if self.0.is_none() {
            let (way, asks) = channel();
            let thread = std::thread::Builder::new().name("signs".into()).spawn(move || look(&asks));
            self.0 = thread.is_ok().then_some(way);
        }
        self.0.as_ref().is_some_and(|way| way.send(Ask { root, reply }).is_ok())
    }
}

/// The thread's life: one look for all who have asked by then.
fn look(asks: &Receiver<Ask>) {
    while let Ok(first) = asks.recv() {
        let asked: Vec<Ask> = std::iter::once(first).chain(asks.try_iter()).collect();
        let table = Table::read();
        for Ask { root, reply } in asked {
            reply(signs(&table, &root));
        }
    }
}

fn signs(table: &Table, root: &Root) -> Option<Signs> {
    let tree = table.below(root);
    let used = tree.into_iter().filter_map(|pid| Some((pid, proc::used(pid)?)));
    used.fold(None, |signs: Option<Signs>, (pid, used)| {
        let mut signs = signs.unwrap_or_default();
        signs.used.cpu += used.cpu;
        signs.used.bytes += used.bytes;
        signs.used.switches += used.switches;
        let mark = (pid.as_raw() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        signs.processes = signs.processes.wrapping_add(mark);
        Some(signs)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::proc::Pid;
    use std::sync::mpsc::sync_channel;

    /// However many ask, the thread answers each, and of what has no process it says nothing.
    #[test]
    fn everybody_who_asks_is_answered() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let (told, answers) = sync_channel(100);
        let mut sampler = Sampler::default();
        for root in [Pid::this(), Pid::from_raw(i32::MAX)].into_iter().cycle().take(20) {
            let told = told.clone();
            assert!(sampler.ask(root, Box::new(move |signs| told.send((root, signs)).unwrap())));
        }
        for (root, signs) in answers.iter().take(20) {
            assert_eq!(signs.is_some(), root == Pid::this());
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
