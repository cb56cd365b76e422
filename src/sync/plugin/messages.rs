//! Encoding of messages with attributes.

use super::attributes::Attributes;
use super::sent_values::SentValues;
use crate::sync::attribute_set::AttributeSet;
use crate::sync::unseen::unseen_object_id;
use crate::wire::{
    Motion, write_attribute, write_delta_header, write_removed_attribute, write_snapshot_header,
    write_unseen_delta_header, write_unseen_header,
};
use crate::world::{Object, ObjectRef};

/// Appends a *Delta* of the values in a set, removed ones included; nothing without any.
pub(super) fn write_delta(
    bytes: &mut Vec<u8>,
    id: u32,
    generation: u32,
    attributes: &Attributes,
    values: (&SentValues, &AttributeSet),
) {
    let count = values.0.changes(values.1).count() as u16;
    if count > 0 {
        write_delta_header(bytes, id, generation, count);
        write_changes(bytes, attributes, values);
    }
}

/// Appends a *Snapshot* with the values in a set.
pub(super) fn write_snapshot(
    bytes: &mut Vec<u8>,
    object: &Object,
    motion: Motion,
    attributes: &Attributes,
    values: (&SentValues, &AttributeSet),
) {
    let (id, generation) = (object.id().0, object.generation().0);
    let count = values.0.in_set(values.1).count() as u16;
    write_snapshot_header(bytes, id, generation, object.kind().0, motion, count);
    write_values(bytes, attributes, values);
}

/// Appends an *UnseenObject* with the values in a set.
pub(super) fn write_unseen(
    bytes: &mut Vec<u8>,
    object: ObjectRef,
    kind: u16,
    attributes: &Attributes,
    values: (&SentValues, &AttributeSet),
) {
    let count = values.0.in_set(values.1).count() as u16;
    write_unseen_header(bytes, unseen_object_id(object), kind, count);
    write_values(bytes, attributes, values);
}

/// Appends an *UnseenDelta* of the values in a set, removed ones included.
pub(super) fn write_unseen_delta(
    bytes: &mut Vec<u8>,
    object: ObjectRef,
    attributes: &Attributes,
    values: (&SentValues, &AttributeSet),
) {
    let count = values.0.changes(values.1).count() as u16;
    write_unseen_delta_header(bytes, unseen_object_id(object), count);
    write_changes(bytes, attributes, values);
}

fn write_values(
    bytes: &mut Vec<u8>,
    attributes: &Attributes,
    (sent, set): (&SentValues, &AttributeSet),
) {
    for (bit, value) in sent.in_set(set) {
        if let Some(registered) = attributes.get(bit) {
            write_attribute(bytes, registered.spec.id, value);
        }
    }
}

fn write_changes(
    bytes: &mut Vec<u8>,
    attributes: &Attributes,
    (sent, set): (&SentValues, &AttributeSet),
) {
    for (bit, value) in sent.changes(set) {
        match (attributes.get(bit), value) {
            (Some(registered), Some(value)) => write_attribute(bytes, registered.spec.id, value),
            (Some(registered), None) => write_removed_attribute(bytes, registered.spec.id),
            (None, _) => {}
        }
    }
}
