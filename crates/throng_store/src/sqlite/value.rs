//! Readable values: numbers and text if they convert back to the same bytes, else the bytes.

use rusqlite::types::{ToSqlOutput, Value as SqlValue, ValueRef};
use throng_protocol::wire::{AttributeValue, Encoding};

/// The bytes of an attribute as an SQL value. Bytes that a number would not convert back to stay a blob.
pub(super) fn to_sql(encoding: Encoding, bytes: &[u8]) -> ToSqlOutput<'_> {
    let number = match encoding.read(bytes) {
        Ok(AttributeValue::Unsigned(value)) => i64::try_from(value).ok().map(SqlValue::Integer),
        Ok(AttributeValue::Signed(value)) => Some(SqlValue::Integer(value)),
        Ok(AttributeValue::Float(value)) => Some(SqlValue::Real(f64::from(value))),
        Ok(AttributeValue::Bytes(_)) => {
            let text = std::str::from_utf8(bytes).ok();
            // `sqlite3` shows text only up to a zero character.
            let text = text.filter(|text| !text.contains('\0'));
            return ToSqlOutput::Borrowed(text.map_or(ValueRef::Blob(bytes), |text| {
                ValueRef::Text(text.as_bytes())
            }));
        }
        Err(_) => None,
    };
    let exact = number.filter(|number| {
        let back = from_sql(encoding, number.into());
        back.is_some_and(|back| back == bytes) && !is_changed(number)
    });
    exact.map_or(
        ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        ToSqlOutput::Owned,
    )
}

/// Whether the database would store another value: NULL for NaN, and 0 for −0.
fn is_changed(number: &SqlValue) -> bool {
    matches!(number, SqlValue::Real(real) if !real.is_finite() || *real == 0.0 && real.is_sign_negative())
}

/// The bytes of an SQL value; `None` if this encoding does not write such a value, because somebody has edited it by hand.
pub(super) fn from_sql(encoding: Encoding, value: ValueRef) -> Option<Vec<u8>> {
    let value = match (value, encoding) {
        (ValueRef::Blob(bytes), _) => return Some(bytes.to_vec()),
        (ValueRef::Text(text), Encoding::Bytes { .. }) => return Some(text.to_vec()),
        (ValueRef::Integer(number), Encoding::Zigzag) => AttributeValue::Signed(number),
        (ValueRef::Real(number), Encoding::F32) => AttributeValue::Float(number as f32),
        (ValueRef::Integer(number), Encoding::F32) => AttributeValue::Float(number as f32),
        (ValueRef::Integer(number), Encoding::Bytes { .. }) => {
            return Some(number.to_string().into_bytes());
        }
        (ValueRef::Integer(number), _) => AttributeValue::Unsigned(u64::try_from(number).ok()?),
        _ => return None,
    };
    let mut bytes = Vec::new();
    encoding.write(&value, &mut bytes);
    encoding.fits(&value).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::types::ToSql;

    use super::*;

    const ALL: [Encoding; 7] = [
        Encoding::U8,
        Encoding::U16,
        Encoding::U32,
        Encoding::Varint,
        Encoding::Zigzag,
        Encoding::F32,
        Encoding::Bytes { max: 20 },
    ];

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn any_bytes_read_back_unchanged(nth in 0..7usize, bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let value = to_sql(ALL[nth], &bytes);
            let value = match value.to_sql().unwrap() {
                ToSqlOutput::Borrowed(value) => SqlValue::try_from(value).unwrap(),
                ToSqlOutput::Owned(value) => value,
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(from_sql(ALL[nth], (&value).into()), Some(bytes));
        }
    }

    #[test]
    fn readable_values_are_stored_readably() {
        let owned = |encoding, bytes: &[u8]| match to_sql(encoding, bytes) {
            ToSqlOutput::Borrowed(value) => SqlValue::try_from(value).unwrap(),
            ToSqlOutput::Owned(value) => value,
            other => panic!("{other:?}"),
        };
        assert_eq!(owned(Encoding::U16, &[1, 1]), SqlValue::Integer(257));
        assert_eq!(owned(Encoding::Zigzag, &[3]), SqlValue::Integer(-2));
        assert_eq!(
            owned(Encoding::F32, &1.5f32.to_le_bytes()),
            SqlValue::Real(1.5)
        );
        assert_eq!(
            owned(ALL[6], "Zoë".as_bytes()),
            SqlValue::Text("Zoë".to_owned())
        );
        assert_eq!(owned(ALL[6], &[255]), SqlValue::Blob(vec![255]));
        assert_eq!(
            owned(Encoding::Varint, &[0x80, 0]),
            SqlValue::Blob(vec![0x80, 0])
        );
    }
}
