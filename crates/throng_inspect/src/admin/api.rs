//! Which request is which command, and replies as JSON. `openapi.json` beside this file describes the same for other programs.

use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use throng::session::{Ban, BanTarget};
use throng::world::PlayerId;

use super::protocol::{AdminAction, AdminOutcome};
use crate::http_listener::{ApiError, parse_body, wrong_method};

/// The description of the API, as OpenAPI 3.1.
pub(super) const OPENAPI: &str = include_str!("openapi.json");

/// The length of a list in a reply: by default, and at most.
const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1000;

/// A parsed request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AdminRequest {
    pub action: AdminAction,
    /// The reason that the operator gives, for the audit log.
    pub reason: String,
}

/// The body of a kick.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct KickBody {
    #[serde(default)]
    reason: String,
}

/// The body of a ban.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BanBody {
    player: Option<u64>,
    addresses: Option<String>,
    #[serde(default)]
    reason: String,
    /// Seconds; never, if it is missing.
    for_s: Option<u64>,
}

/// The command of a request. `who` and `now_unix_s` are entered in a ban.
pub(super) fn parse_request(
    (method, path, query): (&str, &str, &str),
    body: &[u8],
    (who, now_unix_s): (&str, u64),
) -> Result<AdminRequest, ApiError> {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let plain = |action| AdminRequest {
        action,
        reason: String::new(),
    };
    match (parts.as_slice(), method) {
        (["players"], "GET") => list_players(query).map(plain),
        (["players", id], "GET") => Ok(plain(AdminAction::ShowPlayer(player_id(id)?))),
        (["players", id, "kick"], "POST") => {
            let KickBody { reason } = match body {
                [] => KickBody::default(),
                body => parse_body(body)?,
            };
            let action = AdminAction::Kick(player_id(id)?);
            Ok(AdminRequest { action, reason })
        }
        (["bans"], "GET") => {
            let skip = parameter(query, "skip").map(number).transpose()?;
            let skip = skip.unwrap_or(0).try_into().unwrap_or(usize::MAX);
            let limit = page_limit(query)?;
            Ok(plain(AdminAction::ListBans { skip, limit }))
        }
        (["bans"], "POST") => {
            let body: BanBody = parse_body(body)?;
            let reason = body.reason;
            let action = AdminAction::Ban(Ban {
                target: ban_target(body.player, body.addresses.as_deref())?,
                reason: reason.clone(),
                issued_by: who.to_owned(),
                issued_unix_s: now_unix_s,
                until_unix_s: body.for_s.map(|for_s| now_unix_s.saturating_add(for_s)),
            });
            Ok(AdminRequest { action, reason })
        }
        (["bans"], "DELETE") => {
            let player = parameter(query, "player").map(number).transpose()?;
            let target = ban_target(player, parameter(query, "addresses"))?;
            Ok(plain(AdminAction::Lift(target)))
        }
        (["players"] | ["players", _], _) => Err(wrong_method("GET")),
        (["players", _, "kick"], _) => Err(wrong_method("POST")),
        (["bans"], _) => Err(wrong_method("GET, POST or DELETE")),
        _ => Err(ApiError(
            StatusCode::NOT_FOUND,
            format!("no such path `{path}`: GET /openapi.json lists all"),
        )),
    }
}

fn list_players(query: &str) -> Result<AdminAction, ApiError> {
    let after = parameter(query, "after").map(number).transpose()?;
    let limit = page_limit(query)?;
    Ok(AdminAction::ListPlayers { after, limit })
}

/// The maximum length of a list in a reply.
fn page_limit(query: &str) -> Result<usize, ApiError> {
    let limit = parameter(query, "limit").map(number).transpose()?;
    let limit = limit.map_or(LIMIT_DEFAULT, |limit| {
        limit.try_into().unwrap_or(usize::MAX)
    });
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(ApiError::bad_request(format!(
            "parameter `limit`: expected 1 to {LIMIT_MAX}, found {limit}"
        )));
    }
    Ok(limit)
}

/// The value of a parameter in a query. The only values with escapes are address ranges: see [`ban_target`].
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(other, _)| *other == name).map(|pair| pair.1)
}

fn number(text: &str) -> Result<u64, ApiError> {
    let invalid = |_| ApiError::bad_request(format!("expected a whole number, found `{text}`"));
    text.parse().map_err(invalid)
}

fn player_id(text: &str) -> Result<PlayerId, ApiError> {
    number(text).map(PlayerId)
}

fn ban_target(player: Option<u64>, addresses: Option<&str>) -> Result<BanTarget, ApiError> {
    match (player, addresses) {
        (Some(player), None) => Ok(BanTarget::Player(PlayerId(player))),
        (None, Some(range)) => {
            let range = range
                .replace("%2F", "/")
                .replace("%2f", "/")
                .replace("%3A", ":");
            let range = range.replace("%3a", ":").parse();
            let range =
                range.map_err(|error| ApiError::bad_request(format!("`addresses`: {error}")));
            Ok(BanTarget::Addresses(range?))
        }
        _ => Err(ApiError::bad_request(
            "expected one of `player` and `addresses`",
        )),
    }
}

