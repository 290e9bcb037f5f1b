//! The order of members in documents: that of the previous document.

use crate::plan::{Layout, Member, RoleOrMembers};

/// By layout and number of a member: the expected index of its first inner member, and of the
/// member after it.
#[derive(Default)]
pub struct MemberOrder {
    of_layouts: Vec<Vec<usize>>,
    layout: usize,
}

impl MemberOrder {
    /// Switches to the documents of a layout.
    pub fn begin(&mut self, layout: &Layout) {
        self.layout = layout.number;
        if layout.number >= self.of_layouts.len() {
            self.of_layouts.resize_with(layout.number + 1, Vec::new);
        }
        let places = &mut self.of_layouts[layout.number];
        if places.is_empty() {
            places.resize(2 * layout.member_count + 2, 0);
            add_usual(&layout.members, places);
        }
    }

    /// Key for the first member of an object, by the object's number.
    pub fn first(number: usize) -> usize {
        2 * number
    }

    /// Key for the member after another one, by its number.
    pub fn behind(number: usize) -> usize {
        2 * number + 1
    }

    /// The usual index of a member in its object.
    pub fn next(&self, key: usize) -> usize {
        // A wrong place costs one comparison, so nothing here needs to be right.
        let places = self.of_layouts.get(self.layout);
        let place = places.and_then(|places| places.get(key));
        place.copied().unwrap_or(0)
    }

    pub fn set(&mut self, key: usize, place: usize) {
        if let Some(known) = self.of_layouts[self.layout].get_mut(key) {
            *known = place;
        }
    }
}

/// The order in the layout.
fn add_usual(members: &[Member], places: &mut [usize]) {
    for (place, member) in members.iter().enumerate() {
        places[MemberOrder::behind(member.number)] = place + 1;
        if let RoleOrMembers::Members(inner) = &member.role {
            add_usual(inner, places);
        }
    }
}
