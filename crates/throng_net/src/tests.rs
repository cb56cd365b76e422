//! Two endpoints, compared with lists of the messages pushed into them.

mod bounds;
mod hostile;
mod lossy_paths;
mod restarts;

use std::collections::BTreeSet;

use super::conditioner::NetworkConditioner;
use super::endpoint::{CountersStart, EndpointSettings, ReceivedMessage, SendError};
use super::packet::StreamId;
use super::workload::{ConditionedEndpoint, Duplex};

/// The content of a message, unique to its id and length.
fn content(id: u64, length: usize) -> Vec<u8> {
    let mut state = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let byte = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..length).map(byte).collect()
}

/// Messages pushed at one end, and how many of them arrived at the other.
#[derive(Debug, Default)]
struct PushedLog {
    streams: [Vec<Vec<u8>>; 4],
    delivered: [usize; 4],
    /// Pushed and not arrived.
    unreliable: BTreeSet<Vec<u8>>,
    pushed: u64,
    fault: Option<String>,
}

impl PushedLog {
    fn push(&mut self, end: &mut ConditionedEndpoint, stream: StreamId, length: usize) {
        self.pushed += 1;
        let message = content(self.pushed, length);
        match end.endpoint.push(stream, &message) {
            Ok(()) => self.streams[stream.number()].push(message),
            Err(refused) => self.fault = Some(format!("a push was refused: {refused}")),
        }
    }

    fn push_unreliable(&mut self, end: &mut ConditionedEndpoint, length: usize) {
        self.pushed += 1;
        // Long enough to differ from all others.
        let mut message = self.pushed.to_le_bytes().to_vec();
        message.extend(content(self.pushed, length));
        match end.endpoint.push_unreliable(&message) {
            Ok(()) => assert!(self.unreliable.insert(message)),
            Err(SendError::TooLong { .. }) => {}
            Err(refused) => self.fault = Some(format!("an unreliable push was refused: {refused}")),
        }
    }

    fn receive(&mut self, delivery: ReceivedMessage<'_>) {
        let Some(stream) = delivery.stream else {
            if !self.unreliable.remove(delivery.bytes) {
                self.fault = Some("an unreliable message came twice or was never pushed".into());
            }
            return;
        };
        let came = &mut self.delivered[stream.number()];
        let expected = self.streams[stream.number()].get(*came).map(Vec::as_slice);
        if expected != Some(delivery.bytes) && self.fault.is_none() {
            let (found, expected) = (delivery.bytes.len(), expected.map(<[u8]>::len));
            self.fault = Some(format!(
                "message {came} of {stream:?} is another: {found} bytes, expected {expected:?}"
            ));
        }
        *came += 1;
    }

    fn is_complete(&self) -> bool {
        let all = self.streams.iter().zip(self.delivered);
        all.into_iter().all(|(pushed, came)| pushed.len() == came)
    }
}

/// Two endpoints and the messages of both.
struct Talk {
    duplex: Duplex,
    down: PushedLog,
    up: PushedLog,
}

impl Talk {
    fn new(
        settings: EndpointSettings,
        start: CountersStart,
        model: NetworkConditioner,
        seed: u64,
    ) -> Self {
        Self {
            duplex: Duplex::new(settings, start, model, seed),
            down: PushedLog::default(),
            up: PushedLog::default(),
        }
    }

    fn tick(&mut self) -> Result<(), String> {
        let Self { duplex, down, up } = self;
        duplex.tick(
            |_, delivery| down.receive(delivery),
            |_, delivery| up.receive(delivery),
        );
        let refused = self.duplex.server.refused + self.duplex.client.refused;
        let refused = (refused > 0).then(|| "a packet was refused".to_owned());
        match self.down.fault.take().or(self.up.fault.take()).or(refused) {
            Some(fault) => Err(format!("tick {}: {fault}", self.duplex.ticks)),
            None => Ok(()),
        }
    }

    /// Runs until all messages have arrived and are acknowledged. Returns the number of ticks, or an error after `ticks_max`.
    fn run_until_complete(&mut self, ticks_max: u64) -> Result<(), String> {
        for _ in 0..ticks_max {
            self.tick()?;
            let waiting = self.duplex.server.endpoint.pending_bytes()
                + self.duplex.client.endpoint.pending_bytes();
            if waiting == 0 && self.down.is_complete() && self.up.is_complete() {
                return Ok(());
            }
        }
        Err(format!(
            "down {:?} of {:?} messages came, up {:?} of {:?}; {:?}",
            self.down.delivered,
            self.down.streams.each_ref().map(Vec::len),
            self.up.delivered,
            self.up.streams.each_ref().map(Vec::len),
            self.duplex.server.endpoint.stats(),
        ))
    }
}
