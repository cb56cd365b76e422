//! Which page receives what, and when.

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::*;
use glam::Vec2;

use super::heatmap::HeatmapRecorder;
use super::matches::matches_json;
use super::search::found_json;
use super::selected::{selected_json, waiting_party};
use super::sessions::sessions_json;
use super::summary::{hello_json, state_json};
use super::waits::WaitReasons;
use crate::frames::{Dot, dots_frame};
use crate::protocol::{
    ActionPreset, HeatOf, InspectStats, PageQuery, PageUpdate, RunPace, SessionListQuery,
};
use throng::map::SceneMap;
use throng::world::{Object, Position, SceneId, Scenes, SimScene, TeamId};

/// Maximum rate of crowd frames per page, per second.
const DOTS_PER_S: f64 = 10.0;

/// Rate of updates of the selected object.
const SELECTED_PER_S: f64 = 5.0;

/// Rate of figures.
const STATES_PER_S: f64 = 2.0;

/// Rate of checks why a party waits, and of the list of waiting parties.
const WAITS_PER_S: f64 = 2.0;

/// Rate of the list of sessions, and of matches, queues and parties.
const LISTS_PER_S: f64 = 1.0;

/// Rate of searches: of several of a page, the last one is answered.
const SEARCHES_PER_S: f64 = 10.0;

/// Rate of heat maps.
const HEATS_PER_S: f64 = 2.0;

/// Maximum rate of edited maps.
const MAPS_PER_S: f64 = 1.0;

/// The pages that are open.
#[derive(Default)]
pub(super) struct OpenPages {
    open: BTreeMap<u64, OpenPage>,
    /// The last tick whose times were sent.
    sent_tick: u64,
    /// The last tick after which updates were sent.
    updated_tick: u64,
    /// The dots of each scene that is looked at; kept for their room.
    dots: Vec<Vec<Dot>>,
    waits: WaitReasons,
    heatmap: HeatmapRecorder,
    /// What pages propose to be done, if they may ask for anything.
    action_presets: Option<Vec<ActionPreset>>,
    /// How the run goes on, if they may say so.
    pub pace: Option<RunPace>,
}

/// A page that is open.
#[derive(Default)]
struct OpenPage {
    query: PageQuery,
    has_hello: bool,
    /// The search that is not answered yet.
    search: Option<String>,
    /// Whether the lists that it shows were not sent yet.
    is_list_due: bool,
    /// The map that it has: the scene, and its number of edits.
    map: Option<(u32, u64)>,
    /// When the next map may be sent.
    next_map_tick: u64,
}

type PageMessages = Vec<(Vec<u64>, PageUpdate)>;

