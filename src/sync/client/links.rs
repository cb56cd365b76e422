//! The objects that a client knows, and of which of them there may be something to send.
//!
//! ```text
//! ids      id  id  id  …  64 │ …     beside what is new of each object: a byte an id (records.rs)
//! links    Link, 12 bytes each       read only where there is something
//! marks    behind ▏due, by turn      64 links a word
//! ```
//! A tick looks at 64 ids at a time, each a load and a shift, and then at those links only of which something is told, or a
//! motion is to be sent in this tick.
//!
//! Invariant after a look: marked as behind are those of which another motion was sent than is known of the object, but for
//! those that this look found. A link is due in the turns of its tier.

use crate::memory::MemoryUse;
use crate::sync::motion::{TURNS, Tier};
use crate::sync::records::{SceneRecords, Variant};

/// An object that a client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its generation.
    pub generation: u32,
    /// The number of the motion news that were sent.
    pub(super) motion: u16,
    /// When they were, modulo 65,536 ticks.
    pub(super) sent: u16,
    pub(super) tier: Tier,
    /// What of it is told.
    pub variant: Variant,
    /// How much it matters, in the order of the view list's classes.
    pub(super) class: u8,
}

const _: () = assert!(size_of::<Link>() == 12);

/// A bit for each of 64 links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LinkMarks {
    /// The motion that was sent is another than the object's.
    behind: u64,
    /// It is told of motions in this turn.
    due: [u64; TURNS],
}

/// The objects that a client knows, in no order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    ids: Vec<u32>,
    links: Vec<Link>,
    marks: Vec<LinkMarks>,
    /// The tick of the last look; 0 when all have to be compared in the next one.
    looked: u64,
}

/// Of 64 links a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkLook {
    /// Something is told of it.
    pub told: u64,
    /// Its motion is to be sent: it counts as sent from now on.
    pub due: u64,
}

impl Links {
    /// How many there are.
    pub const fn len(&self) -> usize {
        self.links.len()
    }

