//! The routes of players: the paths that their clients follow.
//!
//! Invariant: a player that has not moved since the last check and has no new path is at the same point of its route. Cost: a
//! check of the change ticks of each player and its path, and of the turning point of each changed one; in chunks, in parallel.

use bevy_ecs::change_detection::{ContiguousRef, Tick};
use bevy_ecs::prelude::*;
use bevy_ecs::query::ContiguousQueryData;
use bevy_ecs::system::SystemChangeTick;

use super::crowds::CrowdMember;
use throng::map::SceneMap;
use throng::movement::{MoveRefused, Walker};
use throng::nav::NavPath;
use throng::sim::{ColumnRows, TableColumn, Workers, chunks};
use throng::world::{Object, Position};

/// Distance at which a turning point counts as reached, in metres: more than the quantization step of positions.
const ARRIVAL_DISTANCE_M: f32 = 0.05;

/// Rows per chunk of parallel work.
const CHUNK_ROWS: usize = 1_024;

type RouteQuery = (
    &'static Object,
    Ref<'static, Position>,
    &'static mut NavPath,
);

/// Advances the routes of players by their moves, and clears the path of players whose move was refused.
pub(super) fn follow_routes(
    mut refused: MessageReader<MoveRefused>,
    mut routes: Query<RouteQuery, (With<CrowdMember>, Without<Walker>)>,
    maps: Query<&SceneMap>,
    ticks: SystemChangeTick,
    workers: Res<Workers>,
) {
    let tables = routes.contiguous_iter_mut().into_iter().flatten();
    let mut tables: Vec<RouteTable> = tables.map(RouteTable::new).collect();
    let mut rows: Vec<RouteRows> = tables.iter_mut().flat_map(RouteTable::chunks).collect();
    workers.for_each_in_turn(&mut rows, |rows| rows.follow(&maps, &ticks));
    for refusal in refused.read() {
        if let Ok((.., mut path)) = routes.get_mut(refusal.entity) {
            path.clear();
        }
    }
}

/// A table of players with routes.
struct RouteTable<'w> {
    objects: &'w [Object],
    positions: &'w [Position],
    moved_at: &'w [Tick],
    paths: TableColumn<'w, NavPath>,
}

/// A range of rows of a [`RouteTable`].
struct RouteRows<'a> {
    objects: &'a [Object],
    positions: &'a [Position],
    moved_at: &'a [Tick],
    paths: ColumnRows<'a, NavPath>,
}

impl<'w> RouteTable<'w> {
    fn new(
        (objects, positions, paths): <RouteQuery as ContiguousQueryData>::Contiguous<'w, '_>,
    ) -> Self {
        let (positions, ticks) = ContiguousRef::split(positions);
        Self {
            objects,
            positions,
            moved_at: ticks.changed(),
            paths: TableColumn::of(paths),
        }
    }

    fn chunks(&mut self) -> impl Iterator<Item = RouteRows<'_>> {
        let (mut objects, mut positions) = (self.objects, self.positions);
        let (mut moved_at, mut paths) = (self.moved_at, self.paths.rows());
        chunks(objects.len(), CHUNK_ROWS, move |rows| RouteRows {
            objects: objects.split_off(..rows).unwrap_or_default(),
            positions: positions.split_off(..rows).unwrap_or_default(),
            moved_at: moved_at.split_off(..rows).unwrap_or_default(),
            paths: paths.take_first(rows),
        })
    }
}

impl RouteRows<'_> {
    fn follow(&mut self, maps: &Query<&SceneMap>, ticks: &SystemChangeTick) {
        let (last_run, this_run) = (ticks.last_run(), ticks.this_run());
        let is_new = |tick: Tick| tick.is_newer_than(last_run, this_run);
        let mut last: Option<(Entity, &SceneMap)> = None;
        for row in 0..self.objects.len() {
            let path_at = self.paths.changed_at(row);
            // A player that reached a turning point in the last run may stand on the next one as well.
            if !is_new(self.moved_at[row]) && !is_new(path_at) && path_at != last_run {
                continue;
            }
            let path = self.paths.get(row);
            let Some(&turn) = path.remaining().first() else {
                continue;
            };
            let scene = self.objects[row].scene_entity();
            let map = match last {
                Some((last, map)) if last == scene => map,
                _ => {
                    let Ok(map) = maps.get(scene) else { continue };
                    last = Some((scene, map));
                    map
                }
            };
            if map.centre_of(turn).distance(self.positions[row].0) > ARRIVAL_DISTANCE_M {
                continue;
            }
            let path = self.paths.get_mut(row);
            path.advance_to(path.next() + 1);
            // A player at the end of its path gets an empty path, and chooses its next goal.
            if path.remaining().is_empty() {
                path.clear();
            }
        }
    }
}
