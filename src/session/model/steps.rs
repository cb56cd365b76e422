//! Random events in the lives of clients.

use proptest::prelude::*;

use super::PLAYERS;

/// An event, for the n-th client that it applies to.
#[derive(Clone, Copy, Debug)]
pub(super) enum LifeStep {
    Connect(bool),
    Login(usize),
    Answer(usize, Option<(u64, usize)>),
    /// Without a token, with the current one, or with the one by which the session was resumed.
    Resume(usize, u64, u8),
    Control(usize, bool),
    Load(u32),
    Ready(usize, u32),
    Hear(usize),
    Lose(usize),
    End(usize),
    Tick,
}

pub(super) fn steps() -> impl Strategy<Value = Vec<LifeStep>> {
    let client = 0..96_usize;
    let player = 1..PLAYERS;
    let step = prop_oneof![
        4 => any::<bool>().prop_map(LifeStep::Connect),
        6 => client.clone().prop_map(LifeStep::Login),
        6 => (client.clone(), prop::option::weighted(0.9, (1..2 * PLAYERS, 0..4_usize)))
            .prop_map(|(client, found)| LifeStep::Answer(client, found)),
        5 => (client.clone(), player, 0..4_u8)
            .prop_map(|(client, player, token)| LifeStep::Resume(client, player, token)),
        3 => (client.clone(), prop::bool::weighted(0.8)).prop_map(|(client, on)| LifeStep::Control(client, on)),
        2 => (1..3_u32).prop_map(LifeStep::Load),
        3 => (client.clone(), 1..3_u32).prop_map(|(client, scene)| LifeStep::Ready(client, scene)),
        1 => client.clone().prop_map(LifeStep::Hear),
        2 => client.clone().prop_map(LifeStep::Lose),
        2 => client.prop_map(LifeStep::End),
        3 => Just(LifeStep::Tick),
    ];
    prop::collection::vec(step, 0..400)
}
