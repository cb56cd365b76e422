//! The crowd of a scene on its map: positions, kinds and teams.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use bevy_ecs::prelude::*;
use foldhash::fast::FixedState;
use glam::Vec2;
use indexmap::IndexMap;

use super::{BLUE, GREEN, Legend, MapPicture, ORANGE, PURPLE, SKY, Swatch, VERMILLION, YELLOW};
use crate::CliError;
use crate::image::Color;
use throng::map::SceneMap;
use throng::world::{
    KindId, Object, ObjectCategory, ObjectKinds, Position, SceneIds, Scenes, TeamId, ViewRange,
};

/// Colours of kinds or teams, which are reused in turn if there are more.
pub(super) const COLORS: [Color; 7] = [BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, YELLOW];

/// Blocked tiles, paler than elsewhere, so that the crowd stands out.
pub(super) const WALLS: Color = [172, 174, 184];

/// The colour of objects without a team, if there are teams.
pub(super) const NEUTRAL: Color = [120, 120, 126];

/// Maximum number of teams in the legend.
const TEAMS_SHOWN: usize = 10;

/// An object in the picture.
pub(super) struct DrawnObject {
    pub at_m: Vec2,
    kind: KindId,
    team: Option<TeamId>,
}

/// Draws the open scene with the most objects; of equal ones, the first. `title` names the run.
///
/// # Errors
/// If no scene is open, or the file cannot be written.
pub(crate) fn draw_crowd(world: &World, title: &str, output: &Path) -> Result<(), CliError> {
    let found = largest_scene(world).and_then(|scene| Some((scene, world.get::<SceneMap>(scene)?)));
    let Some((scene, map)) = found else {
        return Err(CliError::new(format!(
            "{}: no scene is open at the end, so there is nothing to draw",
            output.display()
        )));
    };
    let figures = drawn_objects(world, scene);
    let mut picture = MapPicture::new(map.tiles()).with_blocked_color(WALLS);
    let kinds = world.resource::<ObjectKinds>();
    let style = CrowdStyle::new(&figures, kinds);
    for figure in style.draw_order(&figures) {
        let (swatch, color) = style.style_of(figure, kinds);
        picture.mark(figure.at_m / map.tile_m(), swatch, color);
    }
    let size = map.size_m();
    let of_scenes = match world.resource::<Scenes>().iter().count() {
        1 => String::new(),
        count => format!(", the largest of {count} scenes"),
    };
    let legend = Legend {
        title: title.to_owned(),
        facts: vec![format!(
            "{} x {} m, {} objects{of_scenes}",
            size.x,
            size.y,
            figures.len()
        )],
        marks: style.legend(kinds),
    };
    picture.write(output, &legend)
}

/// The open scene with the most objects; of equal ones, the first.
pub(super) fn largest_scene(world: &World) -> Option<Entity> {
    let count = |scene: Entity| {
        let objects = world.get::<SceneIds>(scene);
        objects.map_or(0, SceneIds::len)
    };
    let scenes = world.resource::<Scenes>().iter().map(|(_, scene)| scene);
    scenes.min_by_key(|scene| Reverse(count(*scene)))
}

/// All objects of a scene, by id.
pub(super) fn drawn_objects(world: &World, scene: Entity) -> Vec<DrawnObject> {
    let objects = world.get::<SceneIds>(scene).into_iter();
    let figure = |(_, entity)| {
        Some(DrawnObject {
            at_m: world.get::<Position>(entity)?.0,
            kind: world.get::<Object>(entity)?.kind(),
            team: world.get::<TeamId>(entity).copied(),
        })
    };
    objects
        .flat_map(SceneIds::iter)
        .filter_map(figure)
        .collect()
}

/// Colours and shapes. Colours are those of teams if there are any, otherwise those of kinds; shapes are those of kinds. Kinds and teams
/// keep the order in which they first appeared, so that colours do not change when others appear.
#[derive(Default)]
pub(super) struct CrowdStyle {
    /// Number of objects of each kind.
    kinds: IndexMap<KindId, usize, FixedState>,
    teams: IndexMap<TeamId, usize, FixedState>,
    teamless: usize,
}

impl CrowdStyle {
    fn new(figures: &[DrawnObject], kinds: &ObjectKinds) -> Self {
        let mut style = Self::default();
        style.count(figures, kinds);
        style
    }

    /// A style before any object was counted. The first player kind gets the first colour, even if players appear later than other kinds.
    pub(super) fn empty(kinds: &ObjectKinds) -> Self {
        let players = (0..).zip(kinds.iter());
        let mut players = players.filter(|(_, kind)| kind.class == ObjectCategory::Player);
        let players = players.next().map(|(nth, _)| (KindId(nth), 0));
        Self {
            kinds: players.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Counts the objects again. Entries whose count becomes 0 stay.
    pub(super) fn count(&mut self, figures: &[DrawnObject], kinds: &ObjectKinds) {
        let counts = self.kinds.values_mut().chain(self.teams.values_mut());
        counts.for_each(|count| *count = 0);
        self.teamless = 0;
        let (mut by_kind, mut by_team) = (BTreeMap::new(), BTreeMap::new());
        for figure in figures
            .iter()
            .filter(|figure| kinds.get(figure.kind).is_some())
        {
            *by_kind.entry(figure.kind).or_default() += 1;
            match figure.team {
                Some(team) => *by_team.entry(team).or_default() += 1,
                None => self.teamless += 1,
            }
        }
        self.kinds.extend(by_kind);
        self.teams.extend(by_team);
    }

    /// Objects in drawing order: frequent kinds first, so that a boss is drawn over the crowd around it.
    pub(super) fn draw_order<'a>(&self, figures: &'a [DrawnObject]) -> Vec<&'a DrawnObject> {
        let mut in_order: Vec<&DrawnObject> = figures.iter().collect();
        in_order.sort_by_key(|figure| Reverse(self.kinds.get(&figure.kind).copied()));
        in_order
    }

