//! Any bytes are a PROXY header or an error, and a header has one source address; used by the fuzzer, and by the test that replays its
//! corpus.

use crate::net::http::{PROXY_HEADER_BYTES_MAX, ProxyHeaderError, decode_proxy_header};

pub fn check(input: &[u8]) {
    match decode_proxy_header(input) {
        Ok((source, length)) => {
            assert!((16..=PROXY_HEADER_BYTES_MAX).contains(&length) && length <= input.len());
            assert_eq!(input[12] >> 4, 2, "the version");
            assert!(source.is_none() || input[12] == 0x21);
            // Bytes after the header change nothing, and a truncated header is not a header.
            let alone = decode_proxy_header(&input[..length]);
            assert_eq!(alone.expect("the header is complete"), (source, length));
            let cut = decode_proxy_header(&input[..length - 1]);
            assert!(matches!(cut, Err(ProxyHeaderError::Incomplete(_))));
            if let Some(source) = source {
                assert_eq!(source.ip(), source.ip().to_canonical());
            }
        }
        Err(ProxyHeaderError::Incomplete(found)) => {
            assert!(found == input.len() && found < PROXY_HEADER_BYTES_MAX);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
