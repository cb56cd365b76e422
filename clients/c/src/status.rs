//! How a call went, and where no panic gets through.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use throng_client::{ClientError, ClientStartError, ConnectionError};

/// How a call went: 0 and above it did, below 0 it did not, and nothing changed but where that is said.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrongStatus {
    /// Done.
    Ok = 0,
    /// Done, and there is none of what was asked for.
    Empty = 1,
    /// A pointer is null that must not be.
    NullPointer = -1,
    /// A number or a length is not one that may be.
    BadArgument = -2,
    /// What is to be a token is none.
    BadToken = -3,
    /// The system has no socket.
    NoSocket = -4,
    /// The server cannot be reached, is full, or does not take the token: there never was a connection.
    NotConnected = -5,
    /// The server ended the connection; the event THRONG_EVENT_KIND_CLOSED says why.
    Closed = -6,
    /// Nothing came from the server for too long. throng_reconnect with another token may help.
    Lost = -7,
    /// What the server says makes no sense: it is of another version.
    ProtocolError = -8,
    /// More waits to be sent than may, or a message is too long.
    SendQueueFull = -9,
    /// A fault of the library: this client is of no use any more, and may only be destroyed.
    Panicked = -10,
}

/// Why something was not done.
#[derive(Debug)]
pub(crate) struct CallError {
    status: ThrongStatus,
    text: String,
}

pub(crate) type CallResult = Result<ThrongStatus, CallError>;

impl CallError {
    pub fn null(name: &str) -> Self {
        Self {
            status: ThrongStatus::NullPointer,
            text: format!("{name} is null"),
        }
    }

    pub fn argument(text: impl Into<String>) -> Self {
        Self {
            status: ThrongStatus::BadArgument,
            text: text.into(),
        }
    }

    pub fn panicked(why: &str) -> Self {
        Self {
            status: ThrongStatus::Panicked,
            text: format!("a fault of the library: {why}"),
        }
    }

    /// Connections that were made once and are over, or were never made.
    fn status_of(end: ConnectionError) -> ThrongStatus {
        match end {
            ConnectionError::Failed(_) => ThrongStatus::NotConnected,
            ConnectionError::Lost => ThrongStatus::Lost,
            ConnectionError::Broken(_) => ThrongStatus::ProtocolError,
            _ => ThrongStatus::Closed,
        }
    }
}

impl From<ClientStartError> for CallError {
    fn from(error: ClientStartError) -> Self {
        let status = match error {
            ClientStartError::Socket(_) => ThrongStatus::NoSocket,
            _ => ThrongStatus::BadToken,
        };
        let text = error.to_string();
        Self { status, text }
    }
}

impl From<ClientError> for CallError {
    fn from(error: ClientError) -> Self {
        let status = match error {
            ClientError::Ended(end) => Self::status_of(end),
            ClientError::SendQueueFull(_) => ThrongStatus::SendQueueFull,
            _ => ThrongStatus::ProtocolError,
        };
        let text = error.to_string();
        Self { status, text }
    }
}

impl From<std::io::Error> for CallError {
    fn from(error: std::io::Error) -> Self {
        ClientStartError::Socket(error).into()
    }
}

thread_local! {
    /// Why the last call of this thread failed that did.
    static ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Shows why the last call of this thread failed that did: nothing where none did, or the thread is at its end.
pub(crate) fn error_text<R: Default>(show: impl FnOnce(&str) -> R) -> R {
    ERROR
        .try_with(|text| show(&text.borrow()))
        .unwrap_or_default()
}

/// Does something for C. What panics in it ends here.
pub(crate) fn catch_panic(act: impl FnOnce() -> CallResult) -> ThrongStatus {
    // Whatever a panic leaves half done is in a client that is not used again; see `ThrongClient`.
    let done = catch_unwind(AssertUnwindSafe(act));
    match done.unwrap_or_else(|payload| Err(CallError::panicked(panic_text(&*payload)))) {
        Ok(status) => status,
        Err(fault) => {
            // A thread that is at its end keeps none.
            let _ = ERROR.try_with(|text| text.replace(fault.text));
            fault.status
        }
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    let text = owned.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("it does not say which")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_a_status_with_its_text() {
        assert_eq!(
            catch_panic(|| panic!("no {}", "tiles")),
            ThrongStatus::Panicked
        );
        error_text(|text| assert_eq!(text, "a fault of the library: no tiles"));
        assert_eq!(catch_panic(|| Ok(ThrongStatus::Empty)), ThrongStatus::Empty);
        error_text(|text| assert!(text.ends_with("no tiles"), "{text}"));
    }
}
