//! Compares a client's mirror with the server, over a separate loopback connection; for tests.
//!
//! A client sends its mirror as the packet that would create an equal one. The server creates that mirror and compares it with its world. A
//! request is a line; a `mirror` request is followed by the given number of bytes. A reply is a line.
//!
//! | request | reply |
//! |---|---|
//! | `rest` | `resting`; from then on all crowds stand still |
//! | `mirror PLAYER BYTES` | `same`, `differs: ` and the difference, or `away` if the player has no session |

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use bevy_ecs::prelude::*;

use super::CliError;
use throng::session::Sessions;
use throng::sync::{AttributeValues, Mirror, compare_mirror};
use throng::wire::{
    Channel, Hello, MESSAGE_BYTES_MAX, MTU_DEFAULT_BYTES, PacketHeader, tick_millihertz,
    write_attribute, write_controlled_object, write_scene, write_snapshot_header,
    write_unseen_header,
};
use throng::world::PlayerId;

/// Maximum number of requests pending for the next tick.
const REQUESTS_MAX: usize = 64;

/// Timeout of each end.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A request, and the channel for its reply.
struct MirrorCheckRequest {
    query: MirrorCheckQuery,
    reply: SyncSender<String>,
}

enum MirrorCheckQuery {
    Halt,
    Mirror(PlayerId, Vec<u8>),
}

/// The server's end.
pub(super) struct MirrorCheckServer {
    requests: Receiver<MirrorCheckRequest>,
    pub address: SocketAddr,
}

impl MirrorCheckServer {
    /// Listens at a loopback address, and answers requests from now on.
    pub fn listen(address: SocketAddr) -> Result<Self, CliError> {
        let named = |what: &dyn std::fmt::Display| {
            CliError::new(format!("--mirror-check {address}: {what}"))
        };
        if !address.ip().is_loopback() {
            return Err(named(
                &"expected a loopback address: the mirror check has no authentication",
            ));
        }
        let listener = TcpListener::bind(address).map_err(|error| named(&error))?;
        let address = listener.local_addr().map_err(|error| named(&error))?;
        let (requests, received) = sync_channel(REQUESTS_MAX);
        thread::spawn(move || {
            // One connection after the other: the only clients are tests.
            for stream in listener.incoming().flatten() {
                if let Err(error) = serve_connection(&stream, &requests) {
                    tracing::debug!(%error, "mirror check reply not sent");
                }
            }
        });
        Ok(Self {
            requests: received,
            address,
        })
    }

    /// Answers the requests since the last tick. Returns whether one of them asked the world to come to rest.
    pub fn handle_requests(&self, world: &World) -> bool {
        let mut rests = false;
        for MirrorCheckRequest {
            query: what,
            reply: answer,
        } in self.requests.try_iter().take(REQUESTS_MAX)
        {
            let text = match what {
                MirrorCheckQuery::Halt => {
                    rests = true;
                    "resting".to_owned()
                }
                MirrorCheckQuery::Mirror(player, packet) => compare_packet(world, player, &packet),
            };
            // If the reply cannot be sent, the client has disconnected.
            let _ = answer.try_send(text);
        }
        rests
    }
}

fn compare_packet(world: &World, player: PlayerId, packet: &[u8]) -> String {
    let Some(client) = world.resource::<Sessions>().client_of(player) else {
        return "away".to_owned();
    };
    let mut mirror = Mirror::default();
    let taken = mirror.receive(packet).map_err(|error| error.to_string());
    match taken.and_then(|()| compare_mirror(world, client, &mirror)) {
        Ok(()) => "same".to_owned(),
        Err(what) => format!("differs: {}", what.replace('\n', " ")),
    }
}

/// Reads requests until the connection ends, and sends the replies in order.
fn serve_connection(
    stream: &TcpStream,
    requests: &SyncSender<MirrorCheckRequest>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut reader = BufReader::new(stream);
    thread::scope(|scope| {
        let (answer, answered) = sync_channel(REQUESTS_MAX);
        scope.spawn(move || {
            for text in answered {
                // An error means that the client has disconnected; the next request ends the loop.
                let _: io::Result<()> = writeln!(&*stream, "{text}");
            }
        });
        while let Some(what) = read_query(&mut reader)? {
            let answer = answer.clone();
            if requests
                .send(MirrorCheckRequest {
                    query: what,
                    reply: answer,
                })
                .is_err()
            {
                break;
            }
        }
        Ok(())
    })
}

