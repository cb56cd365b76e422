//! Invariants of all client input; used by the fuzzer, and by the test that replays its corpus.
//!
//! The whole input is one message.

use crate::wire::{
    CHAT_BYTES_MAX, CLIENT_MESSAGE_BYTES_MAX, CREDENTIAL_BYTES_MAX, ClientMessage, MessageClass,
};

pub fn check(input: &[u8]) {
    let Ok(message) = ClientMessage::decode(input) else {
        return;
    };
    // The re-encoded message is the same and not longer: the input may encode numbers with more bytes than necessary.
    let bytes = message.to_bytes();
    assert!(bytes.len() <= input.len());
    assert_eq!(ClientMessage::decode(&bytes), Ok(message));
    assert_eq!(message.to_bytes(), bytes);
    assert_eq!(MessageClass::of(input), MessageClass::of(&bytes));
    let class = match message {
        ClientMessage::Login { credential, .. } => {
            assert!(credential.len() <= CREDENTIAL_BYTES_MAX);
            MessageClass::Login
        }
        ClientMessage::Resume { .. } => MessageClass::Login,
        ClientMessage::Move { .. } | ClientMessage::Face { .. } | ClientMessage::Input(_) => {
            MessageClass::Input
        }
        ClientMessage::Chat { text, .. } => {
            assert!(text.len() <= CHAT_BYTES_MAX);
            MessageClass::Other
        }
        _ => MessageClass::Other,
    };
    assert_eq!(MessageClass::of(input), class);
    // A truncated message with a fixed length is an error; the others extend to the end of the input.
    let extends_to_the_end = matches!(
        message,
        ClientMessage::Login { .. } | ClientMessage::Chat { .. } | ClientMessage::Custom { .. }
    );
    if !extends_to_the_end {
        let cut = &input[..input.len() - 1];
        assert!(
            ClientMessage::decode(cut).is_err(),
            "{message:?} from {cut:?}"
        );
        let longer = [input, &[0]].concat();
        assert!(ClientMessage::decode(&longer).is_err());
        assert!(input.len() <= CLIENT_MESSAGE_BYTES_MAX);
    }
}
