//! Which addresses may be called back: those that the whole world can reach, and others only if a person lists them.
//!
//! A name can lead anywhere, and what listens on a private address often trusts whoever comes. So an address must be
//! known to be public; what is not known is refused.

use crate::client::http::addresses::Network;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The addresses of a name that may be called; the error is for people. Without TLS only listed ones may be.
pub fn callable(
    found: impl Iterator<Item = SocketAddr>,
    allowed: &[Network],
    encrypted: bool,
) -> Result<Vec<SocketAddr>, String> {
    let (mut callable, mut refused) = (Vec::new(), None);
    for address in found {
        let ip = address.ip().to_canonical();
        let listed = allowed.iter().any(|network| network.holds(ip));
        if listed || encrypted && is_public(ip) {
            callable.push(address);
        } else {
            refused.get_or_insert(ip);
        }
    }
    match refused {
        _ if !callable.is_empty() => Ok(callable),
        Some(ip) if encrypted => Err(format!("{ip} is not a public address, and `allow` does not list it")),
        Some(ip) => Err(format!("{ip} is called without TLS only if `allow` lists it")),
        None => Err("the name has no address".into()),
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// What the registry of special addresses (RFC 6890 and after) does not take.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127 | 224.., ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    )
}

/// What is given out at all (`2000::/3`), less what the registry takes of it. Of addresses that stand for one of IPv4
/// that one counts.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match parts {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(v4(high, low)),
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 443)).collect()
    }

    #[test]
    fn only_what_the_world_can_reach_is_public() {
        for public in ["1.1.1.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "223.255.255.255", "2606:4700::1"]
        {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for public in ["64:ff9b::101:101", "2002:101:101::1", "2a00::1"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.170",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12:3456::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "3fff::1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::1",
            "100::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }

    #[test]
    fn an_address_of_ipv4_is_one_however_it_is_written() {
        let why = callable(found(&["::ffff:127.0.0.1"]).into_iter(), &[], true).unwrap_err();
        assert_eq!(why, "127.0.0.1 is not a public address, and `allow` does not list it");
        assert!(callable(found(&["::ffff:1.1.1.1"]).into_iter(), &[], true).is_ok());
    }

    #[test]
    fn listed_addresses_are_called_and_others_of_the_same_name_are_left_out() {
        let allowed = [Network::parse("10.0.0.0/8").unwrap(), Network::parse("::1").unwrap()];
        let all = found(&["127.0.0.1", "10.1.2.3", "::1", "1.1.1.1"]);
        assert_eq!(callable(all.iter().copied(), &allowed, true).unwrap(), all[1..]);
        assert_eq!(callable(all.iter().copied(), &allowed, false).unwrap(), all[1..3]);
        let why = callable(all[3..].iter().copied(), &allowed, false).unwrap_err();
        assert_eq!(why, "1.1.1.1 is called without TLS only if `allow` lists it");
        assert_eq!(callable([].into_iter(), &[], true).unwrap_err(), "the name has no address");
    }
}