    fn has_teams(&self) -> bool {
        self.teams.len() > 1
    }

    pub(super) fn style_of(&self, figure: &DrawnObject, kinds: &ObjectKinds) -> (Swatch, Color) {
        let color = if self.has_teams() {
            self.team_color(figure.team)
        } else {
            self.kind_color(figure.kind)
        };
        (shape(figure.kind, kinds), color)
    }

    fn team_color(&self, team: Option<TeamId>) -> Color {
        let place = team.and_then(|team| self.teams.get_index_of(&team));
        place.map_or(NEUTRAL, |place| COLORS[place % COLORS.len()])
    }

    fn kind_color(&self, kind: KindId) -> Color {
        let place = self.kinds.get_index_of(&kind);
        COLORS[place.unwrap_or_default() % COLORS.len()]
    }

    pub(super) fn legend(&self, kinds: &ObjectKinds) -> Vec<(Swatch, Color, String)> {
        let of_kind = |(kind, count): (&KindId, &usize)| {
            let name = kinds.get(*kind).map_or("?", |kind| kind.name.as_str());
            let color = if self.has_teams() {
                NEUTRAL
            } else {
                self.kind_color(*kind)
            };
            (shape(*kind, kinds), color, format!("{name}: {count}"))
        };
        let there = self.kinds.iter().filter(|(_, count)| **count > 0);
        let mut marks: Vec<_> = there.map(of_kind).collect();
        if self.has_teams() {
            if self.teamless > 0 {
                let word = format!("no team: {}", self.teamless);
                marks.push((Swatch::Tile, NEUTRAL, word));
            }
            let shown = self.teams.iter().take(TEAMS_SHOWN);
            marks.extend(shown.map(|(team, count)| {
                let word = format!("team {}: {count}", team.0);
                (Swatch::Tile, self.team_color(Some(*team)), word)
            }));
            if let more @ 1.. = self.teams.len().saturating_sub(TEAMS_SHOWN) {
                marks.push((Swatch::Tile, NEUTRAL, format!("and {more} teams")));
            }
        }
        marks.push((Swatch::Tile, WALLS, "blocked".to_owned()));
        marks
    }
}

/// Players are discs, NPCs are squares; objects that the whole scene sees, and things, are diamonds.
fn shape(kind: KindId, kinds: &ObjectKinds) -> Swatch {
    match kinds.get(kind) {
        Some(kind) if kind.visibility == ViewRange::Scene => Swatch::Diamond,
        Some(kind) if kind.class == ObjectCategory::Player => Swatch::Disc,
        Some(kind) if kind.class == ObjectCategory::Npc => Swatch::Square,
        _ => Swatch::Diamond,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(kind: u16, team: Option<u32>) -> DrawnObject {
        DrawnObject {
            at_m: Vec2::ZERO,
            kind: KindId(kind),
            team: team.map(TeamId),
        }
    }

    #[test]
    fn kinds_have_colours_until_teams_exist() {
        let kinds = ObjectKinds::default();
        let figures = [figure(0, None), figure(1, None), figure(1, Some(4))];
        let style = CrowdStyle::new(&figures, &kinds);
        let [player, npc, same] = [0, 1, 2].map(|nth| style.style_of(&figures[nth], &kinds));
        assert!(player.1 != npc.1 && npc == same);
        assert!(player.0 == Swatch::Disc && npc.0 == Swatch::Square);
        assert!(style.legend(&kinds)[1].2.ends_with(": 2"));
        let figures = [
            figure(0, Some(4)),
            figure(1, Some(4)),
            figure(0, Some(9)),
            figure(0, None),
        ];
        let style = CrowdStyle::new(&figures, &kinds);
        let colors: Vec<Color> = figures
            .iter()
            .map(|one| style.style_of(one, &kinds).1)
            .collect();
        assert!(colors[0] == colors[1] && colors[0] != colors[2] && colors[3] == NEUTRAL);
        let words: Vec<String> = style
            .legend(&kinds)
            .into_iter()
            .map(|mark| mark.2)
            .collect();
        assert!(words.contains(&"team 4: 2".to_owned()), "{words:?}");
        assert!(words.contains(&"no team: 1".to_owned()), "{words:?}");
    }

    #[test]
    fn colours_are_stable_when_kinds_come_and_go() {
        let kinds = ObjectKinds::default();
        let npc = figure(1, None);
        let mut style = CrowdStyle::new(&[figure(1, None)], &kinds);
        let before = style.style_of(&npc, &kinds);
        style.count(&[figure(0, None), figure(1, None)], &kinds);
        assert_eq!(style.style_of(&npc, &kinds), before);
        style.count(&[figure(0, None)], &kinds);
        assert_eq!(style.legend(&kinds).len(), 2, "one kind, and blocked tiles");
    }
}
