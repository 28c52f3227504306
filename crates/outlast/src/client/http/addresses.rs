//! How many connections one address may have open, so that nobody takes all places before saying who he is.
//!
//! Bound: `max-connections-per-address`; one more is answered with 429 and closed. What comes from one of
//! `trusted-proxies` has no bound, because a proxy stands for all its clients; neither has what comes from
//! this machine, where a proxy often is, unless a person wrote a bound.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The bound where nobody wrote one.
pub const USUAL: usize = 1000;

/// What is known of addresses.
#[derive(Debug, Default)]
pub struct Rules {
    /// `max-connections-per-address`, if a person wrote it.
    pub most: Option<usize>,
    /// `trusted-proxies`.
    pub trusted: Vec<Network>,
}

/// Addresses with their first bits in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: u128,
    mask: u128,
}

impl Network {
    /// Reads `10.0.0.1`, `10.0.0.0/8` or the like.
    pub fn parse(text: &str) -> Option<Network> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(ip, bits)| (ip, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let width: u32 = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(width), |bits| bits.parse().ok().filter(|bits| *bits <= width))?;
        let mask = u128::MAX.checked_shl(width - bits).unwrap_or(0);
        let mask = if address.is_ipv4() { mask | !u128::from(u32::MAX) } else { mask };
        Some(Network { address: number(address) & mask, mask })
    }

    /// Whether an address is one of them.
    pub fn holds(&self, address: IpAddr) -> bool {
        number(address) & self.mask == self.address
    }
}

/// An address as a number; those of IPv4 as IPv6 has them.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// The connections of each address.
#[derive(Debug)]
pub struct Addresses {
    most: usize,
    rules: Rules,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// The place of one connection.
#[derive(Debug)]
pub struct Place {
    addresses: Arc<Addresses>,
    address: IpAddr,
}

impl Addresses {
    /// Nobody is here yet.
    pub fn new(rules: Rules) -> Arc<Addresses> {
        let most = rules.most.unwrap_or(USUAL);
        Arc::new(Addresses { most, rules, open: Mutex::default() })
    }

    /// The bound.
    pub fn most(&self) -> usize {
        self.most
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a connection; none is needed where there is no bound. An error if all are taken.
    pub fn enter(self: &Arc<Addresses>, from: IpAddr) -> Result<Option<Place>, ()> {
        let from = from.to_canonical();
        let free = from.is_loopback() && self.rules.most.is_none();
        if free || self.rules.trusted.iter().any(|network| network.holds(from)) {
            return Ok(None);
        }
        let address = one_house(from);
        let mut open = self.lock();
        let count = open.entry(address).or_default();
        if *count >= self.most {
            return Err(());
        }
        *count += 1;
        Ok(Some(Place { addresses: self.clone(), address }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.addresses.lock().entry(self.address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// One house has 2^64 addresses of IPv6; they count as one.
fn one_house(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_so_many_places_and_gets_them_back() {
        let addresses = Addresses::new(Rules { most: Some(2), trusted: Vec::new() });
        let enter = |text| addresses.enter(ip(text));
        let first = enter("10.0.0.1").unwrap();
        let _second = enter("::ffff:10.0.0.1").unwrap();
        assert!(enter("10.0.0.1").is_err());
        assert!(enter("10.0.0.2").is_ok());
        drop(first);
        assert!(enter("10.0.0.1").is_ok());
        let _house = [enter("2001:db8::1").unwrap(), enter("2001:db8::ffff:2").unwrap()];
        assert!(enter("2001:db8::3").is_err());
        assert!(enter("2001:db8:0:1::3").is_ok());
        let _local = [enter("127.0.0.1").unwrap(), enter("127.0.0.1").unwrap()];
        assert!(enter("127.0.0.1").is_err(), "a bound that a person wrote counts here too");
    }

    #[test]
    fn proxies_and_this_machine_have_no_bound() {
        let trusted = vec![Network::parse("10.1.0.0/16").unwrap(), Network::parse("2001:db8::7").unwrap()];
        let addresses = Addresses::new(Rules { most: None, trusted });
        for address in ["127.0.0.1", "::1", "10.1.2.3", "::ffff:10.1.2.3", "2001:db8::7"] {
            assert!(matches!(addresses.enter(ip(address)), Ok(None)), "{address}");
        }
        for address in ["10.2.0.1", "2001:db8::8", "192.0.2.1"] {
            assert!(matches!(addresses.enter(ip(address)), Ok(Some(_))), "{address}");
        }
        assert!(addresses.lock().is_empty());
    }

    #[test]
    fn networks_are_read() {
        for odd in ["", "10.0.0.1/33", "10.0.0.1/", "::/129", "proxy.example", "10.0.0/8", "10.0.0.1/-1"] {
            assert_eq!(Network::parse(odd), None, "{odd}");
        }
        let all = Network::parse("0.0.0.0/0").unwrap();
        assert!(all.holds(ip("192.0.2.1")) && !all.holds(ip("2001:db8::1")));
        assert!(Network::parse("::/0").unwrap().holds(ip("2001:db8::1")));
    }
}
