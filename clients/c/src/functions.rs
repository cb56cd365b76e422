//! The functions of the C interface.
//!
//! Pointers to single values are references here, so null is `None` and the compiler enforces Rust's rules. Only pointers with a length are
//! handled by hand, in [`slice()`] and [`slice_mut`].

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::{Arc, LazyLock};

use throng_client::TileMap;
use throng_client::{Client, ClientMessage, ClientSettings, CloseReason, ControlState};
use throng_protocol::wire::{
    CLIENT_MESSAGE_BYTES_MAX, CREDENTIAL_BYTES_MAX, InputMotion, quantise,
};

use crate::status::{CallError, CallResult, ThrongStatus, catch_panic, error_text};
use crate::structs::{
    ThrongClient, ThrongClientSettings, ThrongClientState, ThrongEvent, ThrongObject,
};

/// Version of this interface. throng_abi returns that of the library: if the two differ, do not use the library with this header.
pub const THRONG_ABI: u32 = 2;

/// Version of the library's interface.
#[unsafe(no_mangle)]
pub const extern "C" fn throng_abi() -> u32 {
    THRONG_ABI
}

/// Writes the error message of the last failed call of this thread: UTF-8 with a terminating 0, truncated to capacity bytes in total.
/// Returns the length of the message without the 0. With a null pointer or no capacity it writes nothing.
///
/// # Safety
/// capacity bytes can be written to text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_error(text: *mut c_char, capacity: usize) -> usize {
    error_text(|error| {
        // SAFETY: guaranteed by the caller.
        let into = unsafe { slice_mut::<u8>(text.cast(), capacity, "text") };
        if let Ok([into @ .., end]) = into {
            let length = error.floor_char_boundary(into.len());
            for (to, from) in into.iter_mut().zip(error.as_bytes()) {
                to.write(*from);
            }
            into.get_mut(length).unwrap_or(end).write(0);
        }
        error.len()
    })
}

/// A sentence for a reason of THRONG_EVENT_KIND_CLOSED: UTF-8 with a terminating 0, valid as long as the library is loaded.
#[unsafe(no_mangle)]
pub extern "C" fn throng_close_reason(reason: u8) -> *const c_char {
    static TEXTS: LazyLock<Vec<CString>> = LazyLock::new(|| {
        let of = |number| CloseReason::from_number(number).map(|reason| reason.to_string());
        let unknown = "this version does not know the reason";
        let texts = (0..=u8::MAX).map(|number| of(number).unwrap_or_else(|| unknown.to_owned()));
        texts
            .map(|text| CString::new(text).unwrap_or_default())
            .collect()
    });
    TEXTS[usize::from(reason)].as_ptr()
}

/// Returns the default settings: the player of the token, no credential, and scenes are sent without throng_ready.
#[unsafe(no_mangle)]
pub extern "C" fn throng_settings() -> ThrongClientSettings {
    let settings = ClientSettings::default();
    ThrongClientSettings {
        player: 0,
        credential: std::ptr::null(),
        credential_length: 0,
        smoothing_s: settings.smoothing_s,
        requires_ready: u8::from(!settings.is_ready_at_once),
    }
}

/// Starts to connect with an unused token of 2,048 bytes from the game's login service. throng_update reports whether the server
/// accepts it. Writes a client, to be freed with throng_destroy, or null if the call fails.
///
/// # Safety
/// length bytes can be read from token, and credential_length bytes from the settings' credential.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_connect(
    token: *const u8,
    length: usize,
    settings: Option<&ThrongClientSettings>,
    client: Option<&mut MaybeUninit<Option<Box<ThrongClient>>>>,
) -> ThrongStatus {
    catch_panic(|| {
        let client = client.ok_or_else(|| CallError::null("client"))?;
        client.write(None);
        // SAFETY: guaranteed by the caller.
        let token = unsafe { slice(token, length, "token") }?;
        let settings = settings.ok_or_else(|| CallError::null("settings"))?;
        let (credential, credential_length) = (settings.credential, settings.credential_length);
        if credential_length > CREDENTIAL_BYTES_MAX {
            return Err(CallError::argument(format!(
                "a credential of {credential_length} bytes, expected at most {CREDENTIAL_BYTES_MAX}"
            )));
        }
        // SAFETY: guaranteed by the caller.
        let credential = unsafe { slice(credential, credential_length, "credential") }?;
        let connected = Client::connect(
            token,
            ClientSettings {
                credential: credential.to_vec(),
                smoothing_s: not_negative("smoothing_s", settings.smoothing_s)?,
                is_ready_at_once: settings.requires_ready == 0,
                player: (settings.player != 0).then_some(settings.player),
                ..ClientSettings::default()
            },
        )?;
        client.write(Some(Box::new(ThrongClient::new(connected))));
        Ok(ThrongStatus::Ok)
    })
}

