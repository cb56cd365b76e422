//! The speed of a client's own object: sent when a scene begins, and after each change.

use crate::memory::MemoryUse;
use crate::outbox::BatchPart;
use crate::wire::write_own_speed;

/// The speed of the object, and the speed that was sent, in metres per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, MemoryUse)]
pub struct OwnSpeedSent {
    current_m_s: Option<f32>,
    sent_m_s: Option<f32>,
}

impl OwnSpeedSent {
    /// Whether the speed of the object is not known yet.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.current_m_s.is_none()
    }

    /// Sets the speed of the object.
    pub const fn set(&mut self, speed_m_s: f32) {
        self.current_m_s = Some(speed_m_s);
    }

    /// Appends the speed, reliably, unless it is the one that was sent last. Returns the bytes.
    pub fn write(&mut self, part: &mut BatchPart) -> usize {
        match self.current_m_s {
            Some(speed_m_s) if self.sent_m_s != Some(speed_m_s) => {
                self.sent_m_s = Some(speed_m_s);
                part.write_reliable(|bytes| write_own_speed(bytes, speed_m_s))
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ClientId;

    #[test]
    fn speed_is_sent_once_and_after_each_change() {
        let (mut speed, mut part) = (OwnSpeedSent::default(), BatchPart::default());
        assert!(speed.is_unknown());
        let mut sent = Vec::new();
        for (tick, now) in [None, Some(3.0), None, Some(3.0), Some(4.5), None]
            .into_iter()
            .enumerate()
        {
            if let Some(speed_m_s) = now {
                speed.set(speed_m_s);
            }
            part.begin_client(ClientId(tick as u32), 1, 0);
            sent.push(speed.write(&mut part));
            part.end_client();
        }
        assert_eq!(sent, [0, 5, 0, 0, 5, 0]);
        let updates = part.updates();
        assert!(
            updates
                .into_iter()
                .all(|update| update.unreliable.is_empty())
        );
    }
}
