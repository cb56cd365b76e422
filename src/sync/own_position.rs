//! Exact positions of a client's own object: sent to every client when a scene begins, and after that to clients that number their
//! inputs.

use glam::Vec2;

use crate::outbox::BatchPart;
use crate::wire::write_own_position;

/// After this many ticks without changes the last position is repeated reliably: if the last packet was lost, the client would
/// otherwise keep a wrong position.
const CONFIRM_TICKS: u64 = 6;

/// The last position that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnPositionSent {
    last: Option<(u16, Vec2)>,
    tick: u64,
    is_confirmed: bool,
}

impl OwnPositionSent {
    /// Appends the object's position at the start of a scene, reliably. Returns the bytes.
    pub fn write_initial(
        &mut self,
        part: &mut BatchPart,
        input: u16,
        position: Vec2,
        tick: u64,
    ) -> usize {
        (self.last, self.tick, self.is_confirmed) = (Some((input, position)), tick, true);
        part.write_reliable(|bytes| write_own_position(bytes, position))
    }

    /// Appends a changed position of `tick` to the current update, with all inputs handled up to `input`. Returns the bytes.
    pub fn write_update(
        &mut self,
        part: &mut BatchPart,
        input: u16,
        position: Vec2,
        tick: u64,
    ) -> usize {
        let write = |bytes: &mut Vec<u8>| write_own_position(bytes, position);
        let now = Some((input, position));
        if now != self.last {
            (self.last, self.tick, self.is_confirmed) = (now, tick, false);
            part.write_unreliable(write)
        } else if !self.is_confirmed && tick - self.tick.min(tick) >= CONFIRM_TICKS {
            self.is_confirmed = true;
            part.write_reliable(write)
        } else {
            0
        }
    }

    /// Adds the state that affects later ticks to a hash, as words; nothing before the first position was sent.
    pub fn hash_state(&self, word: &mut impl FnMut(u64)) {
        if let Some((input, position)) = self.last {
            word(u64::from(position.x.to_bits()) << 32 | u64::from(position.y.to_bits()));
            word(self.tick << 17 | u64::from(input) << 1 | u64::from(self.is_confirmed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ClientId;

    #[test]
    fn position_is_sent_unreliably_then_confirmed_reliably() {
        let (mut sent, mut part) = (OwnPositionSent::default(), BatchPart::default());
        let script = [(10, 1, 1.0), (11, 2, 1.5), (12, 3, 1.5), (13, 3, 2.0)];
        let rest = (14..40).map(|tick| (tick, 3, 2.0));
        for (tick, input, x) in script.into_iter().chain(rest) {
            part.begin_client(ClientId(tick), 1, input);
            sent.write_update(&mut part, input, Vec2::new(x, 0.0), u64::from(tick));
            part.end_client();
        }
        let lines: Vec<_> = part
            .updates()
            .map(|line| {
                (
                    line.header.client.0,
                    line.reliable.len(),
                    line.unreliable.len(),
                )
            })
            .collect();
        let expected = [10, 11, 12, 13].map(|tick| (tick, 0, 1));
        assert_eq!(lines[..4], expected);
        assert_eq!(lines[4..], [(19, 1, 0)]);
        part.begin_client(ClientId(40), 2, 3);
        sent.write_initial(&mut part, 3, Vec2::ONE, 40);
        assert_eq!(
            sent.write_update(&mut part, 3, Vec2::ONE, 40),
            0,
            "the position was just sent"
        );
    }

    #[test]
    fn position_after_the_initial_one_is_confirmed_too() {
        let (mut sent, mut part) = (OwnPositionSent::default(), BatchPart::default());
        part.begin_client(ClientId(1), 1, 0);
        sent.write_initial(&mut part, 0, Vec2::ZERO, 10);
        part.end_client();
        for tick in 11..30 {
            part.begin_client(ClientId(tick), 1, 1);
            sent.write_update(&mut part, 1, Vec2::ONE, tick.into());
            part.end_client();
        }
        let confirmed = part.updates().filter(|line| !line.reliable.is_empty());
        let confirmed: Vec<u32> = confirmed.map(|line| line.header.client.0).collect();
        assert_eq!(confirmed, [1, 11 + CONFIRM_TICKS as u32]);
    }
}