/// Connects again with another token. Client state stays, and the session resumes if the server still has it.
///
/// # Safety
/// length bytes can be read from token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_reconnect(
    client: Option<&mut ThrongClient>,
    token: *const u8,
    length: usize,
) -> ThrongStatus {
    with_client_mut(client, |client| {
        // SAFETY: guaranteed by the caller.
        let token = unsafe { slice(token, length, "token") }?;
        client.client.reconnect(token)?;
        Ok(ThrongStatus::Ok)
    })
}

/// Connects again with the same token after the connection was lost (THRONG_STATUS_LOST), and resumes the session. The server allows it as
/// long as it keeps the session; afterwards throng_reconnect with another token is needed.
#[unsafe(no_mangle)]
pub extern "C" fn throng_resume(client: Option<&mut ThrongClient>) -> ThrongStatus {
    with_client_mut(client, |client| {
        client.client.resume()?;
        Ok(ThrongStatus::Ok)
    })
}

/// Continues over another local port, which is necessary after a change of network.
#[unsafe(no_mangle)]
pub extern "C" fn throng_rebind(client: Option<&mut ThrongClient>) -> ThrongStatus {
    with_client_mut(client, |client| {
        client.client.rebind()?;
        Ok(ThrongStatus::Ok)
    })
}

/// Logs out, and frees a client. Does nothing for null.
#[unsafe(no_mangle)]
pub extern "C" fn throng_destroy(client: Option<Box<ThrongClient>>) {
    catch_panic(|| {
        if let Some(client) = client
            && client.check_poisoned().is_ok()
        {
            client.client.leave();
        }
        Ok(ThrongStatus::Ok)
    });
}

/// Receives what has arrived, and sends pending messages. Call it once per frame, with the time of a monotonic clock in seconds,
/// which may start at any value from 0 on. After the connection has ended, every call returns that status; earlier events can still
/// be read.
#[unsafe(no_mangle)]
pub extern "C" fn throng_update(client: Option<&mut ThrongClient>, now_s: f64) -> ThrongStatus {
    with_client_mut(client, |client| {
        client.set_now(now_s)?;
        client.client.update(client.now)?;
        Ok(ThrongStatus::Ok)
    })
}

/// Writes the oldest event that was not returned yet, or returns THRONG_STATUS_EMPTY if there is none. Up to 65,536 events are
/// kept; beyond that, the oldest are dropped.
#[unsafe(no_mangle)]
pub extern "C" fn throng_next_event(
    client: Option<&mut ThrongClient>,
    event: Option<&mut MaybeUninit<ThrongEvent>>,
) -> ThrongStatus {
    with_client_mut(client, |client| {
        let event = event.ok_or_else(|| CallError::null("event"))?;
        Ok(write(event, client.next_event()))
    })
}

/// The controlled object stands still from now on, with this heading in 256ths of a turn: 0 is +x, 64 is +y. Each bit of buttons is a
/// pressed button, as the game defines them.
#[unsafe(no_mangle)]
pub extern "C" fn throng_stand(
    client: Option<&mut ThrongClient>,
    heading: u8,
    buttons: u32,
) -> ThrongStatus {
    set_controls(client, InputMotion::Stand, heading, buttons)
}

/// The controlled object walks in a direction from now on, in 256ths of a turn, one step per tick.
#[unsafe(no_mangle)]
pub extern "C" fn throng_walk(
    client: Option<&mut ThrongClient>,
    direction: u8,
    heading: u8,
    buttons: u32,
) -> ThrongStatus {
    set_controls(client, InputMotion::Towards(direction), heading, buttons)
}

/// The controlled object moves to this position, in metres, which the game has chosen; the server validates the distance.
#[unsafe(no_mangle)]
pub extern "C" fn throng_move(
    client: Option<&mut ThrongClient>,
    x: f32,
    y: f32,
    heading: u8,
    buttons: u32,
) -> ThrongStatus {
    let to = [not_negative("x", x), not_negative("y", y)];
    let [Ok(x), Ok(y)] = to else {
        return catch_panic(|| {
            Err(CallError::argument(format!(
                "({x}, {y}) m, expected a position"
            )))
        });
    };
    set_controls(
        client,
        InputMotion::To(quantise([x, y].into())),
        heading,
        buttons,
    )
}

