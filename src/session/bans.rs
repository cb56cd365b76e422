//! Bans of players and of address ranges.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use throng_net::AddressRange;

use crate::memory::MemoryUse;
use crate::world::PlayerId;

/// Maximum number of bans in a [`BanList`].
pub const BANS_MAX: usize = 100_000;

/// Maximum length of a ban's reason, in bytes.
pub const BAN_REASON_BYTES_MAX: usize = 512;

/// Whom a ban refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BanTarget {
    /// A player, at any address.
    Player(PlayerId),
    /// All connections from these addresses.
    Addresses(AddressRange),
}

impl fmt::Display for BanTarget {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Player(player) => write!(to, "player {}", player.0),
            Self::Addresses(range) => write!(to, "addresses {range}"),
        }
    }
}

/// A ban.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BanRecord", into = "BanRecord")]
pub struct Ban {
    /// Whom it refuses.
    pub target: BanTarget,
    /// Why, for operators; at most [`BAN_REASON_BYTES_MAX`] bytes. Clients do not receive it.
    pub reason: String,
    /// Who issued it, for operators.
    pub issued_by: String,
    /// When it was issued, in seconds since 1970.
    pub issued_unix_s: u64,
    /// When it ends, in seconds since 1970; `None`: never.
    pub until_unix_s: Option<u64>,
}

/// A ban as it is stored: `{"player": 7, …}` or `{"addresses": "192.0.2.0/24", …}`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BanRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    player: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    addresses: Option<String>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    issued_by: String,
    #[serde(default)]
    issued_unix_s: u64,
    #[serde(default)]
    until_unix_s: Option<u64>,
}

impl From<Ban> for BanRecord {
    fn from(ban: Ban) -> Self {
        let (player, addresses) = match ban.target {
            BanTarget::Player(player) => (Some(player.0), None),
            BanTarget::Addresses(range) => (None, Some(range.to_string())),
        };
        Self {
            player,
            addresses,
            reason: ban.reason,
            issued_by: ban.issued_by,
            issued_unix_s: ban.issued_unix_s,
            until_unix_s: ban.until_unix_s,
        }
    }
}

impl TryFrom<BanRecord> for Ban {
    type Error = String;

    fn try_from(record: BanRecord) -> Result<Self, String> {
        let target = match (record.player, record.addresses) {
            (Some(player), None) => BanTarget::Player(PlayerId(player)),
            (None, Some(range)) => BanTarget::Addresses(
                range
                    .parse()
                    .map_err(|error| format!("field `addresses`: {error}"))?,
            ),
            _ => return Err("expected one of the fields `player` and `addresses`".to_owned()),
        };
        Ok(Self {
            target,
            reason: record.reason,
            issued_by: record.issued_by,
            issued_unix_s: record.issued_unix_s,
            until_unix_s: record.until_unix_s,
        })
    }
}

/// A ban cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BanError {
    /// The list is full.
    #[error("{BANS_MAX} bans are active: lift some, or ban a larger address range")]
    ListFull,
    /// The reason is too long.
    #[error(
        "the reason has {bytes} bytes: expected at most {}",
        BAN_REASON_BYTES_MAX
    )]
    ReasonTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
}

/// The active bans. Sessions refuse connections from banned addresses, and logins and resumes of banned players; the
/// [`Authenticator`](super::Authenticator) may refuse more. [`ban`](super::ban) adds a ban and ends open sessions as well.
///
/// It is input of the server, like the replies of the authenticator, and not part of the state hash. It reads no clock: bans end
/// when [`end_expired`](Self::end_expired) is called.
///
/// ```
/// use throng::session::{Ban, BanList, BanTarget};
/// use throng::world::PlayerId;
///
/// let mut bans = BanList::default();
/// bans.add(Ban {
///     target: BanTarget::Player(PlayerId(7)),
///     reason: "speed hack".to_owned(),
///     issued_by: "alice".to_owned(),
///     issued_unix_s: 1_790_000_000,
///     until_unix_s: Some(1_790_000_000 + 7 * 86_400),
/// })?;
/// assert!(bans.of_player(PlayerId(7)).is_some());
/// # Ok::<(), throng::session::BanError>(())
/// ```
#[derive(Resource, Clone, Debug, Default, MemoryUse)]
pub struct BanList {
    bans: BTreeMap<BanTarget, Ban>,
    /// The number of banned address ranges by family and prefix length.
    prefixes: BTreeMap<(bool, u8), u32>,
    /// When bans end, for those that do.
    ends: BTreeSet<(u64, BanTarget)>,
}

impl BanList {
    /// Adds a ban, or replaces the one with the same target. O(log bans).
    ///
    /// # Errors
    /// [`BanError`] if there is no room or the reason is too long; nothing changes then.
    pub fn add(&mut self, ban: Ban) -> Result<(), BanError> {
        if ban.reason.len() > BAN_REASON_BYTES_MAX {
            return Err(BanError::ReasonTooLong {
                bytes: ban.reason.len(),
            });
        }
        if self.bans.len() >= BANS_MAX && !self.bans.contains_key(&ban.target) {
            return Err(BanError::ListFull);
        }
        self.lift(ban.target);
        if let BanTarget::Addresses(range) = ban.target {
            *self.prefixes.entry(prefix(range)).or_default() += 1;
        }
        if let Some(until) = ban.until_unix_s {
            self.ends.insert((until, ban.target));
        }
        self.bans.insert(ban.target, ban);
        Ok(())
    }

