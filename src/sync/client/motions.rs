//! Motions of the objects that a client knows, within its budget.

use std::cmp::Reverse;

use super::{ClientState, ClientUpdateInput, MOTION_BYTES};
use crate::outbox::BatchPart;
use crate::sync::counters::SentCounters;
use crate::sync::motion::{MotionBase, Tier};
use crate::wire::Channel;

impl ClientState {
    /// Writes the pending motions, as far as the remaining budget goes; returns the bytes.
    pub(super) fn write_motions<R, C>(
        &mut self,
        behind: &mut [u32],
        spent_before: usize,
        part: &mut BatchPart,
        around: &ClientUpdateInput<R, C>,
        counters: &mut SentCounters,
    ) -> usize {
        let ClientUpdateInput {
            messages: scene,
            budget: allowance,
            ..
        } = *around;
        let mut spent = spent_before;
        let links = self.objects.as_mut_slice();
        let room = (self.credit - spent as i64) / MOTION_BYTES;
        if behind.len() as i64 > room {
            behind.sort_unstable_by_key(|&place| {
                let link = &links[place as usize];
                let waited = (u64::from(link.turns_missed()) + 1) * link.tier().ticks();
                (Reverse(waited * (u64::from(link.class) + 1)), place)
            });
        }
        let own = self.controlled.map_or(0, |(_, own, _)| own);
        let own_position = scene.bases.get(own as usize).map(MotionBase::last_position);
        for &place in &*behind {
            let link = &mut links[place as usize];
            let base = &scene.bases[link.id as usize];
            let affordable = spent as i64 <= self.credit;
            if !affordable && !base.is_reliable() {
                counters.deferred += 1;
                link.mark_missed();
                continue;
            }
            let span = scene.motions.get(link.id);
            let span = span
                .unwrap_or_else(|| part.write_private(|bytes| scene.write_motion(link.id, bytes)));
            // The choice of the channel is unpredictable, so it is made without a branch.
            let channel = [Channel::Unreliable, Channel::Reliable];
            part.push(channel[usize::from(base.is_reliable())], span);
            let bytes = span.len();
            counters.motions.add_one(bytes);
            spent += bytes;
            link.mark_sent(own_position.map_or(link.tier(), |own| {
                let distance = base.last_position().distance_squared(own);
                Tier::of(distance, allowance.full_rate_distance_m, link.class)
            }));
        }
        spent - spent_before
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use glam::Vec2;

    use super::super::{UpdateScratch, ViewEntry};
    use super::*;
    use crate::outbox::OutgoingBatch;
    use crate::sync::motion::{DeadReckoning, MotionState};
    use crate::sync::scene_messages::{AudienceVariant, SampledMotion, SceneMessages};
    use crate::sync::send_budget::SendBudget;
    use crate::wire::{ClientId, Hello};

    const OTHERS: u32 = 40;

    /// How often each object except its own is sent to a client with this byte limit per tick, while all of them turn in every
    /// tick; and how often the client's own object was sent.
    fn motions_sent_in(
        ticks: u64,
        bytes_per_tick: u32,
        update_doublings: u8,
    ) -> (Vec<usize>, usize) {
        let reckoning = DeadReckoning {
            tick_s: 0.05,
            tolerance_m: 0.05,
            update_doublings,
        };
        let allowance = SendBudget {
            bytes_per_tick,
            bytes_max: bytes_per_tick,
            enters_per_tick_max: OTHERS,
            full_rate_distance_m: 100.0,
            update_doublings,
        };
        let (mut records, mut batch) = (SceneMessages::default(), OutgoingBatch::default());
        let (mut scratch, mut counters) = (UpdateScratch::default(), SentCounters::default());
        let mut client = ClientState::new(ClientId(1));
        client.start_scene((0, 1, 0), AudienceVariant::default());
        let mut motions = vec![0; OTHERS as usize + 2];
        for tick in 0..ticks {
            records.begin_tick(1, tick);
            for id in 1..=OTHERS + 1 {
                let now = MotionState {
                    position: Vec2::new(id as f32, tick as f32),
                    velocity: Vec2::X,
                    heading: (tick * 100) as u8,
                    floor: 0,
                    jumped: false,
                };
                let looked = records.sample((id, 0), now, (tick, reckoning), &mut Vec::new());
                let SampledMotion::Update(news) = looked else {
                    panic!("it turned");
                };
                records.apply_motion(id, &news);
                let snapshot = batch.push_shared(|bytes| bytes.push(9));
                records.snapshots[0].set(id, snapshot);
            }
            // No motion is shared, so each is among the update's own messages with its id after the kind.
            records.find_motions(update_doublings, 0, &mut batch);
            if tick == 1 {
                client.entering.extend((2..=OTHERS + 1).map(|id| ViewEntry {
                    id,
                    generation: 0,
                    class: 1,
                }));
            }
            client.credit = i64::from(bytes_per_tick);
            let around = ClientUpdateInput {
                messages: &records,
                scenes: &BTreeMap::new(),
                shared: &[],
                size_m: Vec2::splat(100.0),
                tick,
                last_input: 0,
                has_input_numbers: false,
                budget: allowance,
                hello: &Hello {
                    client: 1,
                    tick_millihertz: 20_000,
                    tick,
                    mtu_bytes: 1_200,
                },
                relation: |_| AudienceVariant::default(),
                catch_up: |_: (u32, u32), _: [AudienceVariant; 2], _: &mut Vec<u8>| (),
            };
            let mut part = BatchPart::default();
            client.write_update(&mut part, &around, &mut scratch, &mut counters);
            let line = part.update(0).unwrap();
            for span in line.unreliable {
                motions[usize::from(span.bytes(&[], line.private)[1])] += 1;
            }
        }
        let own = motions[1];
        (motions.split_off(2), own)
    }

    #[test]
    fn sufficient_budget_sends_each_motion_once_per_turn() {
        let (motions, own) = motions_sent_in(66, 1_000_000, 0);
        assert_eq!((motions, own), (vec![64; OTHERS as usize], 65));
        // In every second tick, by its id.
        let (motions, own) = motions_sent_in(66, 1_000_000, 1);
        assert_eq!((motions, own), (vec![32; OTHERS as usize], 65));
    }

    #[test]
    fn deferred_motions_are_sent_in_a_bounded_time() {
        for update_doublings in [0, 2] {
            let (motions, own) = motions_sent_in(402, 150, update_doublings);
            let least = motions.iter().min().copied().unwrap_or_default();
            let most = motions.iter().max().copied().unwrap_or_default();
            let all: usize = motions.iter().sum();
            assert!(
                own > 0 && all < 400 * OTHERS as usize / 3,
                "{own} {motions:?}"
            );
            assert!(least * 2 > most && least > 5, "{motions:?}");
        }
    }
}
