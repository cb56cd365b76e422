//! Status codes, and the barrier for panics.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use throng_client::{ClientError, ClientHandshakeError, ClientStartError, ConnectionError};

/// Result of a call. 0 and above: success. Below 0: failure; nothing has changed unless documented.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrongStatus {
    /// Success.
    Ok = 0,
    /// Success, and the requested item does not exist.
    Empty = 1,
    /// A required pointer is null.
    NullPointer = -1,
    /// A number or a length is out of range.
    BadArgument = -2,
    /// The token is invalid.
    BadToken = -3,
    /// The system cannot open a socket.
    NoSocket = -4,
    /// The server cannot be reached, or does not accept the token: the connection was never made.
    NotConnected = -5,
    /// The server has ended the connection. The event THRONG_EVENT_KIND_CLOSED contains the reason; throng_error contains it as
    /// well, or the reason why a login was refused.
    Closed = -6,
    /// Nothing was received from the server for too long: throng_resume continues. Or the server restarted: throng_reconnect with
    /// another token may help.
    Lost = -7,
    /// The server speaks another version of the protocol: throng_error has both versions.
    ProtocolError = -8,
    /// The send queue is full, or a message is too long.
    SendQueueFull = -9,
    /// The server is full. The token was not used: throng_reconnect with the same one may help later.
    Full = -11,
    /// A bug in the library: this client can only be destroyed.
    Panicked = -10,
}

/// Why a call failed.
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
            text: format!("a bug in the library: {why}"),
        }
    }

    /// The status of a connection that has ended, or that was never made.
    fn status_of(end: ConnectionError) -> ThrongStatus {
        match end {
            ConnectionError::Failed(ClientHandshakeError::Denied) => ThrongStatus::Full,
            ConnectionError::Failed(
                ClientHandshakeError::Version { .. } | ClientHandshakeError::ProtocolId { .. },
            ) => ThrongStatus::ProtocolError,
            ConnectionError::Failed(_) => ThrongStatus::NotConnected,
            ConnectionError::Lost | ConnectionError::Restarted => ThrongStatus::Lost,
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
            ClientError::Refused(_) => ThrongStatus::Closed,
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
    /// Error message of the last failed call of this thread.
    static ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Passes the error message of the last failed call of this thread to `show`; empty if there is none, or if the thread is ending.
pub(crate) fn error_text<R: Default>(show: impl FnOnce(&str) -> R) -> R {
    ERROR
        .try_with(|text| show(&text.borrow()))
        .unwrap_or_default()
}

/// Runs a call from C. Catches its panics.
pub(crate) fn catch_panic(act: impl FnOnce() -> CallResult) -> ThrongStatus {
    // A panic may leave the client in an invalid state, but it is not used again; see `ThrongClient`.
    let done = catch_unwind(AssertUnwindSafe(act));
    match done.unwrap_or_else(|payload| Err(CallError::panicked(panic_text(&*payload)))) {
        Ok(status) => status,
        Err(fault) => {
            // A thread that is ending stores no message.
            let _ = ERROR.try_with(|text| text.replace(fault.text));
            fault.status
        }
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    let text = owned.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("unknown panic")
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_client::CloseReason;

    #[test]
    fn each_end_has_its_own_text() {
        let reason = |reason| ConnectionError::Closed {
            reason: Some(reason),
        };
        let version = ClientHandshakeError::Version {
            server: 5,
            client: 4,
        };
        let ends = [
            (
                reason(CloseReason::Stopping),
                ThrongStatus::Closed,
                "is shutting down",
            ),
            (
                ConnectionError::Lost,
                ThrongStatus::Lost,
                "connection is lost",
            ),
            (
                ConnectionError::Restarted,
                ThrongStatus::Lost,
                "server restarted",
            ),
            (
                reason(CloseReason::Kicked),
                ThrongStatus::Closed,
                "was kicked",
            ),
            (
                reason(CloseReason::SlowConsumer),
                ThrongStatus::Closed,
                "is behind",
            ),
            (
                ConnectionError::Failed(version),
                ThrongStatus::ProtocolError,
                "the server speaks protocol 5, this client 4: update the client",
            ),
            (
                ConnectionError::Failed(ClientHandshakeError::Denied),
                ThrongStatus::Full,
                "the server is full",
            ),
            (
                reason(CloseReason::Unavailable),
                ThrongStatus::Closed,
                "store does not answer",
            ),
        ];
        for (end, status, text) in ends {
            let called = catch_panic(|| Err(ClientError::Ended(end).into()));
            assert_eq!(called, status);
            error_text(|found| assert!(found.contains(text), "{found}: {text}"));
        }
    }

    #[test]
    fn panic_becomes_a_status_with_its_text() {
        assert_eq!(
            catch_panic(|| panic!("no {}", "tiles")),
            ThrongStatus::Panicked
        );
        error_text(|text| assert_eq!(text, "a bug in the library: no tiles"));
        assert_eq!(catch_panic(|| Ok(ThrongStatus::Empty)), ThrongStatus::Empty);
        error_text(|text| assert!(text.ends_with("no tiles"), "{text}"));
    }
}
