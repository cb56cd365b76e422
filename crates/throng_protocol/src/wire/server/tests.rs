use super::*;
use proptest::prelude::*;

fn motions() -> impl Strategy<Value = Motion> {
    (
        any::<[u32; 2]>(),
        any::<[i16; 2]>(),
        any::<[u8; 3]>(),
        any::<bool>(),
    )
        .prop_map(
            |([x, y], velocity, [at, heading, floor], discontinuity)| Motion {
                at,
                position: QuantizedPosition { x, y },
                velocity,
                heading,
                floor,
                discontinuity,
            },
        )
}

type TestValues = Vec<(u16, Vec<u8>)>;

fn values() -> impl Strategy<Value = TestValues> {
    prop::collection::vec(
        (any::<u16>(), prop::collection::vec(any::<u8>(), 0..20)),
        0..5,
    )
}

fn borrowed(values: &TestValues) -> SmallVec<[Attribute<'_>; 8]> {
    values
        .iter()
        .map(|(id, value)| Attribute {
            id: *id,
            value: Some(value.as_slice()),
        })
        .collect()
}

#[test]
fn velocity_below_half_a_unit_is_at_rest() {
    let half = 0.5 / VELOCITY_UNITS;
    let speeds = [
        0.0,
        half,
        half * 0.999,
        half * 1.001,
        1.0,
        200.0,
        f32::INFINITY,
        f32::NAN,
    ];
    for x in speeds.into_iter().flat_map(|speed| [speed, -speed]) {
        for y in speeds {
            let velocity = Vec2::new(x, y);
            let motion = Motion::of(0, Vec2::ONE, velocity, 0, 0);
            assert_eq!(
                Motion::rounds_to_rest(velocity),
                motion.is_at_rest(),
                "{velocity}"
            );
        }
    }
}

#[test]
fn attribute_is_removed_only_by_a_delta() {
    let mut bytes = Vec::new();
    write_delta_header(&mut bytes, 7, 1, 2);
    write_attribute(&mut bytes, 3, b"x");
    write_removed_attribute(&mut bytes, 300);
    let mut reader = WireReader::new(&bytes);
    let Ok(ServerMessage::Delta { attributes, .. }) = ServerMessage::read(&mut reader) else {
        panic!("no delta");
    };
    let read: Vec<_> = attributes
        .iter()
        .map(|attribute| (attribute.id, attribute.value))
        .collect();
    assert_eq!(read, [(3, Some(b"x".as_slice())), (300, None)]);
    let mut bytes = Vec::new();
    write_snapshot_header(&mut bytes, 7, 1, 0, Motion::default(), 1);
    write_removed_attribute(&mut bytes, 3);
    let read = ServerMessage::read(&mut WireReader::new(&bytes));
    assert!(
        matches!(read, Err(WireError::TooLong { found: 256, .. })),
        "{read:?}"
    );
}

#[test]
fn positions_round_to_the_nearest_unit_and_halves_up() {
    let units = |metres: f32| quantise(Vec2::new(metres, 0.0)).x;
    let of_unit = |unit: f32| units(unit / 64.0);
    assert_eq!([0.49, 0.5, 1.49, 1.5, 2.5].map(of_unit), [0, 1, 1, 2, 3]);
    assert_eq!([-3.0, f32::NAN, 1.0e12].map(units), [0, 0, u32::MAX]);
    assert_eq!(
        QuantizedPosition { x: 3, y: 64 }.metres(),
        Vec2::new(3.0 / 64.0, 1.0)
    );
    let fast = Motion::of(0, Vec2::ZERO, Vec2::new(1.0e6, -1.0e6), 0, 0);
    assert_eq!(fast.velocity, [i16::MAX, i16::MIN]);
}

proptest! {
    #![proptest_config(draws!())]

    #[test]
    fn every_message_reads_back(id: u32, generation: u32, kind: u16, motion in motions(), values in values()) {
        let mut bytes = Vec::new();
        write_scene(&mut bytes, id, Vec2::new(100.0, 50.5));
        write_controlled_object(&mut bytes, id, generation);
        write_despawn(&mut bytes, id, generation);
        write_snapshot_header(&mut bytes, id, generation, kind, motion, values.len() as u16);
        values.iter().for_each(|(id, value)| write_attribute(&mut bytes, *id, value));
        write_delta_header(&mut bytes, id, generation, values.len() as u16);
        values.iter().for_each(|(id, value)| write_attribute(&mut bytes, *id, value));
        write_motion(&mut bytes, id, generation, motion);
        let about = (id > 0).then_some((id, generation));
        write_announce(&mut bytes, about, b"well met");
        let of = UnseenObjectId { scene: generation, id, generation };
        write_unseen_header(&mut bytes, of, kind, values.len() as u16);
        values.iter().for_each(|(id, value)| write_attribute(&mut bytes, *id, value));
        write_unseen_delta_header(&mut bytes, of, values.len() as u16);
        values.iter().for_each(|(id, value)| write_attribute(&mut bytes, *id, value));
        write_forget_unseen(&mut bytes, of);
        let exact = Vec2::new(0.1 + id as f32, -1.0 / generation.max(1) as f32);
        write_own_position(&mut bytes, exact);

        let mut reader = WireReader::new(&bytes);
        let mut read = Vec::new();
        while !reader.is_empty() {
            read.push(ServerMessage::read(&mut reader).unwrap());
        }
        let attributes = borrowed(&values);
        prop_assert_eq!(read, vec![
            ServerMessage::Scene { scene: id, size: QuantizedPosition { x: 6400, y: 3232 } },
            ServerMessage::ControlledObject { id, generation },
            ServerMessage::Despawn { id, generation },
            ServerMessage::Snapshot { id, generation, kind, motion, attributes: attributes.clone() },
            ServerMessage::Delta { id, generation, attributes: attributes.clone() },
            ServerMessage::Motion { id, generation, motion },
            ServerMessage::Announce { about, bytes: b"well met" },
            ServerMessage::UnseenObject { of, kind, attributes: attributes.clone() },
            ServerMessage::UnseenDelta { of, attributes },
            ServerMessage::ForgetUnseen { of },
            ServerMessage::OwnPosition { position: exact },
        ]);
    }

    #[test]
    fn non_finite_position_is_an_error(bits in any::<[u32; 2]>()) {
        let position = Vec2::from(bits.map(f32::from_bits));
        let mut bytes = Vec::new();
        write_own_position(&mut bytes, position);
        let read = ServerMessage::read(&mut WireReader::new(&bytes));
        let at = if position.x.is_finite() { 5 } else { 1 };
        prop_assert_eq!(read, match position.is_finite() {
            true => Ok(ServerMessage::OwnPosition { position }),
            false => Err(WireError::NotFinite { at }),
        });
    }

    #[test]
    fn any_bytes_read_or_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut reader = WireReader::new(&bytes);
        while !reader.is_empty() && ServerMessage::read(&mut reader).is_ok() {}
    }
}

#[test]
fn quantized_positions_are_within_half_a_unit() {
    let position = Vec2::new(123.456, 0.003);
    assert!((quantise(position).metres() - position).abs().max_element() <= 0.5 / 64.0);
    assert_eq!(
        quantise(Vec2::new(-5.0, f32::NAN)),
        QuantizedPosition { x: 0, y: 0 }
    );
    assert_eq!(
        Motion::of(0, position, Vec2::new(999.0, -0.5), 0, 0).velocity,
        [i16::MAX, -128]
    );
}
