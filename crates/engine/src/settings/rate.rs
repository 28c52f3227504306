//! How many calls may begin in a time.

use super::BadValue;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

const UNITS: [(&str, u64); 3] = [("s", 1), ("m", 60), ("h", 3600)];

/// So many in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// How many; at least one.
    pub calls: u32,
    /// In which time.
    pub every: Duration,
}

impl Rate {
    /// Reads `10/s`, `600/m`, `5000/h`.
    pub fn parse(text: &str) -> Result<Rate, BadValue> {
        let wrong = || BadValue(format!("`{text}` is not a rate; write 10/s, 600/m, 5000/h or off"));
        let (calls, unit) = text.split_once('/').ok_or_else(wrong)?;
        let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?;
        let calls = calls.trim().parse().ok().filter(|calls| *calls > 0).ok_or_else(wrong)?;
        Ok(Rate { calls, every: Duration::from_secs(*seconds) })
    }

    /// Between two that begin evenly.
    pub fn interval(&self) -> Duration {
        self.every / self.calls.max(1)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().find(|(_, seconds)| *seconds == self.every.as_secs());
        write!(to, "{}/{}", self.calls, unit.map_or("s", |(name, _)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_as_it_is_written() {
        for text in ["10/s", "600/m", "1/h"] {
            assert_eq!(Rate::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Rate::parse("4/s").unwrap().interval(), Duration::from_millis(250));
        for text in ["10", "0/s", "/s", "10/d", "-1/s", "1.5/s", ""] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
    }
}