/// Gathered memory figures, and the page counters.
type PageStats<'a> = (&'a [(&'static str, usize)], InspectStats);

impl OpenPages {
    pub fn new(proposals: Option<Vec<ActionPreset>>, pace: Option<RunPace>) -> Self {
        Self {
            action_presets: proposals,
            pace,
            ..Self::default()
        }
    }

    /// All that are open.
    pub fn ids(&self) -> Vec<u64> {
        self.open.keys().copied().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub fn open(&mut self, page: u64) {
        self.open.insert(page, OpenPage::default());
    }

    pub fn set_query(&mut self, page: u64, look: PageQuery) {
        if let Some(shown) = self.open.get_mut(&page) {
            // Another order, or another list: it is sent without a pause.
            let lists = |query: &PageQuery| (query.sessions, query.matches);
            shown.is_list_due |= lists(&shown.query) != lists(&look);
            shown.query = look;
        }
    }

    pub fn set_search(&mut self, page: u64, text: String) {
        if let Some(shown) = self.open.get_mut(&page) {
            shown.search = Some(text);
        }
    }

    pub fn close(&mut self, page: u64) {
        self.open.remove(&page);
    }

    /// These pages missed the one-time greeting: it is sent again.
    pub fn resend(&mut self, pages: &[u64], is_greeting: bool) {
        for page in pages {
            if let Some(page) = self.open.get_mut(page) {
                page.has_hello &= !is_greeting;
                page.map = None;
            }
        }
    }

    /// The updates after this tick. It may be called several times for one tick, or not after each; for a paused world it sends
    /// everything. O(objects of all scenes), once, when crowd frames are scheduled.
    pub fn updates(
        &mut self,
        world: &mut World,
        (tick, per_s, stands_still): (u64, f64, bool),
        figures: PageStats,
    ) -> PageMessages {
        let mut mail = Vec::new();
        let before = std::mem::replace(&mut self.updated_tick, tick);
        let is_due = |times_per_s: f64| {
            let every = (per_s / times_per_s).ceil().max(1.0) as u64;
            stands_still || tick / every > before / every
        };
        let new: Vec<u64> = self
            .open
            .iter()
            .filter(|(_, page)| !page.has_hello)
            .map(|(page, _)| *page)
            .collect();
        if !new.is_empty() {
            mail.push((
                new,
                PageUpdate::Hello(hello_json(
                    world,
                    self.sent_tick,
                    (&self.action_presets, self.pace),
                )),
            ));
        }
        let first = world
            .get_resource::<Scenes>()
            .and_then(|scenes| scenes.iter().next());
        let first = first.map(|(id, _)| id.0);
        self.open
            .values_mut()
            .for_each(|page| page.has_hello = true);
        let looked_at = self.scenes(world, first);
        for &(scene, entity) in &looked_at {
            if let Some(map) = world.get::<SceneMap>(entity) {
                self.add_map(scene, first, map, (tick, per_s), &mut mail);
            }
        }
        if is_due(DOTS_PER_S) {
            for ((scene, _), frame) in looked_at
                .iter()
                .zip(self.dots_of_scenes(world, &looked_at, tick))
            {
                mail.push((self.pages_showing(*scene, first), PageUpdate::Frame(frame)));
            }
        }
        self.add_heatmaps(world, first, is_due(HEATS_PER_S), &mut mail);
        if is_due(WAITS_PER_S) {
            self.add_waits(world, first, tick, &mut mail);
        }
        if is_due(SELECTED_PER_S) {
            for (&page, shown) in &self.open {
                let scene = shown.query.scene.or(first);
                if let (Some(scene), Some(id)) = (scene, shown.query.selected) {
                    let (who, waits) = ((SceneId(scene), id), (&self.waits, tick));
                    let text = selected_json(world, who, shown.query.other, waits);
                    mail.push((vec![page], PageUpdate::Text(text)));
                }
            }
        }
        self.add_lists(
            world,
            (is_due(LISTS_PER_S), is_due(SEARCHES_PER_S)),
            &mut mail,
        );
        if is_due(SEARCHES_PER_S) {
            self.add_results(world, first, &mut mail);
        }
        if is_due(STATES_PER_S) {
            let text = state_json(world, self.sent_tick, figures);
            self.sent_tick = tick;
            mail.push((self.ids(), PageUpdate::Text(text)));
        }
        mail
    }

    /// The scenes that pages show and that exist, with their entities.
    fn scenes(&self, world: &World, first: Option<u32>) -> Vec<(u32, Entity)> {
        let Some(scenes) = world.get_resource::<Scenes>() else {
            return Vec::new();
        };
        let pages = self.open.values();
        let looked_at: BTreeSet<u32> = pages
            .filter_map(|page| page.query.scene.or(first))
            .collect();
        let there = looked_at.into_iter();
        there
            .filter_map(|scene| Some((scene, scenes.entity(SceneId(scene))?)))
            .collect()
    }

    fn pages_showing(&self, scene: u32, first: Option<u32>) -> Vec<u64> {
        let looks = |page: &OpenPage| page.query.scene.or(first) == Some(scene);
        let pages = self.open.iter().filter(|(_, page)| looks(page));
        pages.map(|(&page, _)| page).collect()
    }

    /// Sends heat maps to the pages that show them.
    fn add_heatmaps(
        &mut self,
        world: &World,
        first: Option<u32>,
        is_due: bool,
        mail: &mut PageMessages,
    ) {
        let wants = |page: &OpenPage| Some((page.query.scene.or(first)?, page.query.heat?));
        let wanted: BTreeSet<(u32, HeatOf)> = self.open.values().filter_map(wants).collect();
        self.heatmap.record_paths(world, &wanted);
        for &heat in wanted.iter().filter(|_| is_due) {
            let pages = self.open.iter();
            let pages = pages.filter(|(_, page)| wants(page) == Some(heat));
            let pages = pages.map(|(&page, _)| page).collect();
            if let Some(frame) = self.heatmap.frame(world, heat.0, heat.1) {
                mail.push((pages, PageUpdate::Frame(frame)));
            }
        }
    }

    /// Sends the longest-waiting parties to the pages that show them, and the wait reason of each selected party.
    fn add_waits(&mut self, world: &World, first: Option<u32>, tick: u64, mail: &mut PageMessages) {
        let selected = self.open.values().filter_map(|page| {
            let scene = SceneId(page.query.scene.or(first)?);
            waiting_party(world, scene, page.query.selected?)
        });
        let selected = selected.collect();
        let showing = self.open.iter().filter(|(_, page)| page.query.wait_reasons);
        let showing: Vec<u64> = showing.map(|(&page, _)| page).collect();
        self.waits
            .update(world, tick, selected, !showing.is_empty());
        if !showing.is_empty() {
            let text = self.waits.list_json(world, tick);
            mail.push((showing, PageUpdate::Text(text)));
        }
    }

    /// Sends the results of searches, each to the page that requested it.
    fn add_results(&mut self, world: &World, first: Option<u32>, mail: &mut PageMessages) {
        for (&page, shown) in &mut self.open {
            if let Some(text) = shown.search.take() {
                let text = found_json(world, &text, shown.query.scene.or(first));
                mail.push((vec![page], PageUpdate::Text(text)));
            }
        }
    }

    /// Sends the list of sessions in each order that is shown, and matches, to the pages that show them. With `is_soon_due` only to
    /// pages that have just requested them.
    fn add_lists(
        &mut self,
        world: &World,
        (is_due, is_soon_due): (bool, bool),
        mail: &mut PageMessages,
    ) {
        if !is_due && !is_soon_due {
            return;
        }
        let mut by_order: BTreeMap<SessionListQuery, Vec<u64>> = BTreeMap::new();
        let mut showing_matches = Vec::new();
        for (&page, shown) in &mut self.open {
            if !is_due && !std::mem::take(&mut shown.is_list_due) {
                continue;
            }
            shown.is_list_due = false;
            if let Some(query) = shown.query.sessions {
                by_order.entry(query).or_default().push(page);
            }
            if shown.query.matches {
                showing_matches.push(page);
            }
        }
        for (query, pages) in by_order {
            mail.push((pages, PageUpdate::Text(sessions_json(world, query))));
        }
        if !showing_matches.is_empty() {
            mail.push((showing_matches, PageUpdate::Text(matches_json(world))));
        }
    }

    /// Sends the map to pages with another or an outdated one; edited maps at a limited rate.
    fn add_map(
        &mut self,
        scene: u32,
        first: Option<u32>,
        map: &SceneMap,
        (tick, per_s): (u64, f64),
        mail: &mut PageMessages,
    ) {
        let apart = (per_s / MAPS_PER_S).ceil() as u64;
        let has = Some((scene, map.version()));
        let mut pages = Vec::new();
        for (&id, page) in &mut self.open {
            let looks = page.query.scene.or(first) == Some(scene);
            let is_other = page.map.is_none_or(|(of, _)| of != scene);
            if looks && page.map != has && (is_other || tick >= page.next_map_tick) {
                page.map = has;
                page.next_map_tick = tick + apart;
                pages.push(id);
            }
        }
        if !pages.is_empty() {
            let news = PageUpdate::Map {
                scene,
                tiles: map.tiles().clone(),
                tile_m: map.tile_m(),
            };
            mail.push((pages, news));
        }
    }

    /// All objects of each of these scenes as dots, in one pass over the objects of all scenes.
    fn dots_of_scenes(
        &mut self,
        world: &mut World,
        scenes: &[(u32, Entity)],
        tick: u64,
    ) -> Vec<Vec<u8>> {
        self.dots.resize_with(scenes.len(), Vec::new);
        self.dots.iter_mut().for_each(Vec::clear);
        let mut objects = world.query::<(&Object, &Position, Option<&TeamId>)>();
        for (object, position, team) in objects.iter(world) {
            // There are few pages, so a list is faster than a map.
            let of = object.scene_entity();
            if let Some(place) = scenes.iter().position(|&(_, entity)| entity == of) {
                self.dots[place].push(Dot {
                    id: object.id().0,
                    at: position.0,
                    kind: object.kind().0.min(255) as u8,
                    team: team.map_or(0, |team| (team.0 % 255) as u8 + 1),
                });
            }
        }
        let scenes = scenes.iter().zip(&self.dots);
        let frames = scenes.map(|(&(scene, entity), dots)| {
            let size_m = world
                .get::<SimScene>(entity)
                .map_or(Vec2::ONE, SimScene::size_m);
            dots_frame(scene, tick, size_m, dots)
        });
        frames.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bevy_app::App;
    use bevy_time::TimePlugin;

    use super::*;
    use crate::plugin::RecordedTicks;
    use throng::map::{MapPlugin, TileEdit, TileMap, TileRect, edit_map};
    use throng::sim::SimTick;
    use throng::world::{SceneSpec, open_scene};

    /// The updates of a world without scenes, after each of these ticks, at 20 a second: greetings, and figures.
    fn frames_sent(pages: &mut OpenPages, ticks: impl Iterator<Item = u64>) -> (usize, usize) {
        let mut world = World::new();
        world.init_resource::<RecordedTicks>();
        world.init_resource::<SimTick>();
        let (mut hellos, mut states) = (0, 0);
        for tick in ticks {
            for (to, news) in pages.updates(
                &mut world,
                (tick, 20.0, false),
                (&[], InspectStats::default()),
            ) {
                assert_eq!(to, [7]);
                hellos += usize::from(matches!(news, PageUpdate::Hello(_)));
                states += usize::from(matches!(news, PageUpdate::Text(_)));
            }
        }
        (hellos, states)
    }

    #[test]
    fn page_updates_depend_on_ticks_not_on_frames() {
        let mut pages = OpenPages::default();
        pages.open(7);
        // Three frames a tick, two ticks per frame, where no frame ends at a round number, and one: all 100 ticks, twice a second.
        assert_eq!(
            frames_sent(&mut pages, (0..300).map(|frame| frame / 3)),
            (1, 9)
        );
        assert_eq!(frames_sent(&mut pages, (101..=199).step_by(2)), (0, 10));
        assert_eq!(frames_sent(&mut pages, 200..300), (0, 10));
    }

    #[test]
    fn lost_hello_is_sent_again() {
        let mut pages = OpenPages::default();
        pages.open(7);
        assert_eq!(frames_sent(&mut pages, 1..3), (1, 0));
        pages.resend(&[7], true);
        assert_eq!(frames_sent(&mut pages, 3..5), (1, 0));
        pages.resend(&[7], false);
        assert_eq!(frames_sent(&mut pages, 5..7), (0, 0));
    }

    #[test]
    fn edited_maps_are_sent_at_a_limited_rate() {
        let mut app = App::new();
        app.add_plugins((TimePlugin, MapPlugin));
        let map = SceneMap::new(Arc::new(TileMap::new(8, 8, false).unwrap()), 1.0);
        let scene = open_scene(app.world_mut(), SceneSpec::default(), map).unwrap();
        let mut pages = OpenPages::default();
        pages.open(7);
        let mut is_sent = |world: &World, tick| {
            let (map, mut mail) = (world.get::<SceneMap>(scene).unwrap(), Vec::new());
            pages.add_map(0, Some(0), map, (tick, 20.0), &mut mail);
            mail.iter().map(|(to, _)| to.clone()).collect::<Vec<_>>() == [[7]]
        };
        let edit = |app: &mut App, x| {
            let rect = TileRect::new(x, 1, 1, 1);
            edit_map(app.world_mut(), scene, rect, &TileEdit::Block).unwrap()
        };
        assert!(is_sent(app.world(), 1));
        assert!(edit(&mut app, 1).is_some());
        assert!(![2, 3, 20].iter().any(|&tick| is_sent(app.world(), tick)));
        assert!(is_sent(app.world(), 21));
        assert!(!is_sent(app.world(), 60), "it has not changed");
        assert!(edit(&mut app, 2).is_some());
        assert!(is_sent(app.world(), 61));
    }
}
