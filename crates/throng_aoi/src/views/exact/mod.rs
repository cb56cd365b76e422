//! Exact viewers: viewers whose links depend on exact distances, because they have a radius of their own or the scene has rules
//! by distance.
//!
//! ```text
//! set_radius, set_distance_rules ─▶ radius: a viewer changes between a row of its cell and the lists here; its links stay
//!                                   update, after all cells:
//!   changes   the cells in which an object moved or changed
//!   recheck   in parallel: members that are out of range or no longer allowed leave; is the viewer due for a scan?
//!   choose    at most `set_exact_scans_max` of the due viewers, those that wait longest first
//!   scan      in parallel: every target in reach is tested; the best of each list, up to its cap, are linked
//! ```
//! A link can begin or end without a change of cell here, so bits in rows do not suffice. An exact viewer has no row. Its lists
//! are plain lists of ids, and a scan computes them anew. A viewer is due if it moved or changed, if it lost a member, or if an
//! object moved or changed in a cell that it can reach. Other viewers are not touched, and without exact viewers an update does
//! nothing here.
//!
//! Distances are compared as squares in double precision, where the difference of two coordinates and the square of a radius
//! are exact.
//!
//! Within a class a list prefers the nearer band, as for other viewers, but in every scan. For a viewer with a radius, bands are
//! quarters of it. A member counts as nearer by a thirty-second of the radius, so that two objects do not alternate.
//!
//! | file | holds |
//! |---|---|
//! | `reach` | distances, and the cells that a viewer can reach |
//! | `exact_viewer` | a viewer: its lists, recheck and scan |
//! | `exact_views` | all of them, and which are due |
//! | `radius` | the calls that change radii and rules |
//! | `exact_pass` | the step of the update |
//!
//! Invariant, after each update: the links of a viewer that does not wait are those that a scan would find.
//! Cost: O(objects of the scene) if there is any exact viewer; O(members) for each; O(objects in the cells in reach) for each
//! that is due; 100 bytes for each viewer, and 4 bytes for each link.

mod exact_pass;
mod exact_viewer;
mod exact_views;
mod radius;
mod reach;

pub(super) use exact_views::ExactViews;
pub use radius::ViewRadiusError;
