//! Objects: spawning, despawning, hashing their state.

use criterion::{BatchSize, Criterion};
use glam::Vec2;
use throng::world::{KindId, SceneSpec, despawn_object, open_scene, spawn_object};
use throng_scenario::testing::TestServer;

const OBJECTS: u32 = 10_000;

pub fn bench(criterion: &mut Criterion) {
    criterion.bench_function(&format!("world::spawn/{OBJECTS}"), |bencher| {
        bencher.iter_batched_ref(
            TestServer::default_with_scene,
            |(server, scene)| assert_eq!(spawn_all(server, *scene).len(), OBJECTS as usize),
            BatchSize::LargeInput,
        );
    });
    criterion.bench_function(&format!("world::despawn/{OBJECTS}"), |bencher| {
        bencher.iter_batched_ref(
            || {
                let (mut server, scene) = TestServer::default_with_scene();
                let objects = spawn_all(&mut server, scene);
                (server, objects)
            },
            |(server, objects)| {
                for &object in &*objects {
                    despawn_object(server.world_mut(), object).expect("the object exists");
                }
            },
            BatchSize::LargeInput,
        );
    });
    let (mut server, scene) = TestServer::default_with_scene();
    spawn_all(&mut server, scene);
    let expected = server.state_hash();
    criterion.bench_function(&format!("world::state_hash/{OBJECTS}"), |bencher| {
        bencher.iter(|| assert_eq!(server.state_hash(), expected));
    });
}

trait WithScene: Sized {
    /// A server with an open scene that has room for all objects.
    fn default_with_scene() -> (Self, bevy_ecs::entity::Entity);
}

impl WithScene for TestServer {
    fn default_with_scene() -> (Self, bevy_ecs::entity::Entity) {
        let mut server = Self::builder().build();
        let spec = SceneSpec {
            max_objects: OBJECTS,
            ..SceneSpec::default()
        };
        let scene = open_scene(server.world_mut(), spec, ())
            .expect("the settings of the scene are within limits");
        (server, scene)
    }
}

fn spawn_all(
    server: &mut TestServer,
    scene: bevy_ecs::entity::Entity,
) -> Vec<bevy_ecs::entity::Entity> {
    let position = |n: u32| Vec2::new((n % 100) as f32, (n / 100) as f32) * 10.0;
    let spawn = |n| spawn_object(server.world_mut(), scene, KindId(0), position(n), ());
    (0..OBJECTS)
        .map(spawn)
        .collect::<Result<_, _>>()
        .expect("the scene has room")
}
