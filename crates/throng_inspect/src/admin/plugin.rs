//! Opening the administration API.

pub(super) mod commands;

use std::net::SocketAddr;
use std::path::PathBuf;

use bevy_ecs::prelude::*;
use throng::session::BanList;
use throng_net::PortSettings;
use tokio::sync::mpsc::{self, Receiver};

use super::error::AdminError;
use super::protocol::AdminCommand;
use super::server::{self, AdminAccess};
use super::storage::AdminFiles;
use super::tokens::AdminTokens;
use crate::http_listener::{HttpThread, bind};

/// Maximum number of commands that a tick handles; later ones wait for the next tick.
pub const ADMIN_COMMANDS_PER_TICK_MAX: usize = 16;

/// Commands that wait for the tick; more are refused.
const PENDING_COMMANDS_MAX: usize = 64;

/// Settings of the administration API.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_inspect::{AdminSettings, AdminTokens, open_admin};
/// use throng_net::PortSettings;
///
/// /// The API for the game masters Alice and Bob, on this machine only.
/// fn open(world: &mut World) -> Result<(), Box<dyn std::error::Error>> {
///     let tokens: AdminTokens = "alice 3f9c2b7a41d8e605\nbob 9a0e11c84b7725d3".parse()?;
///     let settings = AdminSettings {
///         address: "127.0.0.1:9200".parse()?,
///         port: PortSettings::default(),
///         tokens,
///         ban_file: Some("bans.json".into()),
///         audit_log: Some("audit.jsonl".into()),
///     };
///     let address = open_admin(world, settings)?;
///     println!("administration: http://{address}/");
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct AdminSettings {
    /// The address to listen on.
    pub address: SocketAddr,
    /// TLS, and proxies in front of the port. On other than loopback addresses one of both is needed, since requests contain tokens.
    pub port: PortSettings,
    /// Who may use it.
    pub tokens: AdminTokens,
    /// The file that keeps bans, if they are kept: JSON. It is read at the start if it exists, and replaced with each change.
    pub ban_file: Option<PathBuf>,
    /// The file to which a line is appended for each change, if any: one JSON object per line.
    pub audit_log: Option<PathBuf>,
}

/// The open administration API, until this resource or its world is dropped.
#[derive(Resource)]
pub struct AdminServer {
    address: SocketAddr,
    commands: Receiver<AdminCommand>,
    /// The thread ends when this is dropped.
    _thread: HttpThread,
}

impl AdminServer {
    /// The open address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The API for the live page, which can be opened before or after it.
#[derive(Resource, Default)]
pub(crate) struct PageAdmin(pub AdminAccess);

/// Opens the administration API of a server and applies the bans of its file. An open [`Inspector`](crate::Inspector) answers the
/// same requests below `/admin/` at the address of its page, so that the page can send them. It needs
/// [`InspectPlugin`](crate::InspectPlugin)
/// and a [`SessionPlugin`](throng::session::SessionPlugin). Returns the address that it listens on.
///
/// # Errors
/// [`AdminError`]; nothing is open then, and no ban was added.
pub fn open_admin(world: &mut World, settings: AdminSettings) -> Result<SocketAddr, AdminError> {
    let AdminSettings {
        address,
        port,
        tokens,
        ban_file,
        audit_log,
    } = settings;
    let (files, stored) = AdminFiles::open(ban_file, audit_log)?;
    let mut bans = world.get_resource_or_init::<BanList>().clone();
    for ban in stored {
        bans.add(ban).map_err(|source| AdminError::Ban {
            path: files.ban_file().unwrap_or_default(),
            source,
        })?;
    }
    let bound = bind(address);
    let (address, socket) = bound.map_err(|source| AdminError::Bind { address, source })?;
    let (sender, commands) = mpsc::channel(PENDING_COMMANDS_MAX);
    let started = server::start((socket, port), tokens, files, sender);
    let (thread, shared) = started.map_err(AdminError::Thread)?;
    world.get_resource_or_init::<PageAdmin>().0.set(shared);
    world.insert_resource(bans);
    world.insert_resource(AdminServer {
        address,
        commands,
        _thread: thread,
    });
    Ok(address)
}
