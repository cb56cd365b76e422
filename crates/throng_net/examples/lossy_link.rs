//! Two endpoints over a path that loses a third of all packets: every message on a stream arrives once and in order.
#![allow(clippy::print_stdout, reason = "an example talks")]

use throng_net::{EndpointSettings, PacketStamp, ReliableEndpoint, StreamId};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = EndpointSettings::default();
    let (mut server, mut client) = (
        ReliableEndpoint::new(settings),
        ReliableEndpoint::new(settings.for_client()),
    );
    let (mut sent, mut lost, mut received) = (0, 0, Vec::new());
    let mut buffer = Vec::new();
    for tick in 0..200_u16 {
        let now_us = u64::from(tick) * 50_000;
        if tick < 100 {
            server.push(StreamId::World, format!("message {tick}").as_bytes())?;
        }
        let stamp = PacketStamp {
            tick,
            ..PacketStamp::default()
        };
        let mut packets = Vec::new();
        server.flush(now_us, stamp, usize::MAX, &mut buffer, |packet| {
            packets.push(packet.to_vec());
        });
        for packet in packets {
            sent += 1;
            if sent % 3 == 0 {
                lost += 1;
                continue;
            }
            client.receive(now_us, &packet, |delivery| {
                received.push(String::from_utf8_lossy(delivery.bytes).into_owned());
            })?;
        }
        // The client's packets carry the acknowledgements; they are not lost here.
        let mut answers = Vec::new();
        client.flush(now_us, stamp, usize::MAX, &mut buffer, |packet| {
            answers.push(packet.to_vec());
        });
        for packet in answers {
            server.receive(now_us, &packet, |_| ())?;
        }
    }
    let expected = (0..100).map(|tick| format!("message {tick}"));
    assert!(received.iter().eq(expected.collect::<Vec<_>>().iter()));
    println!(
        "{sent} packets sent, {lost} lost, {} messages received in order",
        received.len()
    );
    Ok(())
}
