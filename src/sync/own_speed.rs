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
