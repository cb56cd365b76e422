#![doc = include_str!("../README.md")]
//!
//! # Packets
//!
//! A datagram contains one sealed packet. The format is the same in both directions. Integers are little endian; a *length* is a varint
//! as in [`wire`](throng_protocol::wire). Number *a* is newer than *b* if (a − b) modulo 65,536 is between 1 and 32,767.
//!
//! | bytes | content |
//! |---|---|
//! | 0 | flags. Bits 0–1: number of stream frames. Bit 2: a bitmap follows. Bit 3: an input follows. Bit 4: the receiver has to reply soon. Bit 5: the bitmap has four bytes instead of two. Bits 6–7: 0. Another bit, or bit 5 without bit 2, is an error |
//! | 1 | epoch of the unreliable messages |
//! | 2–3 | number of the packet: counts the packets of this direction from 0, modulo 65,536 |
//! | 4–5 | tick of the sender, modulo 65,536 |
//! | 6–7 | number of the newest packet received; 65,535 before the first |
//! | | bitmap, 2 or 4 bytes: which packets before the newest were received. Bit 0 is the packet just before it. A bit of 0 makes no statement. Without a bitmap, each of the 32 packets before the newest was received or never sent |
//! | | input, 2 bytes: number of the last input that was handled; see [`wire`](throng_protocol::wire) |
//! | | the stream frames |
//! | | unreliable messages, each after its length, in the order in which they were sent, until the end. A length of 0 marks the rest as padding |
//!
//! A *stream frame* is 2 bytes (bits 0–10: number of its bytes, bits 11–12: its stream, bits 13–15: 0), then 3 bytes (offset of its first
//! byte in the stream, modulo 2²⁴), then its bytes. A packet has at most 2,047 bytes.
//!
//! Each direction has four streams: the world, announcements, messages of the game, and long messages. A stream is a sequence of messages,
//! each after its length. The length is 1 to 1,048,576 towards the client and 1 to 1,024 towards the server; another length ends the
//! connection. A message may be spread over any number of frames, and a frame may begin and end anywhere. The same bytes of a stream may
//! arrive any number of times, at the same offsets. A sender is at most 65,536 bytes towards the client, and 8,192 bytes towards the
//! server, ahead of the last byte that it knows to have arrived. Bytes further ahead are neither stored nor acknowledged.
//!
//! A packet is dropped if it was received before, is older than the bitmap reaches, or acknowledges a packet that was never sent. Any
//! packet is a reply. A side with nothing to send replies with an empty packet that requests no reply. A packet is received completely or
//! not at all.
//!
//! # WebSockets
//!
//! A WebSocket (RFC 6455) loses nothing, keeps the order and separates messages. So it has no encryption of its own, no stream frames and
//! no acknowledgements. The path is `/play`. Only binary messages are allowed; another type, or a client message longer than 1,078 bytes,
//! ends the connection.
//!
//! | message | content |
//! |---|---|
//! | first of the client | a request, 1,078 bytes: a byte 0, `THRONG NET\0`, [`PROTOCOL_VERSION`](throng_protocol::wire::PROTOCOL_VERSION) in 2 bytes, then bytes 13–20 (protocol id) and 29–1,084 (expiry, nonce with the id of the key, sealed part) of the connect token. The token has 2,048 bytes; the keys at its end stay with the client |
//! | later ones of the client | one message of [`wire`](throng_protocol::wire) each, first *Login* or *Resume* |
//! | all of the server | one packet of [`wire`](throng_protocol::wire) each, with its header, of either channel. Reliable packets arrive in the order of their sequence numbers; unreliable ones are dropped while the send queue is too full |
//!
//! The answer to the first message is packets, or the end. The server sends pings, and the client answers them as in RFC 6455. A client
//! that does not answer within the timeout of its token is lost. Close codes: 1000: the server has ended the session, and the last packet
//! (*Closed*) has the reason. 1008: the token is invalid, or a message could not be decoded. 1013: the server is full; the token can be used
//! again. 4000 and the number of a [`CloseReason`](throng_protocol::wire::CloseReason): that reason, for a client that may not have received
//! *Closed*. 4100 and a version: the client speaks another version of the protocol than the server, whose version it is. A client that leaves
//! closes the connection. After any other end it may connect with another token and send *Resume*.
//!
//! A client whose connection was lost, or that was behind (4003), may send the same request again for
//! [`return_s`](ServerHandshakeSettings::return_s) seconds, also after the token has expired. It then sends *Resume*; *Login* is refused.
//! While the server counts the earlier connection as open, the request is refused (1008): the client tries again. A client that gives up a
//! silent connection closes it with 4014, since the server may still receive that: any other code means that the client leaves.
//!
//! # WebTransport
//!
//! A WebTransport session over HTTP/3 (RFC 9220, 9221) at the path `/play`, on the UDP port with the number of the WebSocket port. The
//! server makes its own certificate, a new one every six days. `GET /webtransport` on the WebSocket port returns its hash as JSON: `path`,
//! and `sha256` in 64 hexadecimal digits; without WebTransport the answer is 204.
//!
//! | what | content |
//! |---|---|
//! | first bidirectional stream of the client | from the client: the request of 1,078 bytes, as on a WebSocket. From the server: nothing until it ends the session, then two bytes, little endian: a close code as above |
//! | datagrams in both directions | one [packet](#packets) each, which QUIC encrypts |
//!
//! Streams and unreliable messages of the client contain messages of [`wire`](throng_protocol::wire), first *Login* or *Resume*. Messages
//! that must keep their order use one stream. Those of the server contain packets of [`wire`](throng_protocol::wire) with their headers:
//! reliable ones on the first stream, in the order of their sequence numbers; unreliable ones as unreliable messages or, if one is too long,
//! on the last stream. Ignore tick, epoch and input in the header of a datagram; the packets inside have their own. Both sides count
//! packets
//! and bytes of streams from 0.
//!
//! A client may send datagrams as soon as it has sent its request; until it is admitted they may be lost. It repeats what was not
//! acknowledged after about a round trip and a tick of the server, and sends at least one packet per second. A client is lost if it is
//! silent for the timeout of its token (bytes 1,085–1,088, seconds, little endian, negative: unlimited), or if it sends packets for 12
//! seconds without acknowledging any. When the client has received the two bytes of the server, it closes the session; the server closes it
//! one second later. A client that leaves closes the session. One that returns does so as over a WebSocket, and closes a silent session
//! with 4014.
#![warn(missing_docs)]

