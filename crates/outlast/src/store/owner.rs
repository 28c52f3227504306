//! Which process owns a record, and whether it is gone.
//!
//! A process that says nothing for [`LEASE`] is gone. One on this machine is gone as soon as it does
//! not run any more; which process that was is told by its number *and* its start, because numbers
//! come again. Time is the time this machine was awake since it started: nobody sets that clock, and
//! a laptop that slept for an hour does not wake up with every owner taken for dead. Records from before
//! the start of the machine have no owner left.

use outlast_engine::Wall;
use outlast_engine::limits::LEASE;
use std::fmt;
use std::sync::Arc;

/// What a store must know of the world it runs in.
pub trait World: Send + Sync + fmt::Debug {
    /// Milliseconds this machine was awake since it started.
    fn now(&self) -> u64;
    /// The store's clock, which decides what is over: of a file it is the wall clock of the machine that the file is
    /// on, because all its processes have that one.
    fn wall(&self) -> Wall;
    /// Who we are; another owner with every call.
    fn owner(&self) -> Owner;
    /// Whether a process that we could see is still the one that began then. `true` if nobody can tell.
    fn runs(&self, pid: u32, started: u64) -> bool;
}

/// A process that owns records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// This machine since its last start.
    pub boot: Box<str>,
    /// Among which processes its number is the only one: containers count for themselves.
    pub space: u64,
    /// Its number.
    pub pid: u32,
    /// When it began.
    pub started: u64,
    /// Tells apart what owns records in one process.
    pub serial: u64,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}/{:016x}", self.boot, self.space, self.pid, self.started, self.serial)
    }
}

impl Owner {
    /// Reads what `Display` wrote.
    pub fn parse(name: &str) -> Option<Owner> {
        let mut parts = name.split('/');
        let owner = Owner {
            boot: parts.next()?.into(),
            space: parts.next()?.parse().ok()?,
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
            serial: u64::from_str_radix(parts.next()?, 16).ok()?,
        };
        parts.next().is_none().then_some(owner)
    }
}

/// Ourselves as an owner.
#[derive(Clone, Debug)]
pub struct Me {
    /// As it stands in records.
    pub name: Box<str>,
    owner: Owner,
    world: Arc<dyn World>,
}

impl Me {
    pub fn new(world: Arc<dyn World>) -> Me {
        let owner = world.owner();
        Me { name: owner.to_string().into(), owner, world }
    }

    /// What the store's clock shows.
    pub fn wall(&self) -> Wall {
        self.world.wall()
    }

    /// Until when we are taken for alive if we say something now.
    pub fn lease(&self) -> u64 {
        self.world.now() + LEASE.as_millis() as u64
    }

    /// Whether another owner is a process that we could see, and does not run any more. Of one on another machine
    /// nobody here can tell.
    pub fn sees_the_end_of(&self, name: &str) -> bool {
        Owner::parse(name).is_some_and(|other| {
            let seen = (&other.boot, other.space) == (&self.owner.boot, self.owner.space);
            seen && !self.world.runs(other.pid, other.started)
        })
    }

    /// Whether another owner, taken for alive until then, is gone.
    pub fn outlives(&self, name: &str, until: u64) -> bool {
        let Some(other) = Owner::parse(name) else { return until <= self.world.now() };
        if other.boot != self.owner.boot {
            return true;
        }
        let seen = other.space == self.owner.space;
        until <= self.world.now() || seen && !self.world.runs(other.pid, other.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug)]
    struct Fake(AtomicU64);

    impl World for Fake {
        fn now(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
        fn wall(&self) -> Wall {
            Wall(self.now())
        }
        fn owner(&self) -> Owner {
            owner("boot", 1, 10)
        }
        fn runs(&self, pid: u32, _: u64) -> bool {
            pid != 66
        }
    }

    fn owner(boot: &str, space: u64, pid: u32) -> Owner {
        Owner { boot: boot.into(), space, pid, started: 7, serial: 255 }
    }

    #[test]
    fn a_name_is_read_back() {
        let one = owner("a-b", 4_026_531_836, 1);
        assert_eq!(Owner::parse(&one.to_string()), Some(one));
        for name in ["", "a/1/2/3", "a/1/2/3/x", "a/1/2/3/4/5"] {
            assert_eq!(Owner::parse(name), None, "{name}");
        }
    }

    #[test]
    fn an_owner_is_gone_when_it_says_nothing_or_does_not_run() {
        let me = Me::new(Arc::new(Fake(AtomicU64::new(1_000))));
        let gone = |owner: Owner, until| me.outlives(&owner.to_string(), until);
        assert!(!gone(owner("boot", 1, 11), 1_001));
        assert!(gone(owner("boot", 1, 11), 1_000), "its lease has ended");
        assert!(gone(owner("boot", 1, 66), 9_999), "it does not run");
        assert!(!gone(owner("boot", 2, 66), 9_999), "another container's process is not ours to see");
        assert!(gone(owner("earlier", 1, 11), 9_999), "the machine was started again");
        let ended = |owner: Owner| me.sees_the_end_of(&owner.to_string());
        assert!(ended(owner("boot", 1, 66)) && !ended(owner("boot", 1, 11)));
        assert!(!ended(owner("boot", 2, 66)) && !ended(owner("another machine", 1, 66)));
        assert!(me.outlives("something else", 1_000));
        assert!(!me.outlives("something else", 1_001));
        assert_eq!(me.lease(), 16_000);
    }
}
