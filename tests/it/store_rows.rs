//! Invariants of stores in files with rows of any content; used by the fuzzer, and by the test that replays its corpus.
//!
//! The first byte chooses the encoding of an attribute and the type of the row's value; the other bytes are the value. Even: the bytes are
//! saved and loaded again. Odd: the row is edited with SQL, and the record is loaded or reported as unreadable.

use std::cell::RefCell;

use rusqlite::types::Value;
use throng_core::ids::PlayerId;
use throng_store::{
    ClaimResult, ClaimTerms, LookupResult, RegistrationTerms, SaveBatch, ServerId, SqliteSource,
    StoreBackend, StoreFactory, StoredAttribute,
};

use crate::wire::Encoding;

const ENCODINGS: [Encoding; 7] = [
    Encoding::U8,
    Encoding::U16,
    Encoding::U32,
    Encoding::Varint,
    Encoding::Zigzag,
    Encoding::F32,
    Encoding::Bytes { max: 20 },
];

const PLAYER: PlayerId = PlayerId(7);

/// A long lease, so that no claim expires.
const TERMS: ClaimTerms = ClaimTerms {
    at_ms: Some(1),
    lease_ms: 1 << 40,
    grace_ms: 0,
};

/// A store in memory, and a second connection that edits its rows.
struct EditedStore {
    store: Box<dyn StoreBackend>,
    server: ServerId,
    epoch: u64,
    batch: u64,
    editor: rusqlite::Connection,
    _source: SqliteSource,
}

impl EditedStore {
    fn open() -> Self {
        let mut source = SqliteSource::new(":memory:");
        let mut store = source.open().expect("memory");
        let attributes: Vec<StoredAttribute> = ENCODINGS
            .iter()
            .zip(1..)
            .map(|(&encoding, id)| StoredAttribute {
                id,
                name: format!("attribute {id}"),
                encoding,
            })
            .collect();
        store.register_attributes(&attributes).expect("new ones");
        let server = store.register_server("a", RegistrationTerms::default());
        let server = server.expect("a free name");
        let claimed = store.claim(&server, &[PLAYER], TERMS).expect("a lease");
        let [ClaimResult::Granted { epoch, .. }] = claimed[..] else {
            panic!("{claimed:?}");
        };
        let editor = rusqlite::Connection::open(source.path())
            .expect("a second connection to the same memory");
        Self {
            store,
            server,
            epoch,
            batch: 0,
            editor,
            _source: source,
        }
    }

    fn save(&mut self, id: u16, bytes: &[u8]) {
        self.batch += 1;
        let mut batch = SaveBatch::new(self.batch, self.batch);
        let player = (PLAYER, self.epoch, self.batch);
        batch.add(player, std::iter::once((id, Some(bytes))));
        let saved = self.store.save(&self.server, &batch, Some(1));
        saved.expect("the save is accepted");
    }

    fn lookup(&mut self) -> LookupResult {
        let found = self
            .store
            .lookup(&[PLAYER])
            .expect("only the row may be unreadable");
        found.into_iter().next().expect("one result per player")
    }
}

/// A value of any type.
fn value(kind: u8, bytes: &[u8]) -> Value {
    let number = bytes
        .iter()
        .take(8)
        .rev()
        .fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
    match kind % 4 {
        0 => Value::Integer(number as i64),
        1 => Value::Real(f64::from_bits(number)),
        2 => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        _ => Value::Blob(bytes.to_vec()),
    }
}

pub fn check(input: &[u8]) {
    thread_local! {
        static STORE: RefCell<EditedStore> = RefCell::new(EditedStore::open());
    }
    let Some((&choice, bytes)) = input.split_first() else {
        return;
    };
    let at = usize::from(choice >> 1) % ENCODINGS.len();
    let (id, encoding) = (1 + at as u16, ENCODINGS[at]);
    STORE.with_borrow_mut(|store| {
        if choice & 1 == 0 {
            store.save(id, bytes);
            let LookupResult::Found(record) = store.lookup() else {
                panic!("{bytes:?} cannot be read back as {encoding:?}");
            };
            assert_eq!(record.values.get(&id).map(Vec::as_slice), Some(bytes));
            return;
        }
        store.save(id, &[]);
        let update = "UPDATE value SET value = ?1 WHERE player = ?2 AND attribute = ?3";
        let edited = value(choice >> 4, bytes);
        // SQLite stores NaN as NULL, which the column does not allow.
        let changed = store
            .editor
            .execute(update, (&edited, PLAYER.0 as i64, i64::from(id)));
        match store.lookup() {
            LookupResult::Found(record) => assert!(record.values.contains_key(&id)),
            LookupResult::Unreadable(error) => {
                assert!(
                    changed.is_ok() && error.to_string().contains('7'),
                    "{error}"
                );
            }
            LookupResult::Missing => panic!("the saved player is missing"),
        }
        store.save(id, &[]);
    });
}
