//! The kinds of modes: groups of K, and rooms.

use serde::{Deserialize, Serialize};

use super::mode::{GroupModeSettings, ModeError};
use super::rooms::settings::RoomModeSettings;

/// How a mode makes matches out of waiting parties.
///
/// ```
/// use throng_matchmaking::{MatchModeSettings, MatchmakingCore, RoomModeSettings};
///
/// // Battles of 3 against 3, and rooms for duels; 20 ticks a second.
/// let duels = RoomModeSettings { name: "duel".to_owned(), side_size: 1, ..RoomModeSettings::default() };
/// let modes = [MatchModeSettings::groups("arena", 3), MatchModeSettings::Rooms(duels)];
/// assert!(MatchmakingCore::new(&modes, 20.0).is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
#[non_exhaustive]
pub enum MatchModeSettings {
    /// Matches between two groups of exactly K players.
    Groups(GroupModeSettings),
    /// Rooms of 1v1, 2v2 or 3v3 in which parties gather over time.
    Rooms(RoomModeSettings),
}

impl MatchModeSettings {
    /// A mode with this name and matches between two groups of this many players; everything else as in
    /// [`GroupModeSettings::default`].
    #[must_use]
    pub fn groups(name: &str, group_size: u8) -> Self {
        Self::Groups(GroupModeSettings {
            name: name.to_owned(),
            group_size,
            ..GroupModeSettings::default()
        })
    }

    /// The mode's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Groups(settings) => &settings.name,
            Self::Rooms(settings) => &settings.name,
        }
    }

    /// The largest party that the mode accepts: players.
    #[must_use]
    pub fn party_max(&self) -> u8 {
        match self {
            Self::Groups(settings) => settings.group_size.min(settings.party_size_max),
            Self::Rooms(settings) => settings.side_size.min(settings.party_size_max),
        }
    }

    /// The name of a mode of this kind if none is given.
    #[must_use]
    pub fn default_name(&self) -> String {
        match self {
            Self::Groups(_) => GroupModeSettings::default().name,
            Self::Rooms(_) => RoomModeSettings::default().name,
        }
    }

    /// The largest party that the mode accepts: players.
    #[must_use]
    pub fn party_size_max(&self) -> u8 {
        match self {
            Self::Groups(settings) => settings.group_size.min(settings.party_size_max),
            Self::Rooms(settings) => settings.side_size.min(settings.party_size_max),
        }
    }

    /// Sets the mode's name.
    pub fn set_name(&mut self, name: &str) {
        match self {
            Self::Groups(settings) => name.clone_into(&mut settings.name),
            Self::Rooms(settings) => name.clone_into(&mut settings.name),
        }
    }

    /// Checks the settings. O(1).
    ///
    /// # Errors
    /// [`ModeError`] when a value is out of its range.
    pub fn check(&self, tick_hz: f64) -> Result<(), ModeError> {
        match self {
            Self::Groups(settings) => settings.tick_settings(tick_hz).map(drop),
            Self::Rooms(settings) => settings.tick_settings(tick_hz).map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::Packing;

    #[test]
    fn mode_parses_from_ron_and_unknown_fields_are_refused() {
        let mode: MatchModeSettings =
            ron::from_str("Groups((name: \"duel\", group_size: 1, packing: Arrival))").unwrap();
        let MatchModeSettings::Groups(settings) = mode else {
            panic!("a mode of groups");
        };
        assert_eq!((settings.name.as_str(), settings.group_size), ("duel", 1));
        assert_eq!(settings.packing, Packing::Arrival);
        assert!(ron::from_str::<MatchModeSettings>("Groups((group_sise: 1))").is_err());
    }
}
