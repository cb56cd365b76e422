//! A bus over a NATS server: core NATS only, which delivers at most once.
//!
//! A thread of its own holds the connection, and reconnects without a limit of attempts. Meanwhile, published messages wait in a bounded queue.
//! Each receiver has one subject, and there is one for all, so the messages of a sender stay in order.
//!
//! To a message without a subscriber, the server replies at once if the message asks for a reply. So an empty message is a probe of a peer. In a
//! NATS cluster, no peer is probed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::task::Waker;
use std::thread;
use std::time::Duration;

use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, Message, ServerAddr, StatusCode,
};
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::address::{BusConnectError, parse, with_credentials};
use super::inbox::BusInbox;
use super::{BusFull, BusPeer, BusSignal, BusTransport};
use crate::ids::{ClusterNodeId, GatewayId};

/// The time between two probes of the connection. Two probes without a reply end it.
const PING_INTERVAL: Duration = Duration::from_secs(1);

/// The longest pause between two attempts to connect again.
const RECONNECT_DELAY_MAX: Duration = Duration::from_millis(500);

/// The capacities of the queues in the client library, in messages: to send, in addition to the queue here, and per subscription.
const CLIENT_SENDING_MAX: usize = 256;
const CLIENT_RECEIVED_MAX: usize = 8_192;

/// The part of the subjects to which the server sends that a peer is not connected.
const UNREACHABLE: &str = "unreachable";

/// Settings of a connection to a NATS server.
///
/// ```
/// use throng_cluster::NatsSettings;
///
/// // Two clusters share a server, each with subjects of its own.
/// let settings = NatsSettings { prefix: "europe".to_owned(), ..NatsSettings::new("nats://throng:secret@10.0.0.5:4222") };
/// assert_eq!(settings.queued_messages_max, 4_096);
/// ```
#[derive(Clone)]
pub struct NatsSettings {
    /// The address: `nats://user:password@host:port`, or `tls://…` for an encrypted connection. A token may stand in the place of the user and
    /// password. A server on this machine needs neither.
    pub address: String,
    /// The first part of all subjects, so that clusters can share a server. Letters, digits, `-` and `_`.
    pub prefix: String,
    /// How long the first connection may take.
    pub connect_timeout: Duration,
    /// Maximum number of messages that wait to be sent.
    pub queued_messages_max: usize,
    /// Maximum number of bytes that wait to be sent.
    pub queued_bytes_max: usize,
}

impl NatsSettings {
    /// The settings for an address, with the prefix `throng`, 5 s to connect, and room for 4,096 messages and 32 MiB.
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            prefix: "throng".to_owned(),
            connect_timeout: Duration::from_secs(5),
            queued_messages_max: 4_096,
            queued_bytes_max: 32 * 1_024 * 1_024,
        }
    }
}

impl std::fmt::Debug for NatsSettings {
    /// Omits the address, which may contain a password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("NatsSettings")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// A message to send. An empty one with a subject for the reply is a probe.
#[derive(Debug)]
struct NatsMessage {
    subject: String,
    reply: Option<String>,
    bytes: Vec<u8>,
}

/// A connection to a NATS server. Dropping it sends the queued messages, and ends it.
#[derive(Debug)]
pub struct NatsTransport {
    own: BusPeer,
    prefix: String,
    outbox: Sender<NatsMessage>,
    queued_bytes: Arc<AtomicUsize>,
    queued_bytes_max: usize,
    inbox: BusInbox,
}

impl NatsTransport {
    /// Connects, and subscribes to the messages to this peer and to all. Blocks until that is done.
    ///
    /// # Errors
    /// [`BusConnectError`].
    pub fn connect(settings: &NatsSettings, own: BusPeer) -> Result<Self, BusConnectError> {
        let address = parse(&settings.address)?;
        let is_letter =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        if settings.prefix.is_empty() || !settings.prefix.chars().all(is_letter) {
            return Err(BusConnectError::Prefix);
        }
        let (outbox, to_send) = channel(settings.queued_messages_max.max(1));
        let inbox = BusInbox::default();
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        let connection = NatsConnection {
            address,
            subject: format!("{}.{own}", settings.prefix),
            subject_of_all: format!("{}.{}", settings.prefix, BusPeer::All),
            timeout: settings.connect_timeout,
            inbox: inbox.clone(),
            queued_bytes: queued_bytes.clone(),
        };
        let (report, connected) = sync_channel(1);
        let host = connection.address.host().to_owned();
        let unreachable = |cause: String| BusConnectError::Unreachable { host, cause };
        let spawned = thread::Builder::new()
            .name("throng bus".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                match runtime {
                    Ok(runtime) => runtime.block_on(connection.run(to_send, |connected| {
                        _ = report.send(connected);
                    })),
                    Err(error) => _ = report.send(Err(connection.unreachable(error.to_string()))),
                }
            });
        if let Err(error) = spawned {
            return Err(unreachable(error.to_string()));
        }
        match connected.recv() {
            Ok(connected) => connected?,
            Err(_) => return Err(unreachable("the thread of the bus has ended".to_owned())),
        }
        Ok(Self {
            own,
            prefix: settings.prefix.clone(),
            outbox,
            queued_bytes,
            queued_bytes_max: settings.queued_bytes_max,
            inbox,
        })
    }
}

