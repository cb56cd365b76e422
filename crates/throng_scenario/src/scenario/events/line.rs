//! The lines of the event log.

use glam::IVec2;
use serde::Serialize;

use throng::matchmaking::{ROLE_COUNT, TicketParty, TicketPlayer};

#[derive(Serialize)]
pub(super) struct EventLine<'a> {
    #[serde(flatten)]
    pub event: Event<'a>,
    pub tick: u64,
    pub scene: Option<u32>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event<'a> {
    Scene {
        name: &'a str,
        map: &'a str,
        width: u32,
        height: u32,
        tile_m: f32,
        cell_m: f32,
        margin_m: f32,
        view_cap: u16,
        caps: [u16; 3],
        mode: &'static str,
    },
    Spawn {
        id: u32,
        #[serde(rename = "gen")]
        generation: u32,
        kind: &'a str,
        visibility: &'static str,
        viewable: bool,
        viewer: bool,
        team: Option<u32>,
        x: f32,
        y: f32,
    },
    Despawn {
        id: u32,
        #[serde(rename = "gen")]
        generation: u32,
    },
    Team {
        id: u32,
        team: Option<u32>,
    },
    Hide {
        id: u32,
        hidden: bool,
    },
    Cap {
        id: u32,
        view_cap: Option<u16>,
    },
    Cell {
        id: u32,
        cx: u16,
        cy: u16,
    },
    Enter {
        viewer: u32,
        target: u32,
        priority: u8,
    },
    Leave {
        viewer: u32,
        target: u32,
        reason: &'static str,
    },
    Path {
        id: u32,
        from: IVec2,
        to: IVec2,
        result: &'static str,
        length: f64,
        waypoints: &'a [IVec2],
    },
    LateBuild {
        name: &'a str,
        clearance: u8,
        late_ticks: u64,
    },
    Edit {
        x: u32,
        y: u32,
        w: u32,
        h: u32,
        blocked: Blocked,
    },
    Announce {
        from: Option<u32>,
        scope: &'static str,
        receivers: u32,
    },
    Ticket {
        party: LogNumber,
        size: u8,
        power: u32,
        skill: i32,
        level: u16,
        mode: &'a str,
        since: u64,
        members: Vec<LogNumber>,
        roles: [u8; ROLE_COUNT],
        avoid: Vec<LogNumber>,
        regions: u32,
    },
    Left {
        #[serde(rename = "match")]
        id: u64,
        party: LogNumber,
        player: LogNumber,
    },
    Backfill {
        #[serde(rename = "match")]
        id: u64,
        party: LogNumber,
        group: usize,
    },
    Cancel {
        party: LogNumber,
    },
    Expire {
        party: LogNumber,
    },
    Match {
        id: u64,
        mode: &'a str,
        groups: [Vec<LogNumber>; 2],
        power: [u64; 2],
        spread: u32,
        quality: f64,
    },
    Login {
        client: u32,
        player: u64,
    },
    Logout {
        client: u32,
        player: u64,
        reason: &'static str,
    },
    ConnectionLost {
        client: u32,
        player: u64,
    },
    Resume {
        client: u32,
        before: u32,
        player: u64,
    },
    Overload {
        from: &'static str,
        to: &'static str,
        time_percent: u8,
        load: f32,
    },
    Pos {
        id: u32,
        x: f32,
        y: f32,
    },
    TickEnd {
        hash: String,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Blocked {
    All(bool),
    Mixed(&'static str),
}

/// The number of a party or a player. Synthetic ones are numbered separately from 0 and written as -1, -2 and so on.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
pub(super) enum LogNumber {
    Real(u64),
    Synthetic(i64),
}

/// Converts 0 to -1, 1 to -2 and so on.
const fn synthetic_number(number: u64) -> LogNumber {
    LogNumber::Synthetic(-1 - (number & i64::MAX as u64) as i64)
}

impl From<TicketParty> for LogNumber {
    fn from(party: TicketParty) -> Self {
        match party {
            TicketParty::Real(party) => Self::Real(u64::from(party.0)),
            TicketParty::Synthetic(number) => synthetic_number(u64::from(number)),
        }
    }
}

impl From<TicketPlayer> for LogNumber {
    fn from(player: TicketPlayer) -> Self {
        match player {
            TicketPlayer::Real(player) => Self::Real(player.0),
            TicketPlayer::Synthetic(number) => synthetic_number(number),
        }
    }
}
