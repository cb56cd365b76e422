//! One label per tile, in one, two or four bytes.

use crate::map::bit_plane::TileRun;

/// One region id per tile, in as many bytes as the largest id has needed so far.
#[derive(Clone, Debug)]
pub(super) enum Labels {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
}

impl Labels {
    pub(super) fn zeroed(tiles: usize, id_max: u32) -> Self {
        match id_max {
            0..=0xFF => Self::U8(vec![0; tiles]),
            0x100..=0xFFFF => Self::U16(vec![0; tiles]),
            _ => Self::U32(vec![0; tiles]),
        }
    }

    pub(super) fn fill(&mut self, run: TileRun, width: usize, id: u32) {
        let row = run.y as usize * width;
        let range = row + run.start as usize..row + run.end as usize + 1;
        match self {
            Self::U8(labels) => labels[range].fill(id as u8),
            Self::U16(labels) => labels[range].fill(id as u16),
            Self::U32(labels) => labels[range].fill(id),
        }
    }

    /// Replaces each label of a run by its entry in `names`.
    pub(super) fn rename(&mut self, range: std::ops::Range<usize>, names: &[u32]) {
        match self {
            Self::U8(labels) => {
                let renamed = |label: u8| names[usize::from(label)] as u8;
                labels[range].iter_mut().for_each(|at| *at = renamed(*at));
            }
            Self::U16(labels) => {
                let renamed = |label: u16| names[usize::from(label)] as u16;
                labels[range].iter_mut().for_each(|at| *at = renamed(*at));
            }
            Self::U32(labels) => {
                let renamed = |label: u32| names[label as usize];
                labels[range].iter_mut().for_each(|at| *at = renamed(*at));
            }
        }
    }

    pub(super) fn widen_for(&mut self, id: u32) {
        if let Self::U8(labels) = self
            && id > 0xFF
        {
            *self = Self::U16(labels.iter().map(|label| u16::from(*label)).collect());
        }
        if let Self::U16(labels) = self
            && id > 0xFFFF
        {
            *self = Self::U32(labels.iter().map(|label| u32::from(*label)).collect());
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::U8(labels) => labels.len(),
            Self::U16(labels) => labels.len() * 2,
            Self::U32(labels) => labels.len() * 4,
        }
    }

    #[inline]
    pub(super) fn at(&self, index: usize) -> u32 {
        match self {
            Self::U8(labels) => u32::from(labels[index]),
            Self::U16(labels) => u32::from(labels[index]),
            Self::U32(labels) => labels[index],
        }
    }
}
