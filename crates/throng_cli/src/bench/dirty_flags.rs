//! Alternative ways to track changed attributes, compared with the masks of `throng::sync`. The server uses none of them.

use std::collections::HashSet;
use std::hash::BuildHasher;

/// Attributes per object.
pub const FLAGS: usize = 64;

/// One flag per attribute; collecting tests all of them.
#[derive(Clone, Debug)]
pub struct Flags {
    flags: Vec<[bool; FLAGS]>,
}

impl Flags {
    /// For this many objects.
    #[must_use]
    pub fn new(objects: usize) -> Self {
        Self {
            flags: vec![[false; FLAGS]; objects],
        }
    }

    /// Marks an attribute.
    pub fn mark(&mut self, object: u32, bit: u32) {
        self.flags[object as usize][bit as usize] = true;
    }

    /// Passes all marks to `show`, and clears them.
    pub fn collect(&mut self, mut show: impl FnMut(u32, u32)) {
        for (object, flags) in (0..).zip(&mut self.flags) {
            for (bit, flag) in (0..).zip(flags) {
                if std::mem::take(flag) {
                    show(object, bit);
                }
            }
        }
    }
}

/// Like [`Flags`], with one more flag per object to skip clean objects.
#[derive(Clone, Debug)]
pub struct SkippingFlags {
    flags: Vec<(bool, [bool; FLAGS])>,
}

impl SkippingFlags {
    /// For this many objects.
    #[must_use]
    pub fn new(objects: usize) -> Self {
        Self {
            flags: vec![(false, [false; FLAGS]); objects],
        }
    }

    /// Marks an attribute.
    pub fn mark(&mut self, object: u32, bit: u32) {
        let (dirty, flags) = &mut self.flags[object as usize];
        (*dirty, flags[bit as usize]) = (true, true);
    }

    /// Passes all marks to `show`, and clears them.
    pub fn collect(&mut self, mut show: impl FnMut(u32, u32)) {
        for (object, (dirty, flags)) in (0..).zip(&mut self.flags) {
            if std::mem::take(dirty) {
                for (bit, flag) in (0..).zip(flags) {
                    if std::mem::take(flag) {
                        show(object, bit);
                    }
                }
            }
        }
    }
}

/// A hash set of pairs of object and attribute.
#[derive(Clone, Debug, Default)]
pub struct Pairs<S>(HashSet<(u32, u32), S>);

impl<S: BuildHasher> Pairs<S> {
    /// Marks an attribute.
    pub fn mark(&mut self, object: u32, bit: u32) {
        self.0.insert((object, bit));
    }

    /// Passes all marks to `show`, in any order, and clears them.
    pub fn collect(&mut self, mut show: impl FnMut(u32, u32)) {
        self.0.drain().for_each(|(object, bit)| show(object, bit));
    }
}
