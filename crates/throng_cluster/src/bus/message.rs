//! The messages of the bus, and their bytes: a kind in one byte, then numbers in little endian.

use throng_core::ids::PlayerId;

use crate::ids::ClusterNodeId;
use crate::request::Arrival;
use crate::routes::PlayerRoute;

/// The bytes of a player in [`BusMessage::Arrivals`].
const ARRIVAL_BYTES: usize = 16;

/// A message between nodes and gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusMessage {
    /// To a node: read the rows, because a change concerns this node.
    Wake,
    /// To a node: these players wait to be adopted by it.
    Arrivals(Vec<Arrival>),
    /// To a node: read the scenes, because one is free and should run there.
    ReadScenes,
    /// To a gateway: the node that has a player. Usually that node is the sender.
    Route {
        /// The node and the player.
        route: PlayerRoute,
        /// From the former node after a hand-off: how long the player has been frozen, in milliseconds.
        frozen_ms: Option<u32>,
    },
    /// To a node: the gateway has received the route of a player.
    RouteAcknowledged {
        /// The player.
        player: PlayerId,
        /// The highest epoch that the gateway knows.
        epoch: u64,
    },
}

impl BusMessage {
    /// Encodes it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(25);
        match self {
            Self::Wake => bytes.push(0),
            Self::ReadScenes => bytes.push(3),
            Self::Arrivals(arrivals) => {
                bytes.push(5);
                for arrival in arrivals {
                    bytes.extend_from_slice(&arrival.player.0.to_le_bytes());
                    bytes.extend_from_slice(&arrival.epoch.to_le_bytes());
                }
            }
            Self::Route { route, frozen_ms } => {
                bytes.push(if frozen_ms.is_some() { 4 } else { 1 });
                bytes.extend_from_slice(&route.player.0.to_le_bytes());
                bytes.extend_from_slice(&route.epoch.to_le_bytes());
                bytes.extend_from_slice(&route.node.0.to_le_bytes());
                let frozen_ms = frozen_ms.iter();
                bytes.extend(frozen_ms.flat_map(|ms| ms.to_le_bytes()));
            }
            Self::RouteAcknowledged { player, epoch } => {
                bytes.push(2);
                bytes.extend_from_slice(&player.0.to_le_bytes());
                bytes.extend_from_slice(&epoch.to_le_bytes());
            }
        }
        bytes
    }

    /// Reads a message; `None` if the bytes are not exactly one message.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, fields) = bytes.split_first()?;
        let number = |at: usize| {
            let field = fields.get(at..)?.first_chunk()?;
            Some(u64::from_le_bytes(*field))
        };
        let small_number = |at: usize| {
            let field = fields.get(at..)?.first_chunk()?;
            Some(u32::from_le_bytes(*field))
        };
        match (kind, fields.len()) {
            (0, 0) => Some(Self::Wake),
            (3, 0) => Some(Self::ReadScenes),
            (1, 20) | (4, 24) => Some(Self::Route {
                route: PlayerRoute {
                    player: PlayerId(number(0)?),
                    epoch: number(8)?,
                    node: ClusterNodeId(small_number(16)?),
                },
                frozen_ms: small_number(20),
            }),
            (5, length) if length % ARRIVAL_BYTES == 0 => {
                let arrivals = (0..length).step_by(ARRIVAL_BYTES).map(|at| {
                    Some(Arrival {
                        player: PlayerId(number(at)?),
                        epoch: number(at + 8)?,
                    })
                });
                arrivals.collect::<Option<_>>().map(Self::Arrivals)
            }
            (2, 16) => Some(Self::RouteAcknowledged {
                player: PlayerId(number(0)?),
                epoch: number(8)?,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_their_bytes_and_other_bytes_are_none() {
        let (player, epoch) = (PlayerId(u64::MAX - 1), 1 << 40);
        let route = PlayerRoute {
            player,
            epoch,
            node: ClusterNodeId(0x0102_0304),
        };
        let arrival = |epoch| Arrival { player, epoch };
        let messages = [
            BusMessage::Wake,
            BusMessage::ReadScenes,
            BusMessage::Route {
                route,
                frozen_ms: None,
            },
            BusMessage::Route {
                route,
                frozen_ms: Some(0x0506_0708),
            },
            BusMessage::RouteAcknowledged { player, epoch },
            BusMessage::Arrivals(Vec::new()),
            BusMessage::Arrivals(vec![arrival(1), arrival(u64::MAX)]),
        ];
        for message in messages {
            let bytes = message.to_bytes();
            assert_eq!(BusMessage::from_bytes(&bytes), Some(message));
            let mut longer = bytes.clone();
            longer.push(0);
            assert_eq!(BusMessage::from_bytes(&longer), None);
            for length in 0..bytes.len() {
                let shorter = BusMessage::from_bytes(&bytes[..length]);
                // A list may be shorter by whole players.
                let is_list = matches!(shorter, Some(BusMessage::Arrivals(_)));
                assert!(shorter.is_none() || is_list && length % ARRIVAL_BYTES == 1);
            }
        }
        assert_eq!(BusMessage::from_bytes(&[9]), None);
    }
}