// | file | what it holds |
// | `endpoint` | one end of a connection |
// | `stream`, `tail` | ordered byte streams; unreliable messages until the next packet |
// | `packet`, `acks`, `repeat` | the format of packets; acknowledgements; when to retransmit |
// | `bucket`, `mtu` | the send rate, and the length of packets |
// | `token`, `token_keys`, `handshake`, `cipher` | connect tokens; encrypted packets |
// | `server_endpoint`, `connection`, `client`, `path` | a connection at the server and at the client; a client whose address changes |
// | `udp`, `web`, `http` | sockets and threads |
// | `inbox`, `outbox` | queues to and from the tick |
// | `bot_client`, `conditioner`, `workload` | a synthetic player, a simulated network, workloads for benchmarks (feature `bench`) |

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/draws.rs"]
mod draws;

mod acks;
mod address_range;
#[cfg(any(test, feature = "bench"))]
pub mod bot_client;
mod bucket;
mod cipher;
mod client;
#[cfg(any(test, feature = "bench"))]
pub mod conditioner;
mod connection;
mod connection_stats;
mod counters;
mod endpoint;
mod handshake;
#[cfg(feature = "http")]
#[doc(hidden)]
pub mod http;
pub mod inbox;
mod mtu;
pub mod outbox;
mod packet;
mod path;
mod reset;
mod retransmit;
mod server_endpoint;
mod stream;
#[cfg(test)]
mod tests;
mod token;
mod token_keys;
mod udp;
mod unreliable;
#[cfg(feature = "web")]
mod web;
#[cfg(any(test, feature = "bench"))]
pub mod workload;

pub use address_range::{AddressRange, InvalidAddressRange};
pub use cipher::{
    ConnectionCipher, DecryptError, KEY_BYTES, RandomnessUnavailable, ReplayWindow, SEALING_BYTES,
    SealedKind, SecretKey, TAG_BYTES,
};
pub use client::{ClientConnection, ConnectionError, DatagramError};
pub use connection_stats::ConnectionStats;
pub use endpoint::{
    CountersStart, EndpointSettings, EndpointStats, PacketError, ReceivedMessage, ReliableEndpoint,
    SendError,
};
pub use handshake::{
    AcceptedClient, ClientHandshake, ClientHandshakeError, ServerHandshake, ServerHandshakeError,
    ServerHandshakeSettings, TokenIdentity, UsedTokens,
};
#[cfg(feature = "http")]
pub use http::{
    InvalidOrigin, PortSettings, PublicOrigin, TlsCertificate, TlsError, TlsFiles, TlsReloader,
};
pub use packet::{PACKET_BYTES_MAX, PacketStamp, StreamId};
pub use stream::WINDOW_BYTES_MAX;
pub use token::{
    CONNECT_TOKEN_BYTES, ConnectToken, PROTOCOL_ID, TOKEN_ADDRESSES_MAX, TokenClaims, TokenError,
    TokenUserData, USER_DATA_BYTES,
};
pub use token_keys::{InvalidTokenKeys, TOKEN_KEYS_MAX, TokenKey, TokenKeys};
#[cfg(any(test, feature = "bench"))]
pub use udp::hostile;
pub use udp::{
    ConnectionHandler, ServerSocket, SocketTotals, UdpClient, UdpServer, UdpServerSink,
    UdpSettings, UdpStats,
};
#[cfg(feature = "webtransport")]
pub use web::WebTransportSettings;
#[cfg(feature = "web")]
pub use web::{WebServer, WebServerSink, WebSettings, WebSocketListener, WebStats, map_bytes};
