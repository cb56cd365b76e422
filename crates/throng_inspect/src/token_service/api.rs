//! Requests and replies as JSON. `openapi.json` beside this file describes the same for other programs.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use data_encoding::BASE64;
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use throng::net::{ConnectToken, TokenClaims, TokenKey, USER_DATA_BYTES};

use super::settings::TokenServiceSettings;
use crate::http_listener::{ApiError, parse_body};

/// The description of the API, as OpenAPI 3.1.
pub(super) const OPENAPI: &str = include_str!("openapi.json");

/// Maximum size of a request's body, in bytes.
pub(super) const BODY_BYTES_MAX: usize = 8 << 10;

/// Allowed times in a request, in seconds.
const SECONDS: RangeInclusive<u32> = 1..=3_600;

/// The body of a request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IssueBody {
    player: PlayerNumber,
    #[serde(default)]
    servers: Vec<SocketAddr>,
    #[serde(default)]
    user_data: String,
    lifetime_s: Option<u32>,
    timeout_s: Option<u32>,
}

/// A player id. JavaScript has no exact numbers above 2⁵³, so it may be a text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum PlayerNumber {
    Number(u64),
    Text(String),
}

/// The content of the token of a request.
pub(super) fn parse_request(
    body: &[u8],
    settings: &TokenServiceSettings,
    unix_s: u64,
) -> Result<TokenClaims, ApiError> {
    let body: IssueBody = parse_body(body)?;
    let player = match body.player {
        PlayerNumber::Number(player) => Some(player),
        PlayerNumber::Text(text) => text.parse().ok(),
    };
    let player = player.ok_or_else(|| {
        ApiError::bad_request("`player`: expected a whole number of 64 bits, or a text with one")
    })?;
    let seconds = |name: &str, given: Option<u32>, default: u32| match given {
        Some(given) if !SECONDS.contains(&given) => Err(ApiError::bad_request(format!(
            "`{name}`: expected {} to {} seconds, found {given}",
            SECONDS.start(),
            SECONDS.end()
        ))),
        given => Ok(given.unwrap_or(default)),
    };
    let lifetime_s = seconds("lifetime_s", body.lifetime_s, settings.lifetime_s)?;
    let timeout_s = seconds("timeout_s", body.timeout_s, settings.timeout_s)?;
    let servers = match body.servers {
        named if named.is_empty() => settings.servers.clone(),
        named => named,
    };
    if servers.is_empty() {
        let expected = "`servers`: expected at least one HOST:PORT, since the service was started without --server";
        return Err(ApiError::bad_request(expected));
    }
    Ok(TokenClaims {
        expires_s: unix_s.saturating_add(lifetime_s.into()),
        timeout_s: i32::try_from(timeout_s).unwrap_or(i32::MAX),
        user_data: user_data(&body.user_data)?,
        ..TokenClaims::new(player, servers, unix_s)
    })
}

fn user_data(text: &str) -> Result<[u8; USER_DATA_BYTES], ApiError> {
    let bytes = BASE64.decode(text.as_bytes());
    let bytes = bytes.map_err(|error| {
        ApiError::bad_request(format!(
            "`user_data`: expected base64 with padding: {error}"
        ))
    })?;
    let found = bytes.len();
    let mut data = [0; USER_DATA_BYTES];
    let place = data.get_mut(..found).ok_or_else(|| {
        ApiError::bad_request(format!(
            "`user_data`: expected at most {USER_DATA_BYTES} bytes, found {found}"
        ))
    })?;
    place.copy_from_slice(&bytes);
    Ok(data)
}