    /// Removes a ban, and returns it. O(log bans).
    pub fn lift(&mut self, target: BanTarget) -> Option<Ban> {
        let ban = self.bans.remove(&target)?;
        if let Some(until) = ban.until_unix_s {
            self.ends.remove(&(until, target));
        }
        if let BanTarget::Addresses(range) = target
            && let Some(count) = self.prefixes.get_mut(&prefix(range))
        {
            *count -= 1;
            if *count == 0 {
                self.prefixes.remove(&prefix(range));
            }
        }
        Some(ban)
    }

    /// Removes bans that end at or before this time, in seconds since 1970, and returns how many. O(log bans) each.
    pub fn end_expired(&mut self, now_unix_s: u64) -> usize {
        let mut ended = 0;
        while let Some(&(until, target)) = self.ends.first()
            && until <= now_unix_s
        {
            self.lift(target);
            ended += 1;
        }
        ended
    }

    /// The ban of a player. O(log bans).
    #[must_use]
    pub fn of_player(&self, player: PlayerId) -> Option<&Ban> {
        self.bans.get(&BanTarget::Player(player))
    }

    /// A ban of an address; of several, the one with the longest prefix. O(prefix lengths × log bans); there are at most 162
    /// prefix lengths.
    #[must_use]
    pub fn of_address(&self, address: IpAddr) -> Option<&Ban> {
        let address = address.to_canonical();
        let lengths = self
            .prefixes
            .range((address.is_ipv4(), 0)..=(address.is_ipv4(), u8::MAX));
        lengths.rev().find_map(|(&(_, bits), _)| {
            let range = AddressRange::containing(address, bits);
            self.bans.get(&BanTarget::Addresses(range))
        })
    }

    /// All bans: players by id, then address ranges.
    pub fn iter(&self) -> impl Iterator<Item = &Ban> {
        self.bans.values()
    }

    /// The number of bans.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bans.len()
    }

    /// Whether there are no bans.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bans.is_empty()
    }
}

/// Family and prefix length of a range.
fn prefix(range: AddressRange) -> (bool, u8) {
    (range.is_ipv4(), range.bits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target() -> impl Strategy<Value = BanTarget> {
        let range = (
            any::<bool>(),
            0..8_u8,
            prop::sample::select(vec![0, 1, 7, 8, 29, 31, 32]),
        );
        prop_oneof![
            (0..8_u64).prop_map(|player| BanTarget::Player(PlayerId(player))),
            range.prop_map(|(is_v4, last, bits)| {
                BanTarget::Addresses(AddressRange::containing(address(is_v4, last), bits))
            }),
        ]
    }

    fn address(is_v4: bool, last: u8) -> IpAddr {
        if is_v4 {
            IpAddr::from([10, 0, 0, last])
        } else {
            IpAddr::from([last.into(), 0, 0, 0, 0, 0, 0, u16::from(last) << 5])
        }
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn list_equals_a_plain_list(
            steps in prop::collection::vec((target(), 0..4_u8, prop::option::of(0..20_u64)), 0..60),
        ) {
            let (mut bans, mut plain) = (BanList::default(), Vec::<Ban>::new());
            for (now, (target, action, until_unix_s)) in steps.into_iter().enumerate() {
                let now = now as u64 / 3;
                match action {
                    0 => {
                        let lifted = bans.lift(target).is_some();
                        prop_assert_eq!(lifted, plain.iter().any(|ban| ban.target == target));
                        plain.retain(|ban| ban.target != target);
                    }
                    1 => {
                        let before = plain.len();
                        plain.retain(|ban| ban.until_unix_s.is_none_or(|until| until > now));
                        prop_assert_eq!(bans.end_expired(now), before - plain.len());
                    }
                    _ => {
                        let ban = Ban {
                            target,
                            reason: now.to_string(),
                            issued_by: String::new(),
                            issued_unix_s: now,
                            until_unix_s,
                        };
                        plain.retain(|ban| ban.target != target);
                        plain.push(ban.clone());
                        prop_assert_eq!(bans.add(ban), Ok(()));
                    }
                }
                prop_assert_eq!(bans.len(), plain.len());
                for (is_v4, last) in [true, false].into_iter().flat_map(|v4| (0..9).map(move |it| (v4, it))) {
                    let address = address(is_v4, last);
                    let of_address = plain.iter().filter_map(|ban| match ban.target {
                        BanTarget::Addresses(range) if range.contains(address) => Some((range.bits(), ban)),
                        _ => None,
                    });
                    let longest = of_address.max_by_key(|(bits, _)| *bits).map(|(_, ban)| ban);
                    prop_assert_eq!(bans.of_address(address), longest);
                }
                for player in (0..9).map(PlayerId) {
                    let of_player = plain.iter().find(|ban| ban.target == BanTarget::Player(player));
                    prop_assert_eq!(bans.of_player(player), of_player);
                }
            }
        }
    }
}