/// The reply to a command.
pub(super) fn reply(outcome: &AdminOutcome) -> (StatusCode, Value) {
    let not_found = |message: &str| (StatusCode::NOT_FOUND, json!({ "error": message }));
    let body = match outcome {
        AdminOutcome::Players { players, next } => json!({ "players": players, "next": next }),
        AdminOutcome::Player(Some(player)) => json!(player),
        AdminOutcome::Kicked(true) => json!({ "sessions_ended": 1 }),
        AdminOutcome::Player(None) | AdminOutcome::Kicked(false) => {
            return not_found("the player is not logged in");
        }
        AdminOutcome::Bans { bans, next } => json!({ "bans": bans, "next": next }),
        AdminOutcome::Banned(Ok(ended)) => json!({ "sessions_ended": ended }),
        AdminOutcome::Banned(Err(error)) => {
            let body = json!({ "error": error.to_string() });
            return (StatusCode::CONFLICT, body);
        }
        AdminOutcome::Lifted(true) => json!({ "bans_lifted": 1 }),
        AdminOutcome::Lifted(false) => return not_found("there is no such ban"),
    };
    (StatusCode::OK, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn parse(method: &str, target: &str, body: &str) -> Result<AdminRequest, ApiError> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        parse_request((method, path, query), body.as_bytes(), ("alice", 1000))
    }

    fn action(method: &str, target: &str, body: &str) -> AdminAction {
        parse(method, target, body).unwrap().action
    }

    #[test]
    fn requests_become_commands() {
        let listed = |after, limit| AdminAction::ListPlayers { after, limit };
        assert_eq!(action("GET", "/players", ""), listed(None, 100));
        let page = action("GET", "/players?limit=1000&after=7", "");
        assert_eq!(page, listed(Some(7), 1000));
        let seven = PlayerId(7);
        assert_eq!(
            action("GET", "/players/7", ""),
            AdminAction::ShowPlayer(seven)
        );
        let kick = parse("POST", "/players/7/kick", r#"{"reason":"afk"}"#).unwrap();
        assert_eq!(
            (kick.action, kick.reason.as_str()),
            (AdminAction::Kick(seven), "afk")
        );
        assert_eq!(
            action("POST", "/players/7/kick", ""),
            AdminAction::Kick(seven)
        );
        let listed = |skip, limit| AdminAction::ListBans { skip, limit };
        assert_eq!(action("GET", "/bans", ""), listed(0, 100));
        assert_eq!(action("GET", "/bans?skip=5&limit=1", ""), listed(5, 1));
        let ban = Ban {
            target: BanTarget::Addresses("192.0.2.0/24".parse().unwrap()),
            reason: "bots".to_owned(),
            issued_by: "alice".to_owned(),
            issued_unix_s: 1000,
            until_unix_s: Some(1060),
        };
        let body = r#"{"addresses":"192.0.2.9/24","reason":"bots","for_s":60}"#;
        assert_eq!(action("POST", "/bans", body), AdminAction::Ban(ban.clone()));
        for range in ["192.0.2.0/24", "192.0.2.0%2F24"] {
            let lifted = action("DELETE", &format!("/bans?addresses={range}"), "");
            assert_eq!(lifted, AdminAction::Lift(ban.target));
        }
        let lifted = action("DELETE", "/bans?player=7", "");
        assert_eq!(lifted, AdminAction::Lift(BanTarget::Player(seven)));
    }

    #[test]
    fn wrong_requests_say_what_was_expected() {
        for (method, target, body, status, message) in [
            ("GET", "/players?limit=0", "", 400, "1 to 1000, found 0"),
            (
                "GET",
                "/players?limit=1001",
                "",
                400,
                "1 to 1000, found 1001",
            ),
            ("GET", "/bans?limit=1001", "", 400, "1 to 1000, found 1001"),
            ("GET", "/players/x", "", 400, "a whole number, found `x`"),
            ("GET", "/players/-1", "", 400, "a whole number, found `-1`"),
            ("GET", "/players/7/kick", "", 405, "method POST"),
            ("DELETE", "/players/7", "", 405, "method GET"),
            ("PUT", "/bans", "", 405, "GET, POST or DELETE"),
            ("GET", "/nothing", "", 404, "openapi.json"),
            ("GET", "/players/7/kick/9", "", 404, "openapi.json"),
            ("POST", "/bans", "", 400, "body: "),
            (
                "POST",
                "/bans",
                "{}",
                400,
                "one of `player` and `addresses`",
            ),
            (
                "POST",
                "/bans",
                r#"{"player":1,"days":3}"#,
                400,
                "unknown field `days`",
            ),
            (
                "POST",
                "/bans",
                r#"{"addresses":"::/129"}"#,
                400,
                "found `::/129`",
            ),
            ("POST", "/players/7/kick", "[1", 400, "body: "),
            (
                "DELETE",
                "/bans",
                "",
                400,
                "one of `player` and `addresses`",
            ),
        ] {
            let ApiError(found, text) = parse(method, target, body).unwrap_err();
            assert_eq!(found.as_u16(), status, "{method} {target}");
            assert!(text.contains(message), "{method} {target}: {text}");
        }
    }

    #[test]
    fn openapi_describes_every_path_and_method() {
        let described: Value = serde_json::from_str(OPENAPI).unwrap();
        let paths = described["paths"].as_object().unwrap();
        let described: BTreeSet<(String, String)> = paths
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().unwrap().keys();
                methods.map(|method| (path.replace("{id}", "7"), method.to_uppercase()))
            })
            .collect();
        let mut served = BTreeSet::new();
        for path in [
            "/players",
            "/players/7",
            "/players/7/kick",
            "/bans",
            "/openapi.json",
        ] {
            for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
                let is_description = path == "/openapi.json" && method == "GET";
                let body = if path == "/bans" {
                    r#"{"player":1}"#
                } else {
                    ""
                };
                let query = if path == "/bans" { "?player=1" } else { "" };
                let found = parse(method, &format!("{path}{query}"), body);
                if is_description || found.is_ok() {
                    served.insert((path.to_owned(), method.to_owned()));
                }
            }
        }
        assert_eq!(described, served);
    }
}
