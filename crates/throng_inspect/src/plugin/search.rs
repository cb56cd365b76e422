//! Search of a page: players, objects and sessions by number, and objects by the name of their kind.

use bevy_ecs::prelude::*;
use serde_json::{Value, json};

use throng::session::Sessions;
use throng::wire::ClientId;
use throng::world::{Object, ObjectId, ObjectKinds, PlayerId, Players, SceneId, SceneIds, Scenes};

/// Maximum number of results.
const FOUND_MAX: usize = 12;

/// Maximum number of results that are objects of a kind.
const OF_KIND_MAX: usize = 8;

/// The meaning of a text in the search box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchTerm<'a> {
    /// A number: of a player, an object or a session, or of one of them if it is named.
    Number(u64, Option<SearchedThing>),
    /// A part of the name of a kind, in lower case.
    Kind(&'a str),
    /// Nothing.
    Empty,
}

/// The kind of thing that a number belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchedThing {
    Player,
    Object,
    Session,
}

impl<'a> SearchTerm<'a> {
    /// Reads a lower-case text such as `7`, `player 7`, `#7` or `guard`.
    fn parse(text: &'a str) -> Self {
        let text = text.trim();
        if text.is_empty() {
            return Self::Empty;
        }
        let named = [
            ("player", SearchedThing::Player),
            ("object", SearchedThing::Object),
            ("#", SearchedThing::Object),
            ("session", SearchedThing::Session),
            ("client", SearchedThing::Session),
        ];
        let number = |text: &str| text.trim().replace(',', "").parse().ok();
        for (word, thing) in named {
            if let Some(number) = text.strip_prefix(word).and_then(number) {
                return Self::Number(number, Some(thing));
            }
        }
        number(text).map_or(Self::Kind(text), |number| Self::Number(number, None))
    }
}

/// The results of a search as JSON, the most likely first: those of the shown scene come before those of others. O(scenes) for a
/// number, O(objects of the shown scene) for a name.
pub(super) fn found_json(world: &World, text: &str, shown: Option<u32>) -> String {
    let lower = text.to_lowercase();
    let mut found = Vec::new();
    match SearchTerm::parse(&lower) {
        SearchTerm::Number(number, thing) => {
            let wants = |one| thing.is_none_or(|thing| thing == one);
            if wants(SearchedThing::Player) {
                found.extend(find_player(world, PlayerId(number)));
            }
            let short = u32::try_from(number).ok();
            if let Some(id) = short.filter(|_| wants(SearchedThing::Object)) {
                found.extend(find_objects(world, ObjectId(id), shown));
            }
            if let Some(id) = short.filter(|_| wants(SearchedThing::Session)) {
                found.extend(find_session(world, ClientId(id)));
            }
        }
        SearchTerm::Kind(name) => found.extend(find_kind(world, name, shown)),
        SearchTerm::Empty => {}
    }
    found.truncate(FOUND_MAX);
    json!({ "type": "found", "text": text, "results": found }).to_string()
}

/// A player, by its object or by its session.
fn find_player(world: &World, player: PlayerId) -> Option<Value> {
    let object = world
        .get_resource::<Players>()
        .and_then(|players| players.entity(player))
        .and_then(|entity| world.get::<Object>(entity));
    let client = world
        .get_resource::<Sessions>()
        .and_then(|sessions| sessions.client_of(player));
    if object.is_none() && client.is_none() {
        return None;
    }
    let mut entry = object.map_or_else(|| json!({}), |object| object_json(world, object));
    entry["of"] = "player".into();
    entry["player"] = player.0.to_string().into();
    entry["client"] = client.map(|client| client.0).into();
    Some(entry)
}

/// The objects with a number, one per scene; that of the shown scene first.
fn find_objects(world: &World, id: ObjectId, shown: Option<u32>) -> Vec<Value> {
    let Some(scenes) = world.get_resource::<Scenes>() else {
        return Vec::new();
    };
    let first = shown.map(SceneId).and_then(|scene| {
        let entity = scenes.entity(scene)?;
        Some((scene, entity))
    });
    let others = scenes.iter().filter(|(scene, _)| Some(scene.0) != shown);
    let all = first.into_iter().chain(others);
    let found = all.filter_map(|(_, scene)| {
        let entity = world.get::<SceneIds>(scene)?.entity(id)?;
        world.get::<Object>(entity)
    });
    found
        .take(FOUND_MAX)
        .map(|object| object_json(world, object))
        .collect()
}

fn find_session(world: &World, client: ClientId) -> Option<Value> {
    let session = world.get_resource::<Sessions>()?.get(client)?;
    let object = session.controlled_entity;
    let object = object.and_then(|entity| world.get::<Object>(entity));
    let mut entry = object.map_or_else(|| json!({}), |object| object_json(world, object));
    entry["of"] = "session".into();
    entry["client"] = client.0.into();
    entry["player"] = session.player.map(|player| player.0.to_string()).into();
    Some(entry)
}

/// The first objects of the shown scene with this text in the name of their kind.
fn find_kind(world: &World, name: &str, shown: Option<u32>) -> Vec<Value> {
    let (Some(kinds), Some(scenes), Some(scene)) = (
        world.get_resource::<ObjectKinds>(),
        world.get_resource::<Scenes>(),
        shown,
    ) else {
        return Vec::new();
    };
    let fits: Vec<bool> = kinds
        .iter()
        .map(|kind| kind.name.to_lowercase().contains(name))
        .collect();
    if !fits.contains(&true) {
        return Vec::new();
    }
    let objects = scenes
        .entity(SceneId(scene))
        .and_then(|scene| world.get::<SceneIds>(scene));
    let objects = objects.into_iter().flat_map(SceneIds::iter);
    let objects = objects.filter_map(|(_, entity)| world.get::<Object>(entity));
    let of_kind = objects.filter(|object| {
        let fits = fits.get(usize::from(object.kind().0));
        fits.copied().unwrap_or(false)
    });
    of_kind
        .take(OF_KIND_MAX)
        .map(|object| object_json(world, object))
        .collect()
}

fn object_json(world: &World, object: &Object) -> Value {
    let kinds = world.get_resource::<ObjectKinds>();
    let kind = kinds.and_then(|kinds| kinds.get(object.kind()));
    json!({
        "of": "object",
        "scene": object.scene().0,
        "object": object.id().0,
        "kind": object.kind().0,
        "kind_name": kind.map(|kind| kind.name.as_str()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_terms_are_numbers_or_kinds() {
        let number = |number, thing| SearchTerm::Number(number, thing);
        for (text, expected) in [
            ("7", number(7, None)),
            (" 1,600 ", number(1_600, None)),
            ("#7", number(7, Some(SearchedThing::Object))),
            ("object 7", number(7, Some(SearchedThing::Object))),
            (
                "player4294968395",
                number(4_294_968_395, Some(SearchedThing::Player)),
            ),
            ("session 3", number(3, Some(SearchedThing::Session))),
            ("client 3", number(3, Some(SearchedThing::Session))),
            ("player", SearchTerm::Kind("player")),
            ("guard", SearchTerm::Kind("guard")),
            ("-7", SearchTerm::Kind("-7")),
            (
                "99999999999999999999999",
                SearchTerm::Kind("99999999999999999999999"),
            ),
            ("  ", SearchTerm::Empty),
        ] {
            assert_eq!(SearchTerm::parse(text), expected, "{text}");
        }
    }
}
