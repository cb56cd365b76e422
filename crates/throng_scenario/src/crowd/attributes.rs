//! The attributes of crowd characters that are sent to clients.

use std::ops::RangeInclusive;

use bevy_app::App;
use bevy_ecs::prelude::*;
use rand::{Rng, RngExt};

use super::custom_attributes;
use throng::sim::HashAppExt;
use throng::sync::{Audience, Replicate, ReplicateAppExt, SendRate};
use throng::wire::{Encoding, ReplicatedAttribute};
use throng::world::{ObjectHashAppExt, Scenes, StateHashed};

macro_rules! attributes {
    ($($(#[$doc:meta])* $component:ident = ($name:literal, $id:literal, $audience:expr, $start:literal, $max:literal);)*) => {
        $(
            $(#[$doc])*
            #[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Replicate, StateHashed)]
            #[replicate(name = $name, id = $id, audience = $audience)]
            pub struct $component(pub u32);
        )*

        /// The names of the attributes, as scenarios know them.
        pub const ATTRIBUTE_NAMES: &[&str] = &[$($name),*];

        /// The name, the number in packets and the encoding of each built-in attribute: those of characters by ascending number, then the
        /// one of scenes.
        pub const ATTRIBUTE_NUMBERS: &[(&str, u16, Encoding)] = &[
            $(($name, <$component as ReplicatedAttribute>::ID, <$component as ReplicatedAttribute>::ENCODING),)*
            ("weather", <Weather as ReplicatedAttribute>::ID, <Weather as ReplicatedAttribute>::ENCODING),
        ];

        /// The attribute values of a new character.
        pub(super) fn fresh() -> impl Bundle {
            ($($component($start),)*)
        }

        /// Registers the attributes and their hashes.
        pub(super) fn register(app: &mut App) {
            $(app.replicate::<$component>().hash_component::<$component>($name);)*
            register_weather(app);
        }

        /// The range of a built-in attribute of characters; `None` when there is none of this name.
        #[must_use]
        pub fn attribute_range(name: &str) -> Option<RangeInclusive<i64>> {
            match name {
                $($name => Some(0..=$max),)*
                _ => None,
            }
        }

        /// The value of an attribute of an individual by name: a built-in or a custom one.
        #[must_use]
        pub fn attribute(world: &World, entity: Entity, name: &str) -> Option<i64> {
            match name {
                $($name => world.get::<$component>(entity).map(|component| i64::from(component.0)),)*
                _ => custom_attributes::value(world, entity, name),
            }
        }

        /// Sets an attribute of an individual by name, a built-in or a custom one. Values out of range are clamped. `false` when
        /// there is none.
        pub fn set_attribute(world: &mut World, entity: Entity, name: &str, value: i64) -> bool {
            match name {
                $($name => world.get_mut::<$component>(entity).map(|mut c| c.0 = value.clamp(0, $max) as u32).is_some(),)*
                _ => custom_attributes::set(world, entity, name, value),
            }
        }
    };
}

attributes! {
    /// Hit points; the character falls at 0.
    Health = ("health", 1, Audience::VIEWERS.or(Audience::PARTY), 1000, 1000);
    /// Mana points; sent to the party, in any scene.
    Mana = ("mana", 2, Audience::PARTY, 500, 500);
    /// The level of the character.
    Level = ("level", 3, Audience::VIEWERS, 1, 100);
    /// How strong the character is.
    Power = ("power", 4, Audience::VIEWERS, 1000, 1_000_000);
    /// Points towards the next level; sent to the owner only.
    Experience = ("experience", 5, Audience::OWNER, 0, 1_000_000_000);
}

/// The weather of a scene, as a number that the game interprets; sent to all clients in the scene.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_scenario::crowd::Weather;
///
/// fn start_rain(scene: Entity, mut commands: Commands) {
///     commands.entity(scene).insert(Weather(1));
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq, Replicate)]
#[replicate(id = 6, encoding = Encoding::U8, audience = Audience::SCENE, cadence = SendRate::EveryTick)]
pub struct Weather(pub u32);

/// The names of the attributes of scenes, as scenarios know them.
pub const SCENE_ATTRIBUTE_NAMES: &[&str] = &["weather"];

/// The maximum value of a weather.
const WEATHER_MAX: i64 = 255;

/// The range of an attribute of scenes; `None` when there is none of this name.
#[must_use]
pub fn scene_attribute_range(name: &str) -> Option<RangeInclusive<i64>> {
    SCENE_ATTRIBUTE_NAMES
        .contains(&name)
        .then_some(0..=WEATHER_MAX)
}

/// Sets an attribute of a scene by name. Values out of range are clamped. `false` when there is none.
pub fn set_scene_attribute(scene: &mut EntityWorldMut, name: &str, value: i64) -> bool {
    if name != SCENE_ATTRIBUTE_NAMES[0] {
        return false;
    }
    scene.insert(Weather(value.clamp(0, WEATHER_MAX) as u32));
    true
}

fn register_weather(app: &mut App) {
    app.replicate::<Weather>()
        .hash_part("weather", |world, hasher| {
            for (_, scene) in world.resource::<Scenes>().iter() {
                let weather = world.get::<Weather>(scene).map_or(0, |weather| weather.0);
                hasher.write_u64(u64::from(weather));
            }
        });
}

/// A typical change of a character in a game: hit, heal, cast, rest, learn, and now and then a level up.
pub(super) fn change_attribute(
    random: &mut impl Rng,
    (health, mana, level, power, experience): (
        &mut Health,
        &mut Mana,
        &mut Level,
        &mut Power,
        &mut Experience,
    ),
) -> ChangedAttribute {
    match random.random_range(0..100u32) {
        0..50 => {
            let by = random.random_range(1..=80u32);
            health.0 = if health.0 > by { health.0 - by } else { 1000 };
            ChangedAttribute::Health
        }
        50..80 => {
            let by = random.random_range(1..=60u32);
            mana.0 = if mana.0 > by { mana.0 - by } else { 500 };
            ChangedAttribute::Mana
        }
        80..97 => {
            experience.0 = (experience.0 + random.random_range(10..=50u32)).min(1_000_000_000);
            ChangedAttribute::Experience
        }
        97..99 => {
            power.0 = (power.0 + random.random_range(1..=10u32)).min(1_000_000);
            ChangedAttribute::Power
        }
        _ => {
            level.0 = level.0 % 100 + 1;
            ChangedAttribute::Level
        }
    }
}

/// The attribute that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangedAttribute {
    Health,
    Mana,
    Level,
    Power,
    Experience,
}