impl BusTransport for NatsTransport {
    fn publish(&mut self, to: BusPeer, bytes: Vec<u8>) -> Result<(), BusFull> {
        let length = bytes.len();
        let queued = self.queued_bytes.fetch_add(length, Ordering::Relaxed);
        let subject = format!("{}.{to}", self.prefix);
        let has_room = queued + length <= self.queued_bytes_max;
        let message = NatsMessage {
            subject,
            reply: None,
            bytes,
        };
        if has_room && self.outbox.try_send(message).is_ok() {
            return Ok(());
        }
        self.queued_bytes.fetch_sub(length, Ordering::Relaxed);
        Err(BusFull)
    }

    fn probe(&mut self, to: BusPeer, number: u64) {
        let Self { own, prefix, .. } = self;
        let message = NatsMessage {
            subject: format!("{prefix}.{to}"),
            reply: Some(format!("{prefix}.{own}.{UNREACHABLE}.{to}.{number}")),
            bytes: Vec::new(),
        };
        // The next probe follows soon.
        let _ = self.outbox.try_send(message);
    }

    fn receive(&mut self) -> Option<BusSignal> {
        self.inbox.pop()
    }

    fn set_waker(&mut self, waker: Waker) {
        self.inbox.set_waker(waker);
    }
}

/// The connection in its thread.
struct NatsConnection {
    address: ServerAddr,
    subject: String,
    subject_of_all: String,
    timeout: Duration,
    inbox: BusInbox,
    queued_bytes: Arc<AtomicUsize>,
}

impl NatsConnection {
    fn unreachable(&self, cause: String) -> BusConnectError {
        let host = self.address.host().to_owned();
        BusConnectError::Unreachable { host, cause }
    }

    async fn run(
        self,
        mut to_send: Receiver<NatsMessage>,
        report: impl FnOnce(Result<(), BusConnectError>),
    ) {
        let connected = tokio::time::timeout(self.timeout, self.connect()).await;
        let connected = connected.unwrap_or_else(|_| {
            let cause = format!("no connection within {:?}", self.timeout);
            Err(self.unreachable(cause))
        });
        let (client, messages) = match connected {
            Ok(connected) => connected,
            Err(error) => return report(Err(error)),
        };
        report(Ok(()));
        let receiving = tokio::spawn(receive_all(messages, self.inbox.clone()));
        while let Some(message) = to_send.recv().await {
            let NatsMessage {
                subject,
                reply,
                bytes,
            } = message;
            let length = bytes.len();
            // It fails only if the client has ended. The client ends with this thread.
            let _ = match reply {
                // A server of a NATS cluster that has lost another one also replies for peers that are connected there.
                Some(_) if client.server_info().cluster.is_some() => continue,
                Some(reply) => {
                    let sent = client.publish_with_reply(subject, reply, bytes.into());
                    sent.await
                }
                None => client.publish(subject, bytes.into()).await,
            };
            self.queued_bytes.fetch_sub(length, Ordering::Relaxed);
        }
        // The timeout ends the wait if the server is away.
        let _ = tokio::time::timeout(PING_INTERVAL, client.flush()).await;
        receiving.abort();
    }

