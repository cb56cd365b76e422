//! The self-signed certificate of a server for browsers that know its hash (W3C WebTransport, `serverCertificateHashes`): on the curve
//! P-256, valid for less than two weeks.

use std::io;

use throng_core::clock::unix_ms;
use wtransport::Identity;
use wtransport::tls::self_signed::{SelfSignedIdentityBuilder, time};

const DAY_S: u64 = 24 * 3_600;

/// The certificate is valid from before now, for clocks that are slow.
const BACKDATED_S: u64 = DAY_S;

/// Validity from now on. Together with the time before, less than two weeks.
const VALID_S: u64 = 12 * DAY_S;

/// Longest time until the next certificate. A hash that a page has loaded stays valid for as long again.
pub(super) const RENEWAL_S_MAX: u64 = VALID_S / 2;

/// A certificate for these names, with its key, and its SHA-256.
pub(super) fn self_signed(names: &[String]) -> io::Result<(Identity, [u8; 32])> {
    let now_s = unix_ms() / 1_000;
    let at = |unix_s: u64| {
        let unix_s = i64::try_from(unix_s).map_err(io::Error::other)?;
        time::OffsetDateTime::from_unix_timestamp(unix_s).map_err(io::Error::other)
    };
    let (from, until) = (at(now_s.saturating_sub(BACKDATED_S))?, at(now_s + VALID_S)?);
    let identity = SelfSignedIdentityBuilder::new()
        .subject_alt_names(names)
        .validity_period(from, until)
        .build()
        .map_err(io::Error::other)?;
    let [certificate] = identity.certificate_chain().as_slice() else {
        return Err(io::Error::other("expected one certificate"));
    };
    let hash = *certificate.hash().as_ref();
    Ok((identity, hash))
}
