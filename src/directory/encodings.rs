//! The names of encodings, as stores keep them beside values.

use crate::wire::Encoding;

/// The name of an encoding in a store.
pub(super) fn encoding_name(encoding: Encoding) -> String {
    match encoding {
        Encoding::U8 => "u8".to_owned(),
        Encoding::U16 => "u16".to_owned(),
        Encoding::U32 => "u32".to_owned(),
        Encoding::Varint => "varint".to_owned(),
        Encoding::Zigzag => "zigzag".to_owned(),
        Encoding::F32 => "f32".to_owned(),
        Encoding::Bytes { max } => format!("bytes({max})"),
    }
}

/// The encoding of a name.
#[cfg(feature = "sqlite")]
pub(super) fn encoding_of(name: &str) -> Option<Encoding> {
    Some(match name {
        "u8" => Encoding::U8,
        "u16" => Encoding::U16,
        "u32" => Encoding::U32,
        "varint" => Encoding::Varint,
        "zigzag" => Encoding::Zigzag,
        "f32" => Encoding::F32,
        _ => {
            let max = name.strip_prefix("bytes(")?.strip_suffix(')')?;
            Encoding::Bytes {
                max: max.parse().ok()?,
            }
        }
    })
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_known_by_their_names() {
        let all = [
            Encoding::U8,
            Encoding::U16,
            Encoding::U32,
            Encoding::Varint,
            Encoding::Zigzag,
            Encoding::F32,
            Encoding::Bytes { max: 20 },
        ];
        for encoding in all {
            assert_eq!(encoding_of(&encoding_name(encoding)), Some(encoding));
        }
        assert_eq!(encoding_of("bytes(x)"), None);
    }
}
