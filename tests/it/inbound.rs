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
    // Encoded again, it is the same message in at most as many bytes: the input may have longer encodings of numbers.
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
    // Those of a length of their own are whole or an error; the others go on to the end.
    let goes_on = matches!(
        message,
        ClientMessage::Login { .. } | ClientMessage::Chat { .. } | ClientMessage::Custom { .. }
    );
    if !goes_on {
        let cut = &input[..input.len() - 1];
        assert!(
            ClientMessage::decode(cut).is_err(),
            "{message:?} of {cut:?}"
        );
        let longer = [input, &[0]].concat();
        assert!(ClientMessage::decode(&longer).is_err());
        assert!(input.len() <= CLIENT_MESSAGE_BYTES_MAX);
    }
}