/// Sets the map for the prediction of the controlled object: it then stops at walls like on the server. One byte per tile of tile_m metres,
/// row by row: 0 is free. Call it again in each scene.
///
/// # Safety
/// width times height bytes can be read from blocked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_set_ground(
    client: Option<&mut ThrongClient>,
    blocked: *const u8,
    width: u32,
    height: u32,
    tile_m: f32,
) -> ThrongStatus {
    with_client_mut(client, |client| {
        let tile_m = not_negative("tile_m", tile_m)?;
        if tile_m == 0.0 {
            return Err(CallError::argument("tile_m is 0"));
        }
        let length = (width as usize).checked_mul(height as usize);
        let length = length.unwrap_or(usize::MAX);
        // SAFETY: guaranteed by the caller.
        let blocked = unsafe { slice(blocked, length, "blocked") }?;
        let is_blocked = |x, y| blocked[y as usize * width as usize + x as usize] != 0;
        let tiles = TileMap::from_fn(width, height, is_blocked);
        let tiles = tiles.map_err(|error| CallError::argument(error.to_string()))?;
        client.client.set_ground(Arc::new(tiles), tile_m);
        Ok(ThrongStatus::Ok)
    })
}

/// Reports that the game has loaded the scene, so that the server sends it.
/// Required with requires_ready.
#[unsafe(no_mangle)]
pub extern "C" fn throng_ready(client: Option<&mut ThrongClient>, scene: u32) -> ThrongStatus {
    with_client_mut(client, |client| {
        client.client.ready(scene);
        Ok(ThrongStatus::Ok)
    })
}

/// Sends a message of the game, of the type that the server has registered with this number. It arrives once and in order.
///
/// # Safety
/// length bytes can be read from bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_send(
    client: Option<&mut ThrongClient>,
    kind: u16,
    bytes: *const u8,
    length: usize,
) -> ThrongStatus {
    with_client_mut(client, |client| {
        // SAFETY: guaranteed by the caller.
        let bytes = unsafe { slice(bytes, length, "bytes") }?;
        if length > CLIENT_MESSAGE_BYTES_MAX {
            return Err(CallError::argument(format!(
                "a message of {length} bytes, expected at most {CLIENT_MESSAGE_BYTES_MAX} with its number"
            )));
        }
        client.client.send(&ClientMessage::Custom { kind, bytes })?;
        Ok(ThrongStatus::Ok)
    })
}

/// Writes the state of the client.
#[unsafe(no_mangle)]
pub extern "C" fn throng_state(
    client: Option<&ThrongClient>,
    state: Option<&mut MaybeUninit<ThrongClientState>>,
) -> ThrongStatus {
    with_client(client, |it| {
        let state = state.ok_or_else(|| CallError::null("state"))?;
        Ok(write(state, Some(it.state())))
    })
}

/// Writes the objects in view by ascending id, at most capacity of them, and their total number.
///
/// # Safety
/// capacity objects can be written to objects.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_objects(
    client: Option<&ThrongClient>,
    objects: *mut ThrongObject,
    capacity: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> ThrongStatus {
    with_client(client, |client| {
        let count = count.ok_or_else(|| CallError::null("count"))?;
        // SAFETY: guaranteed by the caller.
        let objects = unsafe { slice_mut(objects, capacity, "objects") }?;
        let ids = client.client.ids();
        count.write(ids.len());
        let in_sight = ids.into_iter().filter_map(|id| client.object(id));
        for (to, object) in objects.iter_mut().zip(in_sight) {
            to.write(object);
        }
        Ok(ThrongStatus::Ok)
    })
}

/// Writes an object in view, or returns THRONG_STATUS_EMPTY if none has this id.
#[unsafe(no_mangle)]
pub extern "C" fn throng_object(
    client: Option<&ThrongClient>,
    id: u32,
    object: Option<&mut MaybeUninit<ThrongObject>>,
) -> ThrongStatus {
    with_client(client, |client| {
        let object = object.ok_or_else(|| CallError::null("object"))?;
        Ok(write(object, client.object(id)))
    })
}

/// Writes the address and length of an object's attribute value, or returns THRONG_STATUS_EMPTY if it has no such attribute. The address is
/// valid until the next call that may change the client: any call except those with a const client.
#[unsafe(no_mangle)]
pub extern "C" fn throng_attribute(
    client: Option<&ThrongClient>,
    id: u32,
    attribute: u16,
    bytes: Option<&mut MaybeUninit<*const u8>>,
    length: Option<&mut MaybeUninit<usize>>,
) -> ThrongStatus {
    with_client(client, |client| {
        let bytes = bytes.ok_or_else(|| CallError::null("bytes"))?;
        let length = length.ok_or_else(|| CallError::null("length"))?;
        let value = client.client.attribute(id, attribute);
        length.write(value.map_or(0, <[u8]>::len));
        bytes.write(std::ptr::null());
        Ok(write(bytes, value.map(<[u8]>::as_ptr)))
    })
}

fn with_client_mut(
    client: Option<&mut ThrongClient>,
    act: impl FnOnce(&mut ThrongClient) -> CallResult,
) -> ThrongStatus {
    catch_panic(|| client.ok_or_else(|| CallError::null("client"))?.run(act))
}

