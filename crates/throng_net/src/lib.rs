#![doc = include_str!("../README.md")]
//!
//! # Packets
//! They travel inside what seals them, in datagrams, the same in both directions. All integers are
//! little endian; a *length* is a varint as of [`wire`](throng_protocol::wire). *a* is newer than *b* when (a − b) modulo 65,536 is 1 to
//! 32,767.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | flags. Bits 0–1: the number of pieces. 2: a bitmap follows. 3: an input follows. 4: an answer is wanted soon. 5: the bitmap has four bytes, not two. 6–7: 0. A packet with another bit set, or bit 5 without bit 2, is an error |
//! | 1 | epoch of the unreliable messages |
//! | 2–3 | number of the packet: counts those of its direction from 0 on, modulo 65,536 |
//! | 4–5 | the sender's tick, modulo 65,536 |
//! | 6–7 | number of the newest packet that was received; 65,535 before the first |
//! | | bitmap, 2 or 4 bytes: which packets before the newest were received. Bit 0 is the one just before it. A bit that is 0 says nothing. Without a bitmap all 32 before the newest were received, or never sent |
//! | | input, 2 bytes: the last input that was handled; see [`wire`](throng_protocol::wire) |
//! | | the pieces |
//! | | unreliable messages until the end, each behind its length, in the order in which they were said. A length of 0 says that what follows is filling |
//!
//! A *piece* is 2 bytes, bits 0–10 the number of its bytes, bits 11–12 its stream, 13–15 0; then 3 bytes, the offset of its
//! first byte in the stream modulo 2²⁴; then its bytes. A packet has at most 2,047 bytes.
//!
//! Of each direction there are four streams, for the world, announcements, the game's own, and what is long. A stream is messages
//! side by side, each behind its length, which is 1 to 1,048,576 towards the client and 1 to 1,024 towards
//! the server; another length ends the connection. A message may go over
//! any number of pieces, and a piece may begin and end anywhere. Of a stream the same bytes come any number of times, at the
//! same offsets. Its sender is never further ahead of the last byte that it knows to have arrived than 65,536 bytes towards the client
//! and 8,192 towards the server; what comes further ahead is not kept, nor acknowledged.
//!
//! A packet that was received before, is older than the bitmap reaches, or acknowledges what was never sent, is dropped. An
//! answer is any packet; who has nothing to say answers a packet that wants it with one that is empty and wants none. Every
//! packet counts as received as a whole or not at all.
//!
//! # WebSockets
//! A WebSocket (RFC 6455) loses nothing, keeps the order and says where a message ends, so nothing of the above is in it: no seal, no
//! pieces, no acknowledgements. It is opened at `/play`, and has binary messages alone; any other, or one of the client that is longer than
//! 1,078 bytes, ends the connection.
//!
//! | message | what |
//! |---|---|
//! | the client's first | a request as in netcode 1.02, 1,078 bytes: 0, then of the connect token (2,048 bytes) the bytes 0–20 (version and protocol) and 29–1,084 (expiry, nonce, what is sealed). The keys at the token's end stay with the client |
//! | each later one of the client | a message as of [`wire`](throng_protocol::wire), the first of them *Login* or *Resume* |
//! | each of the server | a packet as of [`wire`](throng_protocol::wire), of either channel, with its header. Reliable ones come in the order of their sequence; unreliable ones are left out where too much waits |
//!
//! To the first message there is no answer but packets, or the end. The server pings, and a client answers as RFC 6455 says: who does not
//! within the timeout of its token is lost. The connection ends with the code 1000 where the server is done with the client, which the
//! last packet (*Closed*) gives the reason of; 1008 where the token is good for nothing or a message made no sense; 1013 where there
//! is no room. A client that leaves closes; one whose connection ends otherwise may connect with another token and *Resume*.
//!
//! # WebTransport
//! A session of WebTransport over HTTP/3 (W3C; RFC 9220, 9221) at the path `/play`, on UDP of the port that WebSockets have on TCP. The
//! server makes its certificate itself, anew every six days, and tells its SHA-256 to who asks for `/webtransport` there: an object in
//! JSON, with the fields `path`, and `sha256` in 64 hexadecimal digits.
//!
//! | what | has |
//! |---|---|
//! | a stream in both directions, the client's first | of the client the request, 1,078 bytes, as it is the first message of a WebSocket; of the server nothing, until it ends the session: then two bytes, little endian, which are 1000, 1008 or 1013 as above |
//! | a datagram, in either direction | a [packet](#packets), which QUIC seals |
//!
//! The client's streams and unreliable messages hold messages as of [`wire`](throng_protocol::wire), the first of them *Login* or *Resume*; all that
//! is to come in its order goes on one stream. The server's hold packets as of [`wire`](throng_protocol::wire), with their headers: reliable ones on
//! the first stream, in the order of their sequence; unreliable ones as unreliable messages or, where one is too long for that, on the last
//! stream. Of the tick, epoch and input in a datagram's own head nothing has to be heeded, since those packets have theirs. Both ends begin
//! to count at 0, packets as well as the bytes of each stream.
//!
//! A client may send datagrams as soon as its request is out: until it is let in they are kept or lost, as any may be. It repeats what it
//! said until that is acknowledged, about when a round trip and a tick of the server have passed, and sends a packet a second at least. Who
//! is not heard of for as long as its token says (bytes 1,085–1,088, in seconds, little endian; below 0 for ever), or speaks
//! for 12 seconds without acknowledging anything, is lost. When the server has said its two bytes the client closes the session; a second later it is gone anyway. A
//! client that leaves closes the session.
#![warn(missing_docs)]

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/draws.rs"]
mod draws;

