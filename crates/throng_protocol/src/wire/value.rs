//! Values of attributes, and their encodings.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::ATTRIBUTE_BYTES_MAX;
use super::codec::{WireError, WireReader, write_varint};

/// The value of an attribute. Its encoding defines its bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// A count, a flag (0 or 1), or an id.
    Unsigned(u64),
    /// A number that may be negative.
    Signed(i64),
    /// A measure, such as a length or a share.
    Float(f32),
    /// Text, or any bytes of a game.
    Bytes(SmallVec<[u8; 16]>),
}

/// The encoding of a value in packets. Numbers outside the range are clamped; a number where bytes are expected becomes the empty value,
/// and bytes where a number is expected become 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Encoding {
    /// 1 byte, 0 to 255.
    U8,
    /// 2 bytes, little endian.
    U16,
    /// 4 bytes, little endian.
    U32,
    /// An unsigned varint: 1 to 10 bytes.
    Varint,
    /// A signed varint, zigzag (0, −1, 1, −2, …): 1 to 10 bytes.
    Zigzag,
    /// 4 bytes, IEEE 754, little endian.
    F32,
    /// The bytes themselves; longer values are truncated.
    Bytes {
        /// The longest value, in bytes.
        max: u32,
    },
}

impl Encoding {
    /// The longest encoded value, in bytes.
    #[must_use]
    pub const fn bytes_max(self) -> u32 {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 | Self::F32 => 4,
            Self::Varint | Self::Zigzag => 10,
            Self::Bytes { max } => max,
        }
    }

    /// Whether [`write`](Self::write) neither clamps nor truncates the value.
    #[must_use]
    pub fn fits(self, value: &AttributeValue) -> bool {
        match (self, value) {
            (Self::Bytes { max }, AttributeValue::Bytes(value)) => value.len() <= max as usize,
            (Self::Bytes { .. }, _) | (_, AttributeValue::Bytes(_)) => false,
            (Self::U8, value) => value.is_within(u64::from(u8::MAX)),
            (Self::U16, value) => value.is_within(u64::from(u16::MAX)),
            (Self::U32, value) => value.is_within(u64::from(u32::MAX)),
            (Self::Varint, value) => value.is_within(u64::MAX),
            (Self::Zigzag, AttributeValue::Unsigned(value)) => i64::try_from(*value).is_ok(),
            (Self::Zigzag, AttributeValue::Float(value)) => value.abs() < i64::MAX as f32,
            (Self::Zigzag | Self::F32, _) => true,
        }
    }

    /// Appends the encoded value: at most [`bytes_max`](Self::bytes_max) bytes.
    pub fn write(self, value: &AttributeValue, bytes: &mut Vec<u8>) {
        match self {
            Self::U8 => bytes.push(value.unsigned().min(u64::from(u8::MAX)) as u8),
            Self::U16 => {
                let clamped = value.unsigned().min(u64::from(u16::MAX)) as u16;
                bytes.extend(clamped.to_le_bytes());
            }
            Self::U32 => {
                let clamped = value.unsigned().min(u64::from(u32::MAX)) as u32;
                bytes.extend(clamped.to_le_bytes());
            }
            Self::Varint => write_varint(bytes, value.unsigned()),
            Self::Zigzag => {
                let signed = value.signed();
                write_varint(bytes, (signed << 1 ^ signed >> 63) as u64);
            }
            Self::F32 => bytes.extend(value.float().to_le_bytes()),
            Self::Bytes { max } => {
                if let AttributeValue::Bytes(value) = value {
                    bytes.extend_from_slice(&value[..value.len().min(max as usize)]);
                }
            }
        }
    }

    /// Decodes a value; `bytes` must contain nothing else.
    ///
    /// # Errors
    /// [`WireError`] if there are too few or too many bytes, or they are no valid number.
    pub fn read(self, bytes: &[u8]) -> Result<AttributeValue, WireError> {
        let mut reader = WireReader::new(bytes);
        let value = match self {
            Self::U8 => AttributeValue::Unsigned(u64::from(reader.byte()?)),
            Self::U16 => AttributeValue::Unsigned(u64::from(u16::from_le_bytes(reader.array()?))),
            Self::U32 => AttributeValue::Unsigned(u64::from(u32::from_le_bytes(reader.array()?))),
            Self::Varint => AttributeValue::Unsigned(reader.varint_u64()?),
            Self::Zigzag => {
                let folded = reader.varint_u64()?;
                AttributeValue::Signed((folded >> 1) as i64 ^ -((folded & 1) as i64))
            }
            Self::F32 => AttributeValue::Float(f32::from_le_bytes(reader.array()?)),
            Self::Bytes { max } => {
                let max = max.min(ATTRIBUTE_BYTES_MAX);
                let found = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                if found > max {
                    return Err(WireError::TooLong { at: 0, found, max });
                }
                AttributeValue::Bytes(SmallVec::from_slice(reader.bytes(bytes.len())?))
            }
        };
        reader.expect_end()?;
        Ok(value)
    }
}