/// The reply with a token.
pub(super) fn issue(claims: &TokenClaims, key: TokenKey) -> Result<Value, ApiError> {
    let token = ConnectToken::issue(claims, key);
    let token = token.map_err(|error| ApiError(StatusCode::BAD_REQUEST, error.to_string()))?;
    Ok(json!({
        "token": BASE64.encode(&token.to_bytes()),
        "expires_unix_s": claims.expires_s,
        "key_id": key.id,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng::net::SecretKey;

    fn settings(servers: &[&str]) -> TokenServiceSettings {
        TokenServiceSettings {
            address: "127.0.0.1:0".parse().unwrap(),
            port: throng_net::PortSettings::default(),
            callers: "login 0123456789abcdef".parse().unwrap(),
            keys: SecretKey([3; 32]).into(),
            servers: servers
                .iter()
                .map(|server| server.parse().unwrap())
                .collect(),
            lifetime_s: 30,
            timeout_s: 10,
        }
    }

    #[test]
    fn request_states_the_content_of_a_token() {
        let settings = settings(&["127.0.0.1:7000"]);
        let parse = |body: &str| parse_request(body.as_bytes(), &settings, 1_000).unwrap();
        for body in [
            r#"{"player": 18446744073709551615}"#,
            r#"{"player": "18446744073709551615"}"#,
        ] {
            let plain = parse(body);
            assert_eq!(
                (plain.client, plain.created_s, plain.expires_s),
                (u64::MAX, 1_000, 1_030)
            );
            assert_eq!((plain.timeout_s, &plain.servers), (10, &settings.servers));
            assert_eq!(plain.user_data, [0; USER_DATA_BYTES]);
        }
        let full = r#"{"player": 7, "servers": ["[::1]:1", "192.0.2.1:2"], "user_data": "AQID", "lifetime_s": 60, "timeout_s": 20}"#;
        let full = parse(full);
        assert_eq!(
            (full.client, full.expires_s, full.timeout_s),
            (7, 1_060, 20)
        );
        let servers: Vec<String> = full.servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["[::1]:1", "192.0.2.1:2"]);
        assert_eq!(
            (&full.user_data[..4], full.user_data[255]),
            (&[1, 2, 3, 0][..], 0)
        );
    }

    #[test]
    fn invalid_request_says_what_was_expected() {
        let (with, without) = (settings(&["127.0.0.1:7000"]), settings(&[]));
        let long = BASE64.encode(&[1; USER_DATA_BYTES + 1]);
        let long = format!(r#"{{"player": 7, "user_data": "{long}"}}"#);
        for (body, message) in [
            ("", "body: "),
            ("{}", "missing field `player`"),
            (r#"{"player": -1}"#, "body: "),
            (r#"{"player": "x"}"#, "`player`: expected"),
            (r#"{"player": 7, "admin": true}"#, "unknown field `admin`"),
            (
                r#"{"player": 7, "user_data": "A"}"#,
                "`user_data`: expected base64",
            ),
            (&long, "at most 256 bytes, found 257"),
            (
                r#"{"player": 7, "lifetime_s": 0}"#,
                "`lifetime_s`: expected 1 to 3600 seconds, found 0",
            ),
            (
                r#"{"player": 7, "timeout_s": 3601}"#,
                "`timeout_s`: expected",
            ),
            (r#"{"player": 7, "servers": ["a"]}"#, "body: "),
        ] {
            let ApiError(status, text) = parse_request(body.as_bytes(), &with, 1_000).unwrap_err();
            assert!(text.contains(message), "{body}: {text}");
            assert_eq!(status, StatusCode::BAD_REQUEST);
        }
        let nowhere = parse_request(br#"{"player": 7}"#, &without, 1_000);
        assert!(nowhere.unwrap_err().1.contains("at least one HOST:PORT"));
        let mut everywhere = parse_request(br#"{"player": 7}"#, &with, 1_000).unwrap();
        everywhere.servers = vec![everywhere.servers[0]; 33];
        let refused = issue(&everywhere, with.keys.first()).unwrap_err();
        assert!(refused.1.contains("33 server addresses"), "{}", refused.1);
    }

    #[test]
    fn openapi_describes_the_fields_and_limits() {
        let described: Value = serde_json::from_str(OPENAPI).unwrap();
        let schema = &described["components"]["schemas"]["TokenRequest"];
        let properties = schema["properties"].as_object().unwrap();
        let mut names: Vec<&str> = properties.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["lifetime_s", "player", "servers", "timeout_s", "user_data"]
        );
        for name in ["lifetime_s", "timeout_s"] {
            let limits = ["minimum", "maximum"].map(|limit| properties[name][limit].as_u64());
            assert_eq!(
                limits,
                [SECONDS.start(), SECONDS.end()].map(|&limit| Some(limit.into()))
            );
        }
        let claims = parse_request(br#"{"player": 7}"#, &settings(&["127.0.0.1:7000"]), 1_000);
        let reply = issue(&claims.unwrap(), TokenKey::with_id(4, SecretKey([3; 32]))).unwrap();
        let schema = &described["components"]["schemas"]["Token"];
        for name in reply.as_object().unwrap().keys() {
            assert!(schema["properties"].get(name).is_some(), "{name}");
        }
        assert_eq!(reply["key_id"], 4);
    }
}
