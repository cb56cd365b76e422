//! What is saved of a player, and goes with it to another node.

use glam::Vec2;

/// The version of the bytes.
const VERSION: u8 = 1;

/// The value of [`Place`](super::Place) in a waiting room.
pub(in crate::cluster) const PLACE_WAITING: u16 = u16::MAX;

/// A player.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cluster) struct TravellerRecord {
    pub gold: u32,
    /// The name of its scene, and its place there in metres.
    pub scene: String,
    pub at_m: Vec2,
}

impl TravellerRecord {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.gold.to_le_bytes());
        for part in self.at_m.to_array() {
            bytes.extend_from_slice(&part.to_le_bytes());
        }
        bytes.extend_from_slice(self.scene.as_bytes());
        bytes
    }

    /// Reads a record; `None` if the bytes are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (header, scene) = bytes.split_first_chunk::<13>()?;
        let part = |at: usize| header[at..].first_chunk().copied();
        let at_m = Vec2::new(f32::from_le_bytes(part(5)?), f32::from_le_bytes(part(9)?));
        if header[0] != VERSION || !at_m.is_finite() {
            return None;
        }
        Some(Self {
            gold: u32::from_le_bytes(part(1)?),
            scene: String::from_utf8(scene.to_vec()).ok()?,
            at_m,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_survives_its_bytes_and_other_bytes_are_none() {
        let record = TravellerRecord {
            gold: 1 << 20,
            scene: "größe".to_owned(),
            at_m: Vec2::new(1.5, 70.25),
        };
        let bytes = record.to_bytes();
        assert_eq!(TravellerRecord::from_bytes(&bytes), Some(record));
        for length in 0..13 {
            assert_eq!(TravellerRecord::from_bytes(&bytes[..length]), None);
        }
        let mut other = bytes;
        other[0] = 2;
        assert_eq!(TravellerRecord::from_bytes(&other), None);
    }
}
