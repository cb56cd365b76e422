//! How an algorithm hands out its work without knowing threads, pools or the ECS.
//!
//! ```text
//! algorithm ──items──▶ Spread ─┬─ Inline    one after the other, on the calling thread
//!                              ├─ Workers   side by side on Bevy's pool, in a tick
//!                              └─ BackgroundWorkers   beside the ticks, by those who wait for it
//! ```
//! Invariant: who runs the work changes how long it takes and nothing else; an algorithm writes only to the items and the
//! scratch that it is handed.

/// Who runs the parts of a piece of work.
pub trait Spread: Copy {
    /// Calls `work(scratch, first, chunk)` for consecutive chunks that cover `items`; `first` is the chunk's place.
    ///
    /// `scratch` holds one value a chunk, made when first needed and kept for the next call. A chunk has at least
    /// `chunk_min` items, so that little work stays in one piece.
    fn for_each_chunk<T: Send, S: Send + Default>(
        self,
        items: &mut [T],
        chunk_min: usize,
        scratch: &mut Vec<S>,
        work: impl Fn(&mut S, usize, &mut [T]) + Sync,
    );

    /// Calls `work` once for every item. For a few items of which some may be much more work than others: the largest
    /// should come first.
    fn for_each_in_turn<T: Send>(self, items: &mut [T], work: impl Fn(&mut T) + Sync);

    /// How many work side by side at most.
    fn hands(self) -> usize;
}

/// Everything on the calling thread, in the order of the items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inline;

impl Spread for Inline {
    fn for_each_chunk<T: Send, S: Send + Default>(
        self,
        items: &mut [T],
        _chunk_min: usize,
        scratch: &mut Vec<S>,
        work: impl Fn(&mut S, usize, &mut [T]) + Sync,
    ) {
        if scratch.is_empty() {
            scratch.push(S::default());
        }
        work(&mut scratch[0], 0, items);
    }

    fn for_each_in_turn<T: Send>(self, items: &mut [T], work: impl Fn(&mut T) + Sync) {
        items.iter_mut().for_each(work);
    }

    fn hands(self) -> usize {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_work_visits_every_item_once_with_one_scratch() {
        let (mut items, mut scratch) = ([1, 2, 3], Vec::<usize>::new());
        Inline.for_each_chunk(&mut items, 1, &mut scratch, |seen, first, chunk| {
            assert_eq!(first, 0);
            *seen += chunk.len();
            chunk.iter_mut().for_each(|item| *item *= 2);
        });
        Inline.for_each_in_turn(&mut items, |item| *item += 1);
        assert_eq!((items, scratch), ([3, 5, 7], vec![3]));
    }
}