    /// The objects' numbers with the links.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Link)> {
        self.ids.iter().copied().zip(&self.links)
    }

    /// The numbers of those from a place on.
    pub fn ids_from(&self, place: usize) -> &[u32] {
        &self.ids[place..]
    }

    /// The link at a place.
    pub fn link(&self, place: usize) -> &Link {
        &self.links[place]
    }

    /// The link at a place, and the object's number.
    pub fn at(&self, place: usize) -> (u32, &Link) {
        (self.ids[place], &self.links[place])
    }

    /// The same to be changed.
    pub fn at_mut(&mut self, place: usize) -> (u32, &mut Link) {
        (self.ids[place], &mut self.links[place])
    }

    /// The first.
    pub fn first_mut(&mut self) -> Option<&mut Link> {
        self.links.first_mut()
    }

    /// The link of an object, and its place.
    pub fn find(&mut self, id: u32) -> Option<(usize, &mut Link)> {
        let place = self.ids.iter().position(|&other| other == id)?;
        Some((place, &mut self.links[place]))
    }

    /// Whether an object is known. O(links).
    pub fn knows(&self, id: u32, generation: u32) -> bool {
        let mut all = self.iter();
        all.any(|(other, link)| (other, link.generation) == (id, generation))
    }

    /// An object is known from now on; its motion was sent.
    pub fn push(&mut self, id: u32, link: Link) {
        let place = self.links.len();
        if place.is_multiple_of(64) {
            self.marks.push(LinkMarks::default());
        }
        self.ids.push(id);
        self.links.push(link);
        self.mark(place, false);
    }

    /// Forgets the object at a place, at which the last one is then.
    pub fn swap_remove(&mut self, place: usize) {
        let last = self.links.len() - 1;
        let is_behind = self.marks[last / 64].behind >> (last % 64) & 1 != 0;
        self.ids.swap_remove(place);
        self.links.swap_remove(place);
        if place < last {
            self.mark(place, is_behind);
        }
        if last.is_multiple_of(64) {
            self.marks.pop();
        } else {
            self.marks[last / 64].behind &= !(1 << (last % 64));
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.links.clear();
        self.marks.clear();
    }

    /// What was sent of this one's motion is to be sent again.
    pub fn send_again(&mut self, place: usize) {
        let link = &mut self.links[place];
        link.motion = link.motion.wrapping_sub(1);
        self.marks[place / 64].behind |= 1 << (place % 64);
    }

    fn mark(&mut self, place: usize, is_behind: bool) {
        let (id, tier) = (self.ids[place], self.links[place].tier);
        let marks = &mut self.marks[place / 64];
        let turns = tier.turns(id);
        let set = |word: &mut u64, is_set: u8| {
            *word = *word & !(1 << (place % 64)) | u64::from(is_set) << (place % 64);
        };
        set(&mut marks.behind, u8::from(is_behind));
        for (turn, due) in marks.due.iter_mut().enumerate() {
            set(due, turns >> turn & 1);
        }
    }

    /// The motion of the one at a place is sent, and how often it is from now on.
    pub fn sent_motion(&mut self, place: usize, motion: u16, tick: u64, tier: Option<Tier>) {
        let link = &mut self.links[place];
        (link.motion, link.sent) = (motion, tick as u16);
        if let Some(tier) = tier
            && tier != link.tier
        {
            link.tier = tier;
            self.mark(place, false);
        }
    }

    /// The motion of the one at a place is not sent in this tick after all.
    pub fn postpone(&mut self, place: usize) {
        self.marks[place / 64].behind |= 1 << (place % 64);
    }

    /// Of those due, at these places, only some are in this tick while turns come less often; `own` is never made to wait.
    pub fn postpone_more(&mut self, due: &mut Vec<u32>, tick: u64, doublings: u8, own: u32) {
        due.retain(|&place| {
            let (id, link) = self.at(place as usize);
            let is_due = id == own || link.tier.doubled(doublings).is_due(tick, id);
            if !is_due {
                self.postpone(place as usize);
            }
            is_due
        });
    }

    /// In the next look all are compared with what is known of them.
    pub const fn compare_next(&mut self) {
        self.looked = 0;
    }

    /// Begins a tick's looks; whether all links are to be compared, since there was none in the tick before.
    pub const fn begin_looks(&mut self, tick: u64) -> bool {
        let is_next = self.looked != 0 && self.looked + 1 == tick;
        self.looked = tick;
        !is_next
    }

    /// Looks at up to 64 links from a place on, of those before `known`.
    #[inline]
    pub fn look(
        &mut self,
        first: usize,
        known: usize,
        scene: &SceneRecords,
        tick: u64,
        compares: bool,
    ) -> LinkLook {
        let end = known.min(first + 64);
        let (moved, told) = scene.fresh_of(&self.ids[first..end]);
        if compares {
            self.compare(first, end, scene);
        }
        let marks = &mut self.marks[first / 64];
        if !compares {
            marks.behind |= moved;
        }
        let due = marks.behind & marks.due[tick as usize % TURNS];
        marks.behind &= !due;
        LinkLook { told, due }
    }

    #[cold]
    fn compare(&mut self, first: usize, end: usize, scene: &SceneRecords) {
        for place in first..end {
            let is_behind = self.links[place].motion != scene.news(self.ids[place]).motion;
            let behind = &mut self.marks[first / 64].behind;
            *behind = *behind & !(1 << (place - first)) | u64::from(is_behind) << (place - first);
        }
    }
}

