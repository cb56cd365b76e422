//! Component columns of a table, split into runs of rows that threads write in parallel.
//!
//! A query that is iterated contiguously yields one column per table. Writes are marked as changes like Bevy's `Mut` does, and rows are
//! found by index: nothing is gathered or looked up by entity.
//!
//! Invariant: a change is marked with the tick of the system that requested the column.
//! Cost: two slices per column; a row costs what reading its components costs.

use bevy_ecs::change_detection::{ContiguousComponentTicksMut, ContiguousMut, Tick};
use bevy_ecs::prelude::*;

/// One component of all rows of a table, as a query returns it.
pub struct TableColumn<'w, T> {
    values: &'w mut [T],
    ticks: ContiguousComponentTicksMut<'w>,
}

impl<'w, T: Component> TableColumn<'w, T> {
    /// The column of a query item.
    pub fn of(column: ContiguousMut<'w, T>) -> Self {
        const {
            assert!(
                !T::HAS_SUMMARY_TICK,
                "a summary of changes would have to be kept as well"
            );
        }
        let (values, ticks) = ContiguousMut::bypass_change_detection_split(column);
        Self { values, ticks }
    }

    /// All rows.
    pub fn rows(&mut self) -> ColumnRows<'_, T> {
        let now = self.ticks.this_run();
        ColumnRows {
            values: self.values,
            changed: self.ticks.changed_mut(),
            now,
        }
    }
}

/// One component of a run of rows.
pub struct ColumnRows<'a, T> {
    values: &'a mut [T],
    changed: &'a mut [Tick],
    now: Tick,
}

impl<'a, T> ColumnRows<'a, T> {
    /// The value in a row.
    #[inline]
    pub fn get(&self, row: usize) -> &T {
        &self.values[row]
    }

    /// The tick in which the value in a row last changed.
    #[inline]
    pub fn changed_at(&self, row: usize) -> Tick {
        self.changed[row]
    }

    /// The value in a row, for writing; it is marked as changed.
    #[inline]
    pub fn get_mut(&mut self, row: usize) -> &mut T {
        self.changed[row] = self.now;
        &mut self.values[row]
    }

    /// Sets the value of a row; an equal value is no change.
    #[inline]
    pub fn set_if_neq(&mut self, row: usize, value: T)
    where
        T: PartialEq,
    {
        if self.values[row] != value {
            *self.get_mut(row) = value;
        }
    }

    /// Splits off the first rows.
    pub fn take_first(&mut self, rows: usize) -> Self {
        let (values, values_left) = std::mem::take(&mut self.values).split_at_mut(rows);
        let (changed, changed_left) = std::mem::take(&mut self.changed).split_at_mut(rows);
        (self.values, self.changed) = (values_left, changed_left);
        Self {
            values,
            changed,
            now: self.now,
        }
    }
}

/// Splits a run of rows into chunks of `length`; the last one may be shorter. `take_first` splits that many rows off.
pub fn chunks<R>(
    rows: usize,
    length: usize,
    mut take_first: impl FnMut(usize) -> R,
) -> impl Iterator<Item = R> {
    (0..rows)
        .step_by(length)
        .map(move |first| take_first((rows - first).min(length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Component, Clone, Copy, Debug, PartialEq)]
    struct Number(usize);

    #[derive(Component)]
    struct Odd;

    /// A value written through chunks of a column is detected as changed, like one written through Bevy's `Mut`.
    #[test]
    fn changes_are_marked_like_bevy_does() {
        const COUNT: usize = 1_000;
        let mut world = World::new();
        for nth in 0..COUNT {
            let mut entity = world.spawn(Number(nth));
            if nth % 2 == 1 {
                entity.insert(Odd);
            }
        }
        let by_columns = |mut numbers: Query<&mut Number>| {
            let tables = numbers.contiguous_iter_mut().unwrap();
            for mut table in tables.map(TableColumn::of) {
                let mut left = table.rows();
                let count = left.values.len();
                for mut piece in chunks(count, 64, |rows| left.take_first(rows)) {
                    for row in 0..piece.values.len() {
                        let number = *piece.get(row);
                        let is_third = number.0 % 3 == 0;
                        piece.set_if_neq(row, Number(number.0 + usize::from(is_third) * COUNT));
                    }
                }
            }
        };
        let changed = |numbers: Query<&Number, Changed<Number>>| {
            let mut found: Vec<usize> = numbers.iter().map(|number| number.0).collect();
            found.sort_unstable();
            found
        };
        let by_columns = world.register_system(by_columns);
        let changed = world.register_system(changed);
        assert_eq!(world.run_system(changed).unwrap().len(), COUNT);
        assert_eq!(world.run_system(changed).unwrap().len(), 0);
        world.run_system(by_columns).unwrap();
        let expected: Vec<usize> = (0..COUNT).step_by(3).map(|nth| nth + COUNT).collect();
        assert_eq!(world.run_system(changed).unwrap(), expected);
        assert_eq!(world.run_system(changed).unwrap().len(), 0);
    }
}
