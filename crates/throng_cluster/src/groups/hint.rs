//! The bytes of a hint: players whose groups have changed.

use throng_core::ids::PlayerId;

use crate::request::GroupKind;

const HINT: u8 = 24;

/// A member that has left, and all members of a group of the largest kind.
const PLAYERS_MAX: usize = GroupKind::Guild.members_max() + 1;

pub(super) fn hint_to_bytes(players: impl IntoIterator<Item = PlayerId>) -> Vec<u8> {
    let mut bytes = vec![HINT];
    for player in players.into_iter().take(PLAYERS_MAX) {
        bytes.extend_from_slice(&player.0.to_le_bytes());
    }
    bytes
}

/// Reads a hint; `None` if the bytes are none.
pub(super) fn hint_from_bytes(bytes: &[u8]) -> Option<Vec<PlayerId>> {
    let (&HINT, players) = bytes.split_first()? else {
        return None;
    };
    let (players, rest) = players.as_chunks();
    let is_valid = rest.is_empty() && (1..=PLAYERS_MAX).contains(&players.len());
    let players = players.iter();
    let players = players.map(|player| PlayerId(u64::from_le_bytes(*player)));
    is_valid.then(|| players.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_survive_their_bytes_and_others_are_none() {
        let players: Vec<PlayerId> = (0..600).map(|nth| PlayerId(u64::MAX - nth)).collect();
        for count in [1, 2, PLAYERS_MAX] {
            let bytes = hint_to_bytes(players[..count].iter().copied());
            let read = hint_from_bytes(&bytes);
            assert_eq!(read.as_deref(), Some(&players[..count]));
            assert_eq!(hint_from_bytes(&bytes[..bytes.len() - 1]), None);
        }
        let mut long = hint_to_bytes(players);
        assert_eq!(long.len(), 1 + 8 * PLAYERS_MAX);
        long.extend_from_slice(&[0; 8]);
        assert_eq!(hint_from_bytes(&long), None);
        for bytes in [&[][..], &[HINT], &[HINT + 1, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(hint_from_bytes(bytes), None);
        }
    }
}