impl MemoryUse for Links {
    fn heap_bytes(&self) -> usize {
        self.ids.heap_bytes() + self.links.heap_bytes() + self.marks.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use glam::Vec2;
    use proptest::prelude::*;

    use super::*;
    use crate::sync::motion::{Moving, Reckoning};
    use crate::sync::records::LinkNews;

    const RECKONING: Reckoning = Reckoning {
        tick_s: 0.05,
        tolerance_m: 0.0,
        update_doublings: 0,
    };

    const IDS: u32 = 150;

    #[derive(Clone, Debug)]
    enum LinkStep {
        Know(u32),
        Forget(usize),
        Move(u32),
        Tell(u32),
        /// One more tick, in which every so many-th motion has to wait; or some ticks without a look.
        Tick(usize),
        Away(u64),
        SendAgain(usize),
    }

    fn step() -> impl Strategy<Value = LinkStep> {
        prop_oneof![
            6 => (0..IDS).prop_map(LinkStep::Know),
            2 => any::<usize>().prop_map(LinkStep::Forget),
            8 => (0..IDS).prop_map(LinkStep::Move),
            2 => (0..IDS).prop_map(LinkStep::Tell),
            4 => (1..4_usize).prop_map(LinkStep::Tick),
            1 => (1..3_u64).prop_map(LinkStep::Away),
            1 => any::<usize>().prop_map(LinkStep::SendAgain),
        ]
    }

    fn link(motion: u16) -> Link {
        Link {
            generation: 1,
            motion,
            sent: 0,
            tier: Tier::default(),
            variant: Variant(0),
            class: 1,
        }
    }

    /// Moves an object; where it is tells how often its links are told.
    fn walk(scene: &mut SceneRecords, id: u32, tick: u64) {
        let now = Moving {
            position: Vec2::new((id * 7 % 90) as f32, (tick % 50) as f32),
            velocity: Vec2::X,
            heading: tick as u8,
            floor: 0,
            jumped: true,
        };
        scene.follow(id, 1, now, tick, RECKONING);
    }

    proptest! {
        #![proptest_config(draws!())]

        /// What a look finds is what comparing every link finds.
        #[test]
        fn a_look_finds_whom_there_is_something_to_tell_of(steps in prop::collection::vec(step(), 0..300)) {
            let (mut links, mut scene, mut tick) = (Links::default(), SceneRecords::default(), 1);
            (0..IDS).for_each(|id| walk(&mut scene, id, 0));
            scene.begin(1);
            for step in steps {
                match step {
                    LinkStep::Know(id) if links.find(id).is_none() => {
                        // Its snapshot has what is known of it now, which in this tick's look may be old.
                        links.push(id, link(scene.news(id).motion));
                        links.compare_next();
                    }
                    LinkStep::Forget(nth) if links.len() > 0 => links.swap_remove(nth % links.len()),
                    LinkStep::SendAgain(nth) if links.len() > 0 => links.send_again(nth % links.len()),
                    LinkStep::Move(id) => walk(&mut scene, id, tick),
                    LinkStep::Tell(id) => scene.tell(id, LinkNews::DELTA),
                    LinkStep::Away(ticks) => {
                        tick += ticks;
                        scene.begin(1);
                    }
                    LinkStep::Tick(nth) => {
                        look_and_compare(&mut links, &scene, tick, nth)?;
                        tick += 1;
                        scene.begin(1);
                    }
                    _ => {}
                }
            }
        }
    }

    fn look_and_compare(
        links: &mut Links,
        scene: &SceneRecords,
        tick: u64,
        nth: usize,
    ) -> Result<(), TestCaseError> {
        let compares = links.begin_looks(tick);
        let known = links.len();
        for first in (0..known).step_by(64) {
            let is_behind = |links: &Links, place: usize| {
                let (id, link) = links.at(place);
                let news = scene.news(id);
                (
                    link.motion != news.motion && link.tier.is_due(tick, id),
                    news.has(LinkNews::DELTA),
                )
            };
            let places = first..known.min(first + 64);
            let expected: Vec<_> = places
                .clone()
                .map(|place| is_behind(links, place))
                .collect();
            let look = links.look(first, known, scene, tick, compares);
            for (place, expected) in places.zip(expected) {
                let bit = |word: u64| word >> (place - first) & 1 != 0;
                prop_assert_eq!(
                    (bit(look.due), bit(look.told)),
                    expected,
                    "{} at {}",
                    place,
                    tick
                );
                if bit(look.due) && place % nth == 0 {
                    let id = links.at(place).0;
                    let tier = Tier::of(scene.bases[id as usize].seen().length_squared(), 10.0, 1);
                    links.sent_motion(place, scene.news(id).motion, tick, Some(tier));
                } else if bit(look.due) {
                    links.postpone(place);
                }
            }
        }
        Ok(())
    }
}
