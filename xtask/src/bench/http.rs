//! The figures of Streamable HTTP, in both eras.
//!
//! The driver writes and reads HTTP/1.1 by hand on plain sockets: what it costs is in both sides of
//! every ratio, so it costs as little as possible.
//!
//! Map: `site` is what runs, `client` and `reply` are the driver's HTTP, `crowd` is many connections
//! at once; `measures` and `streams` take the figures.

pub mod client;
pub mod crowd;
mod measures;
mod reply;
mod site;
mod streams;

use super::instructions;
use super::measures::Measure;
use super::targets::Target;

pub static MEASURES: [Measure; 8] = [
    Measure { name: "round trip", targets: &Target::ALL, take: measures::round_trip },
    Measure { name: "calls in flight", targets: &Target::ALL, take: measures::in_flight },
    Measure { name: "large payloads", targets: &Target::ALL, take: measures::large },
    // A pipe on one side and a socket on the other: there is no bare copy to compare with.
    Measure {
        name: "stdio to HTTP",
        targets: &[Target::Direct, Target::Outlast],
        take: measures::from_stdio,
    },
    Measure { name: "HTTP to HTTP", targets: &Target::ALL, take: measures::to_http },
    // Directly there is no process in the middle whose memory could be read.
    Measure { name: "memory", targets: &[Target::Floor, Target::Outlast], take: streams::memory },
    // The floor would need two descriptors and two threads for each.
    Measure { name: "open streams", targets: &[Target::Direct, Target::Outlast], take: streams::pending },
    Measure { name: instructions::METRICS, targets: &[Target::Outlast], take: instructions::metrics },
];
