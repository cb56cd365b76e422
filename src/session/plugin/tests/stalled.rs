//! Warnings of players who log in and see nothing.

use super::lifecycle::{log_in, settings};
use super::*;
use crate::sim::{logged_warnings, single_threaded};

/// Ten seconds at the rate of these apps, 64 Hz.
const TEN_S_TICKS: usize = 640;

fn warnings_of(app: &mut App, ticks: usize) -> Vec<String> {
    // Warnings are collected of this thread.
    single_threaded(app);
    logged_warnings(|| (0..ticks).for_each(|_| app.update()))
}

#[test]
fn player_without_an_object_is_a_warning_once() {
    let mut app = app();
    log_in(&mut app, 7);
    assert_eq!(warnings_of(&mut app, TEN_S_TICKS - 1), Vec::<String>::new());
    let warnings = warnings_of(&mut app, 1);
    assert!(
        warnings.len() == 1
            && warnings[0].contains("ControlledBy")
            && warnings[0].contains("player=7"),
        "{warnings:?}"
    );
    log_in(&mut app, 8);
    assert_eq!(warnings_of(&mut app, 2 * TEN_S_TICKS), Vec::<String>::new());
}

#[test]
fn client_that_never_sends_ready_is_a_warning_once() {
    let (mut app, _) = settings(|_| ());
    for player in [7, 8] {
        let connection = ConnectionInfo::player(player);
        let client = connect_client(app.world_mut(), connection).unwrap();
        send(&mut app, client, ClientMessage::login(player));
    }
    let warnings = warnings_of(&mut app, 2 * TEN_S_TICKS);
    assert!(
        warnings.len() == 1 && warnings[0].contains("without_loading"),
        "{warnings:?}"
    );
}

#[test]
fn players_in_the_world_are_no_warning() {
    let (mut app, _) = settings(|_| ());
    log_in(&mut app, 7);
    log_in(&mut app, 8);
    assert_eq!(warnings_of(&mut app, 2 * TEN_S_TICKS), Vec::<String>::new());
}
