//! Messages to one client about its session, independent of scenes.

use crate::memory::MemoryUse;
use crate::outbox::BatchPart;
use crate::wire::{ClientId, Hello, SessionNotice};

/// Notices for the next update, as bytes.
#[derive(Clone, Debug, Default, PartialEq, MemoryUse)]
pub struct ClientNotices(Vec<u8>);

impl ClientNotices {
    /// Adds one.
    pub fn push(&mut self, notice: SessionNotice) {
        notice.write(&mut self.0);
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends them to the current update as one message, after the *Hello* if its client has not received one. Notices
    /// are outside the byte budget; returns the bytes of the *Hello*, which are inside.
    pub fn write(
        &mut self,
        greeted: &mut bool,
        part: &mut BatchPart,
        hello: &Hello,
        client: ClientId,
    ) -> usize {
        if self.is_empty() {
            return 0;
        }
        let is_greeted = std::mem::replace(greeted, true);
        let bytes = part.write_reliable(|bytes| {
            if !is_greeted {
                hello.for_client(client).write(bytes);
            }
            bytes.extend_from_slice(&self.0);
        });
        let of_notices = self.0.len();
        self.0.clear();
        bytes - of_notices
    }
}
