//! What is saved of a player, and goes with it to another node.

use glam::Vec2;
use throng_cluster::MatchId;

/// The version of the bytes, of players outside of matches and in one. Programs that do not know the second can still read the first.
const VERSION: u8 = 1;
const VERSION_IN_MATCH: u8 = 2;

/// The value of [`Place`](super::Place) in a waiting room.
pub(in crate::cluster) const PLACE_WAITING: u16 = u16::MAX;

/// The value of [`Place`](super::Place) in a match.
pub(in crate::cluster) const PLACE_MATCH: u16 = u16::MAX - 1;

/// A player.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cluster) struct TravellerRecord {
    pub gold: u32,
    /// The name of its scene, and its place there in metres. Of a player in a match, those that it returns to.
    pub scene: String,
    pub at_m: Vec2,
    /// The match that it is in, or on its way to.
    pub in_match: Option<MatchId>,
}

impl TravellerRecord {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![if self.in_match.is_some() {
            VERSION_IN_MATCH
        } else {
            VERSION
        }];
        bytes.extend_from_slice(&self.gold.to_le_bytes());
        for part in self.at_m.to_array() {
            bytes.extend_from_slice(&part.to_le_bytes());
        }
        if let Some(id) = self.in_match {
            bytes.extend_from_slice(&id.epoch.to_le_bytes());
            bytes.extend_from_slice(&id.nth.to_le_bytes());
        }
        bytes.extend_from_slice(self.scene.as_bytes());
        bytes
    }

    /// Reads a record; `None` if the bytes are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<13>()?;
        let part = |at: usize| header[at..].first_chunk().copied();
        let at_m = Vec2::new(f32::from_le_bytes(part(5)?), f32::from_le_bytes(part(9)?));
        let (in_match, scene) = match header[0] {
            VERSION => (None, rest),
            VERSION_IN_MATCH => {
                let (epoch, rest) = rest.split_first_chunk()?;
                let (nth, rest) = rest.split_first_chunk()?;
                let (epoch, nth) = (u64::from_le_bytes(*epoch), u64::from_le_bytes(*nth));
                (Some(MatchId { epoch, nth }), rest)
            }
            _ => return None,
        };
        if !at_m.is_finite() {
            return None;
        }
        Some(Self {
            gold: u32::from_le_bytes(part(1)?),
            scene: String::from_utf8(scene.to_vec()).ok()?,
            at_m,
            in_match,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_survives_its_bytes_and_other_bytes_are_none() {
        let id = MatchId { epoch: 3, nth: 900 };
        for (in_match, header_bytes) in [(None, 13), (Some(id), 29)] {
            let record = TravellerRecord {
                gold: 1 << 20,
                scene: "größe".to_owned(),
                at_m: Vec2::new(1.5, 70.25),
                in_match,
            };
            let bytes = record.to_bytes();
            assert_eq!(TravellerRecord::from_bytes(&bytes), Some(record));
            for length in 0..header_bytes {
                assert_eq!(TravellerRecord::from_bytes(&bytes[..length]), None);
            }
            let mut other = bytes;
            other[0] = 3;
            assert_eq!(TravellerRecord::from_bytes(&other), None);
        }
    }
}