/// The next request; `None` at the end of the stream.
fn read_query(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<MirrorCheckQuery>> {
    let mut line = String::new();
    if reader.by_ref().take(100).read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["rest"] => Ok(Some(MirrorCheckQuery::Halt)),
        ["mirror", player, length] => {
            let player = player.parse().map_err(|_| invalid())?;
            let length = length.parse().map_err(|_| invalid())?;
            if length > MESSAGE_BYTES_MAX {
                return Err(invalid());
            }
            let mut packet = vec![0; length];
            reader.read_exact(&mut packet)?;
            Ok(Some(MirrorCheckQuery::Mirror(PlayerId(player), packet)))
        }
        _ => Err(invalid()),
    }
}

/// The client's end.
pub(super) struct MirrorCheckClient {
    stream: BufReader<TcpStream>,
}

impl MirrorCheckClient {
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Asks the server to bring the world to rest.
    pub fn request_halt(&mut self) -> io::Result<String> {
        self.stream.get_mut().write_all(b"rest\n")?;
        self.read_reply()
    }

    /// The server's replies for the mirrors of players, in order.
    pub fn compare(&mut self, held: &[(u64, &Mirror)]) -> io::Result<Vec<String>> {
        let mut answers = Vec::with_capacity(held.len());
        // Sends at most as many requests as the server accepts before a reply is read.
        for some in held.chunks(REQUESTS_MAX / 2) {
            let mut questions = Vec::new();
            for (player, mirror) in some {
                let packet = mirror_packet(mirror);
                writeln!(questions, "mirror {player} {}", packet.len())?;
                questions.extend(packet);
            }
            self.stream.get_mut().write_all(&questions)?;
            for _ in some {
                answers.push(self.read_reply()?);
            }
        }
        Ok(answers)
    }

    fn read_reply(&mut self) -> io::Result<String> {
        let mut answer = String::new();
        self.stream.read_line(&mut answer)?;
        Ok(answer.trim_end().to_owned())
    }
}

/// The packet that creates a mirror equal to this one.
fn mirror_packet(mirror: &Mirror) -> Vec<u8> {
    let header = PacketHeader {
        channel: Channel::Reliable,
        epoch: 1,
        sequence: 0,
        tick: mirror.tick() as u16,
        input: 0,
    };
    let mut bytes = header.to_bytes().to_vec();
    let hello = Hello {
        client: 0,
        tick_millihertz: tick_millihertz(mirror.tick_s()),
        tick: mirror.tick(),
        mtu_bytes: MTU_DEFAULT_BYTES as u32,
    };
    hello.write(&mut bytes);
    if let Some(scene) = mirror.scene() {
        write_scene(&mut bytes, scene, mirror.size_m());
    }
    if let Some((id, generation)) = mirror.controlled_object() {
        write_controlled_object(&mut bytes, id, generation);
    }
    let write_all = |bytes: &mut Vec<u8>, attributes: &AttributeValues| {
        for (id, value) in attributes.iter() {
            write_attribute(bytes, id, value);
        }
    };
    for id in mirror.ids() {
        if let Some(object) = mirror.object(id) {
            let (generation, kind) = (object.generation, object.kind);
            let count = object.attributes.len() as u16;
            write_snapshot_header(&mut bytes, id, generation, kind, object.motion, count);
            write_all(&mut bytes, &object.attributes);
        }
    }
    for (of, remote) in mirror.unseen_objects() {
        write_unseen_header(&mut bytes, of, remote.kind, remote.attributes.len() as u16);
        write_all(&mut bytes, &remote.attributes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng::sync::compare_mirror_exactly;
    use throng::wire::ClientId;
    use throng_scenario::testing::TestServer;

    #[test]
    fn mirror_packet_restores_an_equal_mirror() {
        let mut server = TestServer::builder().crowd(30).build();
        server.record_sent();
        server.step(60);
        let client = ClientId(1);
        let mut mirror = Mirror::default();
        for packet in server.sent_to(client) {
            mirror.receive(&packet).unwrap();
        }
        assert!(mirror.ids().len() > 1);
        let packet = mirror_packet(&mirror);
        let mut again = Mirror::default();
        again.receive(&packet).unwrap();
        assert_eq!(mirror_packet(&again), packet);
        assert_eq!(
            (again.ids(), again.controlled_object()),
            (mirror.ids(), mirror.controlled_object())
        );
        let comparison = |mirror| compare_mirror_exactly(server.world(), client, mirror);
        assert_eq!(comparison(&again), comparison(&mirror));
        assert!(comparison(&Mirror::default()).is_err());
    }
}