    async fn connect(
        &self,
    ) -> Result<(Client, impl Stream<Item = Message> + use<>), BusConnectError> {
        let inbox = self.inbox.clone();
        let options = with_credentials(ConnectOptions::new(), &self.address)
            .name(&self.subject)
            .connection_timeout(self.timeout)
            .ping_interval(PING_INTERVAL)
            .client_capacity(CLIENT_SENDING_MAX)
            .subscription_capacity(CLIENT_RECEIVED_MAX)
            .max_reconnects(None)
            .reconnect_delay_callback(reconnect_delay)
            .event_callback(move |event| {
                let inbox = inbox.clone();
                async move { on_event(&inbox, &event) }
            });
        let client = options.connect(self.address.clone()).await;
        let client = client.map_err(|error| match error.kind() {
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                let host = self.address.host().to_owned();
                BusConnectError::CredentialsRefused { host }
            }
            _ => self.unreachable(error.to_string()),
        })?;
        let subscribe = async |subject: &String| {
            let subscribed = client.subscribe(subject.clone()).await;
            subscribed.map_err(|error| self.unreachable(error.to_string()))
        };
        let to_all = subscribe(&self.subject_of_all).await?;
        let replies = format!("{}.{UNREACHABLE}.>", self.subject);
        let others = stream::select(subscribe(&replies).await?, to_all);
        let mut messages = stream::select(subscribe(&self.subject).await?, others);
        // When a message to this peer itself arrives, the server knows all subscriptions.
        let probe = client
            .publish(self.subject.clone(), Vec::new().into())
            .await;
        probe.map_err(|error| self.unreachable(error.to_string()))?;
        while let Some(message) = messages.next().await {
            if message.payload.is_empty() && message.reply.is_none() {
                return Ok((client, messages));
            }
            on_message(&self.inbox, message);
        }
        Err(self.unreachable("the subscription has ended".to_owned()))
    }
}

fn reconnect_delay(attempts: usize) -> Duration {
    let doublings = u32::try_from(attempts).unwrap_or(u32::MAX).min(8);
    Duration::from_millis(10 << doublings).min(RECONNECT_DELAY_MAX)
}

fn on_event(inbox: &BusInbox, event: &Event) {
    match event {
        Event::Connected => inbox.push(BusSignal::Connected),
        Event::Disconnected => inbox.push(BusSignal::Disconnected),
        Event::SlowConsumer(_) => inbox.add_dropped(1),
        other => tracing::warn!(event = %other, "bus connection reports a problem"),
    }
}

async fn receive_all(mut messages: impl Stream<Item = Message> + Unpin, inbox: BusInbox) {
    while let Some(message) = messages.next().await {
        on_message(&inbox, message);
    }
}

fn on_message(inbox: &BusInbox, message: Message) {
    if message.status == Some(StatusCode::NO_RESPONDERS) {
        let unreachable = unreachable_peer(&message.subject);
        if let Some((peer, number)) = unreachable {
            inbox.push(BusSignal::Unreachable(peer, number));
        }
    } else if !message.payload.is_empty() || message.reply.is_none() {
        inbox.push(BusSignal::Message(message.payload.into()));
    }
    // An empty message with a reply is the probe of another peer: the server has delivered it, and that is all it is for.
}

/// The peer and the number of a probe, from the subject of the reply.
fn unreachable_peer(subject: &str) -> Option<(BusPeer, u64)> {
    let (_, probe) = subject.rsplit_once(UNREACHABLE)?;
    let mut parts = probe.split('.').skip(1);
    let (kind, id, number) = (parts.next()?, parts.next()?, parts.next()?);
    let id = id.parse().ok()?;
    let peer = match kind {
        "node" => BusPeer::Node(ClusterNodeId(id)),
        "gateway" => BusPeer::Gateway(GatewayId(id)),
        _ => return None,
    };
    Some((peer, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_to_a_probe_names_the_peer() {
        let node = BusPeer::Node(ClusterNodeId(3));
        let gateway = BusPeer::Gateway(GatewayId(u32::MAX));
        for peer in [node, gateway] {
            let subject = format!("{UNREACHABLE}.node.1.{UNREACHABLE}.{peer}.17");
            assert_eq!(unreachable_peer(&subject), Some((peer, 17)), "{subject}");
        }
        for subject in [
            "",
            "a.unreachable",
            "a.unreachable.node.x.1",
            "a.unreachable.all.1.1",
            "a.unreachable.node.1",
        ] {
            assert_eq!(unreachable_peer(subject), None, "{subject}");
        }
    }
}
