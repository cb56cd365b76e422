//! Names of encodings, as stores save them.

use throng_protocol::wire::Encoding;

use super::record::StoredAttribute;

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

/// Compares an attribute with the stored one of the same number or name. Returns the difference, if any.
pub(super) fn check_known(
    new: &StoredAttribute,
    (id, name, encoding): (i64, &str, &str),
) -> Result<(), String> {
    let expected = encoding_name(new.encoding);
    if (id, name, encoding) == (i64::from(new.id), &new.name, &expected) {
        return Ok(());
    }
    Err(format!(
        "expected attribute {} `{}` ({expected}), found {id} `{name}` ({encoding})",
        new.id, new.name
    ))
}

/// The encoding with this name.
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

#[cfg(test)]
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