impl AttributeValue {
    fn unsigned(&self) -> u64 {
        match *self {
            Self::Unsigned(value) => value,
            Self::Signed(value) => value.max(0) as u64,
            Self::Float(value) => value.round() as u64,
            Self::Bytes(_) => 0,
        }
    }

    fn signed(&self) -> i64 {
        match *self {
            Self::Unsigned(value) => i64::try_from(value).unwrap_or(i64::MAX),
            Self::Signed(value) => value,
            Self::Float(value) => value.round() as i64,
            Self::Bytes(_) => 0,
        }
    }

    /// Whether it is an integer from 0 to `max`.
    fn is_within(&self, max: u64) -> bool {
        match *self {
            Self::Unsigned(value) => value <= max,
            Self::Signed(value) => u64::try_from(value).is_ok_and(|value| value <= max),
            Self::Float(value) => (0.0..=max as f32).contains(&value.round()),
            Self::Bytes(_) => false,
        }
    }

    /// The number, where it is a whole one.
    fn whole(&self) -> Option<i128> {
        match *self {
            Self::Unsigned(value) => Some(value.into()),
            Self::Signed(value) => Some(value.into()),
            // Infinities and NaN have no fraction of 0.
            Self::Float(value) => (value.fract() == 0.0).then_some(value as i128),
            Self::Bytes(_) => None,
        }
    }

    const fn float(&self) -> f32 {
        match *self {
            Self::Unsigned(value) => value as f32,
            Self::Signed(value) => value as f32,
            Self::Float(value) => value,
            Self::Bytes(_) => 0.0,
        }
    }
}

macro_rules! value_from {
    ($($number:ty => $variant:ident($wide:ty);)*) => {
        $(impl From<$number> for AttributeValue {
            fn from(value: $number) -> Self {
                Self::$variant(<$wide>::from(value))
            }
        })*
    };
}

value_from! {
    bool => Unsigned(u64);
    u8 => Unsigned(u64);
    u16 => Unsigned(u64);
    u32 => Unsigned(u64);
    u64 => Unsigned(u64);
    i8 => Signed(i64);
    i16 => Signed(i64);
    i32 => Signed(i64);
    i64 => Signed(i64);
    f32 => Float(f32);
}

/// A type that can be the value of an attribute, with an encoding for all of its values.
pub trait AttributeType: Sized {
    /// The default encoding.
    const ENCODING: Encoding;

    /// Converts to a value.
    fn to_value(&self) -> AttributeValue;

    /// The value of this type that a decoded value stands for; `None` where there is no such value: a number out of range, a
    /// fraction for a whole number, a flag that is neither 0 nor 1, bytes for a number.
    fn from_value(value: &AttributeValue) -> Option<Self>;

    /// Decodes a value in the given encoding; `None` where the bytes are not a value of this type.
    ///
    /// ```
    /// use throng_protocol::wire::{AttributeType, Encoding};
    ///
    /// assert_eq!(u16::decode(Encoding::U16, &[1, 2]), Some(513));
    /// assert_eq!(u16::decode(Encoding::U16, &[1]), None);
    /// assert_eq!(u8::decode(Encoding::U16, &[1, 2]), None);
    /// ```
    #[must_use]
    fn decode(encoding: Encoding, bytes: &[u8]) -> Option<Self> {
        Self::from_value(&encoding.read(bytes).ok()?)
    }
}

macro_rules! whole_numbers {
    ($($number:ty => $encoding:ident;)*) => {
        $(impl AttributeType for $number {
            const ENCODING: Encoding = Encoding::$encoding;

            fn to_value(&self) -> AttributeValue {
                (*self).into()
            }

            fn from_value(value: &AttributeValue) -> Option<Self> {
                Self::try_from(value.whole()?).ok()
            }
        })*
    };
}

whole_numbers! {
    u8 => U8;
    u16 => U16;
    u32 => Varint;
    u64 => Varint;
    i8 => Zigzag;
    i16 => Zigzag;
    i32 => Zigzag;
    i64 => Zigzag;
}

impl AttributeType for bool {
    const ENCODING: Encoding = Encoding::U8;