mod acks;
mod bucket;
mod client;
mod connection;
mod counters;
mod endpoint;
mod handshake;
#[cfg(feature = "http")]
#[doc(hidden)]
pub mod http;
pub mod inbox;
#[cfg(any(test, feature = "bench"))]
pub mod link;
mod mtu;
pub mod outbox;
mod packet;
mod path;
#[cfg(any(test, feature = "bench"))]
pub mod rambler;
mod repeat;
mod seal;
mod server_endpoint;
mod stream;
mod tail;
#[cfg(test)]
mod tests;
mod token;
mod udp;
#[cfg(feature = "web")]
mod web;
#[cfg(any(test, feature = "bench"))]
pub mod workload;

pub use client::{ClientConnection, ConnectionEnd, DatagramRefused};
pub use endpoint::{
    CountersStart, Delivery, Endpoint, EndpointSettings, EndpointStats, PacketRefused, PushRefused,
};
pub use handshake::{
    Admitted, ClientHandshake, ConnectFailed, Gate, GateRefused, GateSettings, SeenTokens,
    TokenBearer,
};
pub use packet::{PACKET_BYTES_MAX, PacketStamp, StreamId};
pub use seal::{
    KEY_BYTES, NoRandomness, ReplayWindow, SEALING_BYTES, SealRefused, SealedKind, SealedLine,
    SecretKey, TAG_BYTES,
};
pub use stream::WINDOW_BYTES_MAX;
pub use token::{
    CONNECT_TOKEN_BYTES, ConnectToken, PROTOCOL_ID, TOKEN_ADDRESSES_MAX, TokenClaims, TokenError,
    USER_DATA_BYTES,
};
pub use udp::{
    ClientIntake, ServerSocket, SocketTotals, UdpClient, UdpServer, UdpServerSink, UdpSettings,
    UdpStats,
};
#[cfg(feature = "webtransport")]
pub use web::WebTransportSettings;
#[cfg(feature = "web")]
pub use web::{
    AddressRange, InvalidAddressRange, WebServer, WebServerSink, WebSettings, WebSocketListener,
    WebStats, map_bytes,
};
