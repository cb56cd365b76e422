//! Promise: a client in a browser plays at a gateway over a WebSocket, also during hand-offs, and resumes after its connection was lost.

use throng_client::ClientEvent;
use throng_cluster::LocalBus;

use crate::play::nodes::{Carrier, Gold};
use crate::play::{Cluster, GATEWAY};

fn start() -> Cluster {
    let mut cluster = Cluster::start(Carrier::Memory(LocalBus::default()), &[GATEWAY]);
    cluster.connect_web();
    cluster.until_plays(0, 0);
    cluster
}

/// Hands the player to another node while it walks. Its gold is changed before.
fn hand_off(cluster: &mut Cluster, (from, to): (usize, usize), gold: u16) {
    cluster.walk(from, (gold * 37) as u8);
    let player = cluster.nodes[from].player().unwrap();
    let world = cluster.nodes[from].server.world_mut();
    world.get_mut::<Gold>(player).unwrap().0 = gold;
    cluster.move_player(from, to);
    cluster.until("the other node", |cluster| {
        cluster.nodes[to].player().is_some()
    });
    cluster.until_plays(to, gold);
}

fn resumes(cluster: &Cluster) -> usize {
    let resumed = |event: &&ClientEvent| matches!(event, ClientEvent::Resumed { .. });
    cluster.events.iter().filter(resumed).count()
}

#[test]
fn web_client_plays_during_hand_offs() {
    let mut cluster = start();
    for gold in 1..=6 {
        let from = usize::from(gold % 2 == 0);
        hand_off(&mut cluster, (from, 1 - from), gold);
    }
    assert_eq!(cluster.end(), None);
    let stats = cluster.gateways[0].gateway.stats();
    assert_eq!((stats.connected, stats.taken_over), (1, 6));
    assert_eq!((stats.lost, stats.stuck, stats.unreadable), (0, 0, 0));
    let web = cluster.gateways[0].web.stats();
    assert_eq!((web.clients, web.clients_accepted, web.lost), (1, 1, 0));
    assert_eq!(cluster.gateways[0].udp.stats().clients, 0);
    // It logs out, and is saved as it is then.
    cluster.client.take().unwrap().leave();
    cluster.until("the end", |cluster| cluster.nodes[0].player().is_none());
    cluster.connect_web();
    cluster.until_plays(0, 6);
}

#[test]
fn web_client_resumes_at_its_gateway() {
    let mut cluster = start();
    hand_off(&mut cluster, (0, 1), 3);
    let (before, logins) = (resumes(&cluster), cluster.stats(1).logins);
    cluster.client.as_ref().unwrap().lose_socket();
    let mut client = cluster.client.take().unwrap();
    cluster.until("the loss", |cluster| {
        cluster.gateways[0].web.stats().lost == 1
    });
    let object = client.session().mirror().controlled_object();
    client.resume_at(cluster.gateways[0].web.address());
    cluster.client = Some(client);
    cluster.until("the resume", |cluster| resumes(cluster) > before);
    cluster.until_plays(1, 3);
    assert_eq!(
        cluster.client().session().mirror().controlled_object(),
        object
    );
    assert_eq!(cluster.stats(1).logins, logins);
    // Its connection goes on like the first one.
    hand_off(&mut cluster, (1, 0), 4);
    assert_eq!(cluster.end(), None);
}
