//! All that a drive was asked for, so that every moment can be looked at
//! afterwards and not only those at which somebody happened to cut.

use super::{Change, Image};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A write or a trim was acknowledged.
    Changed(Change),
    /// A flush was acknowledged.
    Flushed,
    /// Everything up to this number was said to be safe.
    Marked(u64),
}

/// What was on a drive in the beginning, and what happened since.
#[derive(Clone, Debug)]
pub struct History {
    begin: Image,
    events: Vec<Event>,
}

/// A moment at which a flush was acknowledged.
#[derive(Clone, Debug)]
pub struct Boundary {
    /// Which flush, from 1 on.
    pub number: u64,
    /// The highest mark by then: what is owed; 0: nothing.
    pub marked: u64,
    /// What an honest drive is bound to have.
    pub image: Image,
}

impl History {
    pub(super) fn new(begin: Image) -> Self {
        Self { begin, events: Vec::new() }
    }

    pub(super) fn note(&mut self, event: Event) {
        self.events.push(event);
    }

    /// What happened, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The flush boundaries, in order. Images share what they have in common.
    pub fn at_flushes(&self) -> impl Iterator<Item = Boundary> + '_ {
        let mut state = Boundary { number: 0, marked: 0, image: self.begin.clone() };
        let mut events = self.events.iter();
        std::iter::from_fn(move || {
            events.by_ref().find(|event| state.takes(event))?;
            Some(state.clone())
        })
    }

    /// One of them, from 1 on.
    pub fn at_flush(&self, number: u64) -> Option<Boundary> {
        let mut state = Boundary { number: 0, marked: 0, image: self.begin.clone() };
        let mut events = self.events.iter();
        events.find(|event| state.takes(event) && state.number == number)?;
        Some(state)
    }

    /// What is owed at each of them.
    pub fn marks(&self) -> impl Iterator<Item = u64> + '_ {
        let mut marked = 0;
        self.events.iter().filter_map(move |event| match event {
            Event::Changed(_) => None,
            Event::Marked(mark) => {
                marked = marked.max(*mark);
                None
            }
            Event::Flushed => Some(marked),
        })
    }
}

impl Boundary {
    /// Becomes what it is after an event; whether that was a flush.
    fn takes(&mut self, event: &Event) -> bool {
        match event {
            Event::Changed(change) => {
                change.make(&mut self.image).expect("the drive has taken it");
            }
            Event::Marked(mark) => self.marked = self.marked.max(*mark),
            Event::Flushed => self.number += 1,
        }
        *event == Event::Flushed
    }
}