fn with_client(
    client: Option<&ThrongClient>,
    read: impl FnOnce(&ThrongClient) -> CallResult,
) -> ThrongStatus {
    catch_panic(|| {
        read(
            client
                .ok_or_else(|| CallError::null("client"))?
                .check_poisoned()?,
        )
    })
}

fn set_controls(
    client: Option<&mut ThrongClient>,
    motion: InputMotion,
    heading: u8,
    buttons: u32,
) -> ThrongStatus {
    with_client_mut(client, |client| {
        client.client.set_controls(ControlState {
            motion,
            heading,
            buttons,
        });
        Ok(ThrongStatus::Ok)
    })
}

fn write<T>(to: &mut MaybeUninit<T>, value: Option<T>) -> ThrongStatus {
    let Some(value) = value else {
        return ThrongStatus::Empty;
    };
    to.write(value);
    ThrongStatus::Ok
}

fn not_negative(name: &str, number: f32) -> Result<f32, CallError> {
    let is_fine = number.is_finite() && number >= 0.0;
    let fault = || CallError::argument(format!("{name} is {number}, expected 0 or more"));
    is_fine.then_some(number).ok_or_else(fault)
}

/// # Safety
/// As for [`std::slice::from_raw_parts`], if the pointer is not null and the length not 0.
unsafe fn slice<'a>(first: *const u8, length: usize, name: &str) -> Result<&'a [u8], CallError> {
    if length == 0 {
        return Ok(&[]);
    }
    check_length::<u8>(length, name)?;
    if first.is_null() {
        return Err(CallError::null(name));
    }
    // SAFETY: the pointer is not null and the length is valid; the caller guarantees the rest.
    Ok(unsafe { std::slice::from_raw_parts(first, length) })
}

/// # Safety
/// As for [`std::slice::from_raw_parts_mut`], if the pointer is not null and the length not 0. The memory may be uninitialized.
unsafe fn slice_mut<'a, T>(
    first: *mut T,
    length: usize,
    name: &str,
) -> Result<&'a mut [MaybeUninit<T>], CallError> {
    if length == 0 {
        return Ok(&mut []);
    }
    check_length::<T>(length, name)?;
    if first.is_null() {
        return Err(CallError::null(name));
    }
    // SAFETY: the pointer is not null and the length is valid; the caller guarantees the rest.
    Ok(unsafe { std::slice::from_raw_parts_mut(first.cast(), length) })
}

/// No object is longer than half of the address space; a longer length is probably a negative number.
fn check_length<T>(length: usize, name: &str) -> Result<(), CallError> {
    let most = isize::MAX as usize / size_of::<T>();
    if length > most {
        return Err(CallError::argument(format!(
            "{name} has length {length}, expected at most {most}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use throng_net::{ConnectToken, SecretKey, TokenClaims};

    use super::*;
    use std::collections::BTreeSet;
    use std::ffi::CStr;

    #[test]
    fn each_close_reason_has_its_own_text() {
        // SAFETY: the text has a terminating 0 and lives as long as the library.
        let text = |reason| unsafe { CStr::from_ptr(throng_close_reason(reason)) };
        let texts: BTreeSet<&CStr> = (1..=14).map(text).collect();
        assert_eq!(texts.len(), 14);
        assert!(!texts.contains(text(0)) && text(0) == text(255));
        let stopping = text(CloseReason::Stopping.number());
        assert_eq!(stopping.to_str(), Ok("the server is shutting down"));
    }

    #[test]
    fn panicked_client_can_only_be_destroyed() {
        let servers = vec!["127.0.0.1:1".parse().unwrap()];
        let claims = TokenClaims::new(7, servers, 0);
        let token = ConnectToken::issue(&claims, SecretKey::INSECURE).unwrap();
        let token = token.to_bytes();
        let (settings, mut client) = (throng_settings(), MaybeUninit::new(None));
        // SAFETY: the token has this many bytes.
        let status = unsafe {
            throng_connect(
                token.as_ptr(),
                token.len(),
                Some(&settings),
                Some(&mut client),
            )
        };
        assert_eq!(status, ThrongStatus::Ok);
        // SAFETY: initialized before, and written again by `throng_connect`.
        let mut client = unsafe { client.assume_init() };
        let mut state = MaybeUninit::uninit();
        let status = throng_state(client.as_deref(), Some(&mut state));
        assert_eq!(status, ThrongStatus::Ok);
        let panicked = with_client_mut(client.as_deref_mut(), |_| panic!("of a test"));
        assert_eq!(panicked, ThrongStatus::Panicked);
        let status = throng_state(client.as_deref(), Some(&mut state));
        assert_eq!(status, ThrongStatus::Panicked);
        let updated = throng_update(client.as_deref_mut(), 1.0);
        assert_eq!(updated, ThrongStatus::Panicked);
        throng_destroy(client);
    }
}
