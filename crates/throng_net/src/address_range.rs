//! Ranges of IP addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// An address, or a network of addresses: `192.0.2.7`, `10.0.0.0/8`, `2001:db8::/32`. IPv4 addresses in IPv6 form count as IPv4.
/// Bits after the prefix are 0, so two texts of one network are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressRange {
    first: IpAddr,
    bits: u8,
}

/// The text is not an address or a network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("expected an address or a network, such as 192.0.2.7 or 10.0.0.0/8, found `{0}`")]
pub struct InvalidAddressRange(String);

impl AddressRange {
    /// The range of this prefix length that contains an address. A length beyond that of the address (32 or 128 bits) is the
    /// address alone.
    #[must_use]
    pub fn containing(address: IpAddr, bits: u8) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let bits = bits.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                let first = Ipv4Addr::from_bits(address.to_bits() & mask).into();
                Self { first, bits }
            }
            IpAddr::V6(address) => {
                let bits = bits.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                let first = Ipv6Addr::from_bits(address.to_bits() & mask).into();
                Self { first, bits }
            }
        }
    }

    /// The length of its prefix, in bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.bits
    }

    /// Whether it is a range of IPv4 addresses.
    #[must_use]
    pub const fn is_ipv4(self) -> bool {
        self.first.is_ipv4()
    }

    /// Whether it contains an address.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        let same_kind = self.is_ipv4() == address.to_canonical().is_ipv4();
        same_kind && Self::containing(address, self.bits) == self
    }
}

impl From<IpAddr> for AddressRange {
    fn from(address: IpAddr) -> Self {
        Self::containing(address, u8::MAX)
    }
}

impl FromStr for AddressRange {
    type Err = InvalidAddressRange;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidAddressRange(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let Some(bits) = bits else {
            return Ok(address.into());
        };
        let bits: u8 = bits.parse().map_err(|_| invalid())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        (bits <= most)
            .then(|| Self::containing(address, bits))
            .ok_or_else(invalid)
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}/{}", self.first, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_contains_its_addresses_alone() {
        for (range, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("10.1.2.3", "::ffff:10.1.2.3", "10.1.2.4"),
            ("0.0.0.0/0", "203.0.113.5", "::1"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
            ("::1", "::1", "::2"),
        ] {
            let range: AddressRange = range.parse().unwrap();
            assert!(range.contains(inside.parse().unwrap()), "{range} {inside}");
            assert!(
                !range.contains(outside.parse().unwrap()),
                "{range} {outside}"
            );
            assert_eq!(range.to_string().parse(), Ok(range));
        }
        let [one, other]: [AddressRange; 2] =
            ["10.1.2.3/8", "10.0.0.0/8"].map(|text| text.parse().unwrap());
        assert_eq!(one, other);
        for invalid in ["", "a", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1"] {
            assert!(invalid.parse::<AddressRange>().is_err(), "{invalid}");
        }
    }
}
