//! The content of a drive, in pages that copies share: a crash image of a
//! drive of half a GiB is made in a millisecond, and costs what differs.

use std::sync::Arc;

/// Bytes in a page.
pub const PAGE: usize = 4096;

type SharedPage = Arc<[u8; PAGE]>;

/// The content of a drive. What was never written is zero and takes no space.
#[derive(Clone, Debug)]
pub struct Image {
    size: u64,
    pages: Vec<Option<SharedPage>>,
}

impl Image {
    /// A drive of so many bytes, all zero.
    pub fn new(size: u64) -> Self {
        let pages = usize::try_from(size.div_ceil(PAGE as u64)).expect("fits the address space");
        Self { size, pages: vec![None; pages] }
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Makes it longer, with zeroes, or shorter.
    pub fn resize(&mut self, size: u64) {
        let pages = usize::try_from(size.div_ceil(PAGE as u64)).expect("fits the address space");
        self.pages.resize(pages, None);
        let kept = size as usize % PAGE;
        if size < self.size
            && kept > 0
            && let Some(Some(last)) = self.pages.last_mut()
        {
            Arc::make_mut(last)[kept..].fill(0);
        }
        self.size = size;
    }

    /// Reads; `None` if that goes behind the end.
    #[must_use]
    pub fn read(&self, offset: u64, target: &mut [u8]) -> Option<()> {
        self.is_within(offset, target.len())?;
        let mut done = 0;
        for (page, from, count) in pieces(offset, target.len()) {
            let piece = &mut target[done..done + count];
            match &self.pages[page] {
                Some(page) => piece.copy_from_slice(&page[from..from + count]),
                None => piece.fill(0),
            }
            done += count;
        }
        Some(())
    }

    /// Writes; `None`, and nothing is written, if that goes behind the end.
    #[must_use]
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Option<()> {
        self.is_within(offset, data.len())?;
        let mut done = 0;
        for (page, from, count) in pieces(offset, data.len()) {
            let page = self.pages[page].get_or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(page)[from..from + count].copy_from_slice(&data[done..done + count]);
            done += count;
        }
        Some(())
    }

    /// Makes a range zero and lets go of its whole pages; `None`, and nothing is
    /// done, if that goes behind the end.
    #[must_use]
    pub fn zero(&mut self, offset: u64, length: u64) -> Option<()> {
        let length = usize::try_from(length).ok()?;
        self.is_within(offset, length)?;
        for (page, from, count) in pieces(offset, length) {
            match &mut self.pages[page] {
                whole if count == PAGE => *whole = None,
                Some(page) => Arc::make_mut(page)[from..from + count].fill(0),
                None => {}
            }
        }
        Some(())
    }

    /// The pages that were ever written: offset and content, in order.
    pub fn written(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let size = self.size;
        self.pages.iter().enumerate().filter_map(move |(number, page)| {
            let offset = (number * PAGE) as u64;
            let length = usize::try_from(size - offset).map_or(PAGE, |left| left.min(PAGE));
            Some((offset, &page.as_ref()?[..length]))
        })
    }

    fn is_within(&self, offset: u64, length: usize) -> Option<()> {
        (offset.checked_add(length as u64)? <= self.size).then_some(())
    }
}

/// Page, offset in it and length of each piece of a range.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    // Within the image, whose pages are counted in a usize.
    let start = offset as usize;
    let mut position = start;
    std::iter::from_fn(move || {
        let left = start + length - position;
        let (page, from) = (position / PAGE, position % PAGE);
        let count = left.min(PAGE - from);
        position += count;
        (count > 0).then_some((page, from, count))
    })
}
