//! The ban file and the audit log.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use throng::session::{Ban, BanTarget};
use throng::sim::clock::unix_ms;

use super::error::AdminError;
use crate::audit::{AuditRecord, append_record, open_audit_file};

/// The files of the API.
#[derive(Debug)]
pub(super) struct AdminFiles {
    ban_file: Option<PathBuf>,
    /// The bans in the file, so that a change needs no list from the tick.
    bans: BTreeMap<BanTarget, Ban>,
    audit: Option<File>,
}

impl AdminFiles {
    /// Opens the files, and returns the stored bans that have not expired.
    pub fn open(
        ban_file: Option<PathBuf>,
        audit: Option<PathBuf>,
    ) -> Result<(Self, Vec<Ban>), AdminError> {
        let stored = match &ban_file {
            Some(path) => read_bans(path)?,
            None => Vec::new(),
        };
        let open = |path: PathBuf| {
            let file = open_audit_file(&path);
            file.map_err(|source| AdminError::File { path, source })
        };
        let audit = audit.map(open).transpose()?;
        let bans = stored.iter().map(|ban| (ban.target, ban.clone()));
        let files = Self {
            ban_file,
            bans: bans.collect(),
            audit,
        };
        Ok((files, stored))
    }

    /// The path of the ban file, if there is one.
    pub fn ban_file(&self) -> Option<PathBuf> {
        self.ban_file.clone()
    }

    /// Adds a ban to the file, or replaces the one with the same target. O(bans).
    pub fn add_ban(&mut self, ban: Ban) -> io::Result<()> {
        self.bans.insert(ban.target, ban);
        self.write_bans()
    }

    /// Removes a ban from the file. O(bans).
    pub fn lift_ban(&mut self, target: BanTarget) -> io::Result<()> {
        self.bans.remove(&target);
        self.write_bans()
    }

    /// Replaces the ban file, without expired bans. The new content is on disk before it takes the name, so a crash leaves the old
    /// or the new file.
    fn write_bans(&mut self) -> io::Result<()> {
        let now = unix_ms() / 1000;
        self.bans.retain(|_, ban| is_active(ban, now));
        let Some(path) = &self.ban_file else {
            return Ok(());
        };
        let bans: Vec<&Ban> = self.bans.values().collect();
        let mut next = path.clone().into_os_string();
        next.push(".new");
        let next = PathBuf::from(next);
        let mut file = File::create(&next)?;
        serde_json::to_writer_pretty(&mut file, &bans)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&next, path)
    }

    /// Appends a line to the audit log.
    pub fn append_audit(&mut self, record: &AuditRecord) -> io::Result<()> {
        match &mut self.audit {
            Some(file) => append_record(file, record),
            None => Ok(()),
        }
    }
}

fn read_bans(path: &Path) -> Result<Vec<Ban>, AdminError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            let path = path.to_owned();
            return Err(AdminError::File { path, source });
        }
    };
    let mut bans: Vec<Ban> =
        serde_json::from_str(&text).map_err(|source| AdminError::InvalidBanFile {
            path: path.to_owned(),
            source,
        })?;
    let now = unix_ms() / 1000;
    bans.retain(|ban| is_active(ban, now));
    Ok(bans)
}

fn is_active(ban: &Ban, now_unix_s: u64) -> bool {
    ban.until_unix_s.is_none_or(|until| until > now_unix_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng::world::PlayerId;

    #[test]
    fn ban_is_stored_with_one_target() {
        let text = r#"{"addresses":"192.0.2.0/24","reason":"bots","issued_by":"bob","issued_unix_s":5,"until_unix_s":null}"#;
        let ban: Ban = serde_json::from_str(text).unwrap();
        assert_eq!(ban.target.to_string(), "addresses 192.0.2.0/24");
        assert_eq!(serde_json::to_string(&ban).unwrap(), text);
        assert!(serde_json::from_str::<Ban>(r#"{"player":7}"#).is_ok());
        for invalid in [
            "{}",
            r#"{"player":7,"addresses":"::/0"}"#,
            r#"{"addresses":"::/129"}"#,
            r#"{"player":7,"who":1}"#,
        ] {
            assert!(serde_json::from_str::<Ban>(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn ban_file_keeps_bans_and_drops_expired_ones() {
        let folder = std::env::temp_dir().join(format!("throng-bans-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("bans.json");
        let open = || AdminFiles::open(Some(path.clone()), None);
        let (mut files, stored) = open().unwrap();
        assert_eq!(stored, []);
        let ban = |player, until_unix_s| Ban {
            target: BanTarget::Player(PlayerId(player)),
            reason: "a \"quote\"".to_owned(),
            issued_by: "alice".to_owned(),
            issued_unix_s: 5,
            until_unix_s,
        };
        let kept = [ban(1, None), ban(2, Some(u64::MAX))];
        for ban in [&kept[0], &kept[1], &ban(3, Some(6)), &ban(4, None)] {
            files.add_ban(ban.clone()).unwrap();
        }
        files.lift_ban(BanTarget::Player(PlayerId(4))).unwrap();
        assert_eq!(open().unwrap().1, kept);
        // A file that another server wrote long ago.
        let expired = serde_json::to_string(&[ban(3, Some(6))]).unwrap();
        fs::write(&path, expired).unwrap();
        assert_eq!(open().unwrap().1, []);
        fs::write(&path, "[{\"player\": 1},\n{}]").unwrap();
        let error = open().unwrap_err().to_string();
        assert!(
            error.contains("bans.json") && error.contains("line 2"),
            "{error}"
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
