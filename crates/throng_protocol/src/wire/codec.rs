//! Varints, and a reader that checks bounds.

use thiserror::Error;

/// Why bytes cannot be decoded.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end too early.
    #[error("byte {at}: message truncated, {wanted} more bytes expected")]
    Truncated {
        /// Offset at which more bytes were expected.
        at: usize,
        /// Minimum number of missing bytes.
        wanted: usize,
    },
    /// A varint has more bits than its type.
    #[error("byte {at}: varint longer than {bits} bits")]
    VarintOverflow {
        /// Offset of its first byte.
        at: usize,
        /// The number of bits allowed.
        bits: u32,
    },
    /// The kind byte is unknown.
    #[error("byte {at}: unknown message kind {found}")]
    UnknownKind {
        /// Offset of the byte.
        at: usize,
        /// The kind found.
        found: u8,
    },
    /// The version of the format differs.
    #[error("protocol version {found}, expected {expected}")]
    VersionMismatch {
        /// The version found.
        found: u32,
        /// The version of this build.
        expected: u32,
    },
    /// A packet with flags that this version does not know, so the rest cannot be decoded.
    #[error("byte 0: unknown flags {found:#04x}")]
    UnknownFlags {
        /// The packet's first byte.
        found: u8,
    },
    /// A fragment of a long message in an unreliable packet.
    #[error("byte {at}: message fragment in an unreliable packet")]
    FragmentUnreliable {
        /// Offset of the fragment.
        at: usize,
    },
    /// A fragment does not follow the one before it.
    #[error("byte {at}: fragment offset {found}, expected {expected}")]
    FragmentOffset {
        /// Offset of the field.
        at: usize,
        /// The offset found, within the message.
        found: usize,
        /// Number of bytes received of the message.
        expected: usize,
    },
    /// Another message arrived before all fragments of a message had.
    #[error("fragmented message {number} incomplete: another message followed on its channel")]
    FragmentMissing {
        /// Number of the fragmented message.
        number: u16,
    },
    /// A value is longer than allowed.
    #[error("byte {at}: value of {found} bytes, at most {max} allowed")]
    TooLong {
        /// Offset of its length.
        at: usize,
        /// The length found.
        found: u32,
        /// The longest length allowed.
        max: u32,
    },
    /// A length in metres is infinite or NaN.
    #[error("byte {at}: expected a finite number")]
    NotFinite {
        /// Offset of the number.
        at: usize,
    },
    /// A text is not valid UTF-8.
    #[error("byte {at}: invalid UTF-8")]
    InvalidUtf8 {
        /// Offset of the first invalid byte.
        at: usize,
    },
    /// Bytes follow after the end of a message.
    #[error("byte {at}: {found} trailing bytes")]
    Trailing {
        /// Offset of the end of the message.
        at: usize,
        /// Number of bytes that follow.
        found: usize,
    },
}

/// Writes `value` as LEB128: 1 to 10 bytes.
#[inline]
pub fn write_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Reads a message from front to back.
#[derive(Clone, Debug)]
pub struct WireReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> WireReader<'a> {
    /// Reads `bytes` from the start.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Number of bytes read.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Whether no bytes are left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The next `count` bytes.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let left = self.bytes.len() - self.at;
        if count > left {
            return Err(WireError::Truncated {
                at: self.bytes.len(),
                wanted: count - left,
            });
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, WireError> {
        let byte = *self.bytes.get(self.at).ok_or(WireError::Truncated {
            at: self.at,
            wanted: 1,
        })?;
        self.at += 1;
        Ok(byte)
    }

    /// The next varint of at most 32 bits.
    #[inline]
    pub fn varint_u32(&mut self) -> Result<u32, WireError> {
        let at = self.at;
        let value = self.varint(32)?;
        u32::try_from(value).map_err(|_| WireError::VarintOverflow { at, bits: 32 })
    }

    /// The next varint of at most 64 bits.
    pub fn varint_u64(&mut self) -> Result<u64, WireError> {
        self.varint(64)
    }

    #[inline]
    fn varint(&mut self, bits: u32) -> Result<u64, WireError> {
        let start = self.at;
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift >= bits || (part << shift) >> shift != part {
                return Err(WireError::VarintOverflow { at: start, bits });
            }
            value |= part << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// All remaining bytes.
    pub fn remaining(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    /// Returns an error unless everything was read.
    pub fn expect_end(&self) -> Result<(), WireError> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(WireError::Trailing {
                at: self.at,
                found: self.bytes.len() - self.at,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn a_varint_reads_back(value: u64) {
            let mut bytes = Vec::new();
            write_varint(&mut bytes, value);
            let mut reader = WireReader::new(&bytes);
            prop_assert_eq!(reader.varint_u64(), Ok(value));
            prop_assert!(reader.is_empty());
            prop_assert_eq!(WireReader::new(&bytes).varint_u32().ok(), u32::try_from(value).ok());
        }
    }

    #[test]
    fn an_endless_varint_is_an_error() {
        assert_eq!(
            WireReader::new(&[0xff; 20]).varint_u64(),
            Err(WireError::VarintOverflow { at: 0, bits: 64 })
        );
        assert_eq!(
            WireReader::new(&[0x80; 3]).varint_u64(),
            Err(WireError::Truncated { at: 3, wanted: 1 })
        );
    }
}
