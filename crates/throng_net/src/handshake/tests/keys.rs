//! Several keys at one server.

use super::*;
use crate::token_keys::TokenKeys;

#[test]
fn server_accepts_tokens_of_all_its_keys_and_of_no_other() {
    let [one, two] = [1, 2].map(|id| TokenKey::with_id(id, SecretKey([id as u8; 32])));
    let keys = TokenKeys::new(vec![one, two]).unwrap();
    let settings = ServerHandshakeSettings::new(PROTOCOL, vec![server()]);
    let mut gate = ServerHandshake::new(settings, keys.clone()).unwrap();
    let token_of = |key: TokenKey, client| ConnectToken::issue(&claims(client), key).unwrap();
    for (client, key) in [(1, one), (2, two)] {
        assert_eq!(token_of(key, client).key_id(), key.id);
        let mut joining = ClientHandshake::new(token_of(key, client));
        assert_eq!(accepted(&mut gate, &mut joining).client, client);
    }
    let refusal = |gate: &mut ServerHandshake, key| {
        let request = request(&token_of(key, 3));
        let Err(ServerHandshakeError::Token(refused)) = reply_of(gate, address(3), &request) else {
            panic!("the token was accepted");
        };
        refused
    };
    let unknown = |id| TokenError::UnknownKeyId { id };
    let other = TokenKey::with_id(3, one.secret);
    assert_eq!(refusal(&mut gate, other), unknown(3));
    assert_eq!(
        refusal(&mut gate, TokenKey::from(one.secret)),
        TokenError::NoKeyId
    );
    // Another key with the id of this one.
    let forged = TokenKey::with_id(1, two.secret);
    assert_eq!(refusal(&mut gate, forged), TokenError::Forged);
    // A handshake whose challenge was sent is completed; afterwards the first key is gone.
    let mut joining = ClientHandshake::new(token_of(one, 4));
    let (mut packet, mut answer) = (Vec::new(), Vec::new());
    joining.update(0, &mut packet);
    let challenged = gate.receive((0, 100), address(1), &mut packet, false, &mut answer);
    assert!(challenged.unwrap().is_none());
    joining.receive(0, &mut answer).unwrap();
    keys.replace(vec![two]).unwrap();
    assert_eq!(accepted(&mut gate, &mut joining).client, 4);
    assert_eq!(refusal(&mut gate, one), unknown(1));
}
