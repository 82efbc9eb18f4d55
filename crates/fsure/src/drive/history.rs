//! All that a drive was asked for, so that every moment can be looked at
//! afterwards and not only those at which somebody happened to cut.

use std::sync::Arc;

use super::Image;

/// A request that was acknowledged.
#[derive(Clone, Debug)]
pub enum Event {
    /// A write.
    Write {
        /// Where.
        offset: u64,
        /// What.
        data: Arc<[u8]>,
    },
    /// A flush.
    Flush,
}

/// What was on a drive in the beginning, and what happened since.
#[derive(Clone, Debug)]
pub struct History {
    begin: Image,
    events: Vec<Event>,
}

impl History {
    pub(super) fn new(begin: Image) -> Self {
        Self { begin, events: Vec::new() }
    }

    pub(super) fn wrote(&mut self, offset: u64, data: &[u8]) {
        self.events.push(Event::Write { offset, data: data.into() });
    }

    pub(super) fn flushed(&mut self) {
        self.events.push(Event::Flush);
    }

    /// What happened, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The images at every flush boundary: what an honest drive is bound to
    /// have when a flush was acknowledged, in order.
    pub fn at_flushes(&self) -> impl Iterator<Item = Image> + '_ {
        let mut image = self.begin.clone();
        let mut events = self.events.iter();
        std::iter::from_fn(move || {
            for event in events.by_ref() {
                match event {
                    Event::Flush => return Some(image.clone()),
                    Event::Write { offset, data } => {
                        image.write(*offset, data).expect("the drive has taken it");
                    }
                }
            }
            None
        })
    }
}
