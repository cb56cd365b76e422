//! The presence of a peer, and its bytes.

/// The longest name of a peer, in bytes.
pub const PEER_NAME_BYTES_MAX: usize = 64;

/// The first byte of a presence. Messages and pieces have other first bytes.
const PRESENCE_KIND: u8 = 32;

/// The length of the header in bytes: the kind, the id of the protocol, the load, the flags, and the length of the name.
const HEADER_BYTES: usize = 1 + 8 + 4 + 1 + 1;

const DRAINING: u8 = 1;
const ENDING: u8 = 2;

/// The presence of a node or a gateway, as it broadcasts it. Its frame has the version of the bus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerPresence {
    /// Its name, as logs and errors show it. A name longer than [`PEER_NAME_BYTES_MAX`] bytes is cut between two characters.
    pub name: String,
    /// The id of the game and its version, as in connect tokens. Peers with another id are ignored.
    pub protocol_id: u64,
    /// Its load. Nodes send the load of their heartbeats, gateways the number of their clients.
    pub load: u32,
    /// It takes no more players.
    pub is_draining: bool,
    /// It ends now.
    pub is_ending: bool,
}

impl PeerPresence {
    /// Encodes it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let name = &self.name[..self.name.floor_char_boundary(PEER_NAME_BYTES_MAX)];
        let mut bytes = Vec::with_capacity(HEADER_BYTES + name.len());
        bytes.push(PRESENCE_KIND);
        bytes.extend_from_slice(&self.protocol_id.to_le_bytes());
        bytes.extend_from_slice(&self.load.to_le_bytes());
        let draining = if self.is_draining { DRAINING } else { 0 };
        bytes.push(draining | if self.is_ending { ENDING } else { 0 });
        // At most 64.
        bytes.push(name.len() as u8);
        bytes.extend_from_slice(name.as_bytes());
        bytes
    }

    /// Whether the first byte is that of a presence.
    pub(super) fn is_presence(bytes: &[u8]) -> bool {
        bytes.first() == Some(&PRESENCE_KIND)
    }

    /// Reads a presence; `None` if the bytes are invalid.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (header, name) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let flags = header[13];
        let is_valid = header[0] == PRESENCE_KIND
            && flags & !(DRAINING | ENDING) == 0
            && usize::from(header[14]) == name.len()
            && name.len() <= PEER_NAME_BYTES_MAX;
        if !is_valid {
            return None;
        }
        Some(Self {
            name: std::str::from_utf8(name).ok()?.to_owned(),
            protocol_id: u64::from_le_bytes(*header[1..].first_chunk()?),
            load: u32::from_le_bytes(*header[9..].first_chunk()?),
            is_draining: flags & DRAINING != 0,
            is_ending: flags & ENDING != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presence_survives_its_bytes_and_other_bytes_are_none() {
        for (name, flags) in [("", 0), ("n1", 1), ("größer", 2), ("n", 3)] {
            let presence = PeerPresence {
                name: name.to_owned(),
                protocol_id: u64::MAX - 7,
                load: 1 << 30,
                is_draining: flags & DRAINING != 0,
                is_ending: flags & ENDING != 0,
            };
            let bytes = presence.to_bytes();
            assert_eq!(PeerPresence::from_bytes(&bytes), Some(presence));
            let mut longer = bytes.clone();
            longer.push(0);
            assert_eq!(PeerPresence::from_bytes(&longer), None);
            for length in 0..bytes.len() {
                assert_eq!(PeerPresence::from_bytes(&bytes[..length]), None);
            }
            for (at, value) in [(0, 0), (13, 4)] {
                let mut changed = bytes.clone();
                changed[at] = value;
                assert_eq!(PeerPresence::from_bytes(&changed), None);
            }
        }
    }

    #[test]
    fn long_name_is_cut_between_letters() {
        let presence = PeerPresence {
            name: format!("n{}", "ß".repeat(40)),
            ..PeerPresence::default()
        };
        let read = PeerPresence::from_bytes(&presence.to_bytes()).unwrap();
        assert_eq!(read.name, format!("n{}", "ß".repeat(31)));
    }
}
