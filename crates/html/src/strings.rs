//! Texts by number, each once.

use std::collections::HashMap;

/// A list of texts without a repetition.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    list: Vec<String>,
    places: HashMap<String, u32>,
}

impl Strings {
    /// The place of a text in the list, where it stands from now on.
    pub(crate) fn place(&mut self, text: &str) -> u32 {
        if let Some(&place) = self.places.get(text) {
            return place;
        }
        let place = self.list.len() as u32;
        self.list.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }

    pub(crate) fn into_list(self) -> Vec<String> {
        self.list
    }
}