    fn to_value(&self) -> AttributeValue {
        (*self).into()
    }

    fn from_value(value: &AttributeValue) -> Option<Self> {
        match value.whole()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl AttributeType for f32 {
    const ENCODING: Encoding = Encoding::F32;

    fn to_value(&self) -> AttributeValue {
        (*self).into()
    }

    fn from_value(value: &AttributeValue) -> Option<Self> {
        match value {
            AttributeValue::Bytes(_) => None,
            number => Some(number.float()),
        }
    }
}

impl From<&[u8]> for AttributeValue {
    fn from(value: &[u8]) -> Self {
        Self::Bytes(SmallVec::from_slice(value))
    }
}

impl From<&str> for AttributeValue {
    fn from(value: &str) -> Self {
        Self::from(value.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(encoding: Encoding, value: &AttributeValue) -> Vec<u8> {
        let mut bytes = Vec::new();
        encoding.write(value, &mut bytes);
        bytes
    }

    /// An encoding with a value in its range.
    fn fitting() -> impl Strategy<Value = (Encoding, AttributeValue)> {
        prop_oneof![
            any::<u8>().prop_map(|v| (Encoding::U8, v.into())),
            any::<u16>().prop_map(|v| (Encoding::U16, v.into())),
            any::<u32>().prop_map(|v| (Encoding::U32, v.into())),
            any::<u64>().prop_map(|v| (Encoding::Varint, v.into())),
            any::<i64>().prop_map(|v| (Encoding::Zigzag, v.into())),
            prop::num::f32::ANY
                .prop_filter("a number", |v| !v.is_nan())
                .prop_map(|v| (Encoding::F32, v.into())),
            prop::collection::vec(any::<u8>(), 0..=40)
                .prop_map(|v| (Encoding::Bytes { max: 40 }, v.as_slice().into())),
        ]
    }

    const ENCODINGS: [Encoding; 7] = [
        Encoding::U8,
        Encoding::U16,
        Encoding::U32,
        Encoding::Varint,
        Encoding::Zigzag,
        Encoding::F32,
        Encoding::Bytes { max: 8 },
    ];

    /// Whether an encoding holds a number without rounding it.
    fn holds(encoding: Encoding, value: &AttributeValue) -> bool {
        let is_exact = match (encoding, value) {
            (Encoding::F32, AttributeValue::Unsigned(number)) => {
                *number as f32 as u128 == u128::from(*number)
            }
            (Encoding::F32, AttributeValue::Signed(number)) => {
                *number as f32 as i128 == i128::from(*number)
            }
            (Encoding::F32, _) => true,
            (_, AttributeValue::Float(number)) => number.fract() == 0.0,
            _ => true,
        };
        encoding.fits(value) && is_exact
    }

    fn check_type<T: AttributeType + PartialEq + Copy + std::fmt::Debug>(
        value: T,
    ) -> Result<(), TestCaseError> {
        let encoded = value.to_value();
        prop_assert!(holds(T::ENCODING, &encoded), "{value:?}");
        for encoding in ENCODINGS {
            let read = T::decode(encoding, &written(encoding, &encoded));
            if holds(encoding, &encoded) {
                prop_assert_eq!(read, Some(value), "{:?}", encoding);
            }
        }
        Ok(())
    }

    /// What is read is written as the same number, and bytes of the wrong length are nothing.
    fn check_bytes<T: AttributeType + PartialEq + std::fmt::Debug>(
        encoding: Encoding,
        bytes: &[u8],
    ) -> Result<(), TestCaseError> {
        let length = match encoding {
            Encoding::U8 => Some(1),
            Encoding::U16 => Some(2),
            Encoding::U32 | Encoding::F32 => Some(4),
            _ => None,
        };
        let read = T::decode(encoding, bytes);
        if length.is_some_and(|length| length != bytes.len()) {
            prop_assert_eq!(&read, &None);
        }
        let is_number =
            |value: &T| !matches!(value.to_value(), AttributeValue::Float(value) if value.is_nan());
        if let Some(value) = read.filter(is_number)
            && holds(encoding, &value.to_value())
        {
            let again = T::decode(encoding, &written(encoding, &value.to_value()));
            prop_assert_eq!(again, Some(value));
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn fitting_value_reads_back((encoding, value) in fitting()) {
            let bytes = written(encoding, &value);
            prop_assert!(encoding.fits(&value));
            prop_assert!(bytes.len() <= encoding.bytes_max() as usize);
            prop_assert_eq!(encoding.read(&bytes), Ok(value));
        }

        #[test]
        fn typed_value_reads_back_in_every_encoding_that_holds_it(
            flag: bool, unsigned: u64, signed: i64, share in prop::num::f32::ANY,
        ) {
            check_type(flag)?;
            // Each type also gets numbers that are small enough for the short encodings.
            for shift in [0, 32, 40, 48, 56, 60] {
                let (unsigned, signed) = (unsigned >> shift, signed >> shift);
                check_type(unsigned as u8)?;
                check_type(unsigned as u16)?;
                check_type(unsigned as u32)?;
                check_type(unsigned)?;
                check_type(signed as i8)?;
                check_type(signed as i16)?;
                check_type(signed as i32)?;
                check_type(signed)?;
                check_type(signed as f32)?;
            }
            if !share.is_nan() {
                check_type(share)?;
            }
        }

        #[test]
        fn any_bytes_are_a_typed_value_or_none(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            for encoding in ENCODINGS {
                check_bytes::<bool>(encoding, &bytes)?;
                check_bytes::<u8>(encoding, &bytes)?;
                check_bytes::<u16>(encoding, &bytes)?;
                check_bytes::<u32>(encoding, &bytes)?;
                check_bytes::<u64>(encoding, &bytes)?;
                check_bytes::<i8>(encoding, &bytes)?;
                check_bytes::<i16>(encoding, &bytes)?;
                check_bytes::<i32>(encoding, &bytes)?;
                check_bytes::<i64>(encoding, &bytes)?;
                check_bytes::<f32>(encoding, &bytes)?;
            }
        }

        #[test]
        fn any_bytes_are_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..20), (encoding, _) in fitting()) {
            if let Ok(value) = encoding.read(&bytes) {
                // A varint may be longer than necessary.
                prop_assert!(written(encoding, &value).len() <= bytes.len());
            }
        }
    }

    #[test]
    fn value_of_another_type_is_none() {
        assert_eq!(bool::decode(Encoding::U8, &[2]), None);
        assert_eq!(u8::decode(Encoding::U16, &[0, 1]), None);
        assert_eq!(u8::decode(Encoding::U8, &[]), None);
        assert_eq!(u8::decode(Encoding::U8, &[1, 2]), None);
        assert_eq!(u16::decode(Encoding::Zigzag, &[1]), None, "-1");
        assert_eq!(i8::decode(Encoding::Varint, &[128, 1]), None, "128");
        assert_eq!(u64::decode(Encoding::Varint, &[255; 11]), None);
        assert_eq!(i64::decode(Encoding::F32, &0.5_f32.to_le_bytes()), None);
        assert_eq!(u64::decode(Encoding::F32, &f32::MAX.to_le_bytes()), None);
        assert_eq!(u64::decode(Encoding::F32, &f32::NAN.to_le_bytes()), None);
        assert_eq!(f32::decode(Encoding::Bytes { max: 4 }, &[0; 4]), None);
        assert_eq!(f32::decode(Encoding::U8, &[7]), Some(7.0));
    }

    #[test]
    fn unfitting_value_is_clamped() {
        assert_eq!(written(Encoding::U8, &300u32.into()), [255]);
        assert_eq!(written(Encoding::U8, &(-3).into()), [0]);
        assert_eq!(written(Encoding::U16, &1e9f32.into()), [255, 255]);
        assert_eq!(written(Encoding::Bytes { max: 2 }, &"abc".into()), *b"ab");
        assert_eq!(written(Encoding::Varint, &"abc".into()), [0]);
        assert_eq!(written(Encoding::Bytes { max: 2 }, &7u8.into()), [0u8; 0]);
    }

    #[test]
    fn clamped_value_did_not_fit() {
        for (encoding, value) in [
            (Encoding::U8, 256u32.into()),
            (Encoding::U8, (-1).into()),
            (Encoding::U16, 1e9f32.into()),
            (Encoding::U32, f32::NAN.into()),
            (Encoding::Varint, i64::MIN.into()),
            (Encoding::Zigzag, u64::MAX.into()),
            (Encoding::Zigzag, f32::INFINITY.into()),
            (Encoding::Bytes { max: 2 }, "abc".into()),
            (Encoding::Bytes { max: 2 }, 7u8.into()),
            (Encoding::F32, "abc".into()),
        ] {
            assert!(!encoding.fits(&value), "{encoding:?} {value:?}");
        }
        assert!(Encoding::U8.fits(&255.4f32.into()) && Encoding::U16.fits(&300i32.into()));
        for text in ["", "a", "ab"] {
            assert!(Encoding::Bytes { max: 2 }.fits(&text.into()), "{text}");
        }
    }
}
