//! The content of a drive, in pages that copies share. A crash image is a copy, and is made
//! while the drive takes no request: it has to be quick on a large drive, too. So the pages are in
//! groups that copies share as well: a copy of 6 GiB takes 3,072 references, and not one for
//! each of 1.6 million pages.

use std::sync::Arc;

/// Bytes in a page.
pub const PAGE: usize = 4096;

/// Pages in a group. The first write into a group after a copy takes a reference for each.
const GROUP_PAGES: usize = 512;

type SharedPage = Arc<[u8; PAGE]>;

/// Pages beside each other; `None` for one that was never written.
type PageGroup = [Option<SharedPage>; GROUP_PAGES];

const EMPTY_GROUP: PageGroup = [const { None }; GROUP_PAGES];

/// The content of a drive. What was never written is zero and takes no space.
#[derive(Clone, Debug)]
pub struct Image {
    size: u64,
    groups: Vec<Option<Arc<PageGroup>>>,
}

impl Image {
    /// Returns a drive of so many bytes, all zero.
    pub fn new(size: u64) -> Self {
        Self { size, groups: vec![None; group_count(size)] }
    }

    /// Returns its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Makes it longer, with zeroes, or shorter.
    pub fn resize(&mut self, size: u64) {
        let groups = group_count(size);
        if size < self.size {
            // The rest of the last group; the groups behind it go as a whole.
            let rest = groups * GROUP_PAGES * PAGE - size as usize;
            for (page, from, count) in pieces(size, rest) {
                self.clear(page, from, count);
            }
        }
        self.groups.resize(groups, None);
        self.size = size;
    }

    /// Reads; `None` if that goes behind the end.
    #[must_use]
    pub fn read(&self, offset: u64, target: &mut [u8]) -> Option<()> {
        self.is_within(offset, target.len())?;
        let mut done = 0;
        for (page, from, count) in pieces(offset, target.len()) {
            let piece = &mut target[done..done + count];
            match self.page(page) {
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
            let page = self.entry(page).get_or_insert_with(|| Arc::new([0; PAGE]));
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
            self.clear(page, from, count);
        }
        Some(())
    }

    /// Returns the pages that were ever written: offset and content, in order.
    pub fn written(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let size = self.size;
        let pages = self.groups.iter().enumerate().flat_map(|(group, pages)| {
            let pages = pages.iter().flat_map(|pages| pages.iter().enumerate());
            pages.map(move |(place, page)| (group * GROUP_PAGES + place, page))
        });
        pages.filter_map(move |(number, page)| {
            let page = page.as_ref()?;
            let offset = (number * PAGE) as u64;
            let length = usize::try_from(size - offset).map_or(PAGE, |left| left.min(PAGE));
            Some((offset, &page[..length]))
        })
    }

    fn page(&self, number: usize) -> Option<&SharedPage> {
        self.groups[number / GROUP_PAGES].as_ref()?[number % GROUP_PAGES].as_ref()
    }

    /// Makes a part of a page zero, and lets go of it if that is all of it.
    fn clear(&mut self, number: usize, from: usize, count: usize) {
        if self.page(number).is_none() {
            return;
        }
        match self.entry(number) {
            Some(page) if count < PAGE => Arc::make_mut(page)[from..from + count].fill(0),
            whole => *whole = None,
        }
    }

    fn entry(&mut self, number: usize) -> &mut Option<SharedPage> {
        let group = self.groups[number / GROUP_PAGES].get_or_insert_with(|| Arc::new(EMPTY_GROUP));
        &mut Arc::make_mut(group)[number % GROUP_PAGES]
    }

    fn is_within(&self, offset: u64, length: usize) -> Option<()> {
        (offset.checked_add(length as u64)? <= self.size).then_some(())
    }
}

fn group_count(size: u64) -> usize {
    let groups = size.div_ceil((GROUP_PAGES * PAGE) as u64);
    usize::try_from(groups).expect("fits the address space")
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

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP_BYTES: u64 = (GROUP_PAGES * PAGE) as u64;

    fn all(image: &Image) -> Vec<u8> {
        let mut bytes = vec![1; image.size() as usize];
        image.read(0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_copy_keeps_what_the_original_loses() {
        let mut image = Image::new(GROUP_BYTES * 2 + 5);
        image.write(GROUP_BYTES - 2, b"over").unwrap();
        image.write(GROUP_BYTES * 2, b"end").unwrap();
        let copy = image.clone();
        image.write(GROUP_BYTES - 2, b"else").unwrap();
        image.zero(GROUP_BYTES, GROUP_BYTES + 5).unwrap();
        let (before, now) = (all(&copy), all(&image));
        let at = GROUP_BYTES as usize;
        assert_eq!((&before[at - 2..at + 2], &before[2 * at..]), (&b"over"[..], &b"end\0\0"[..]));
        assert_eq!((&now[at - 2..at + 2], &now[2 * at..]), (&b"el\0\0"[..], &[0; 5][..]));
        let offsets = |image: &Image| image.written().map(|(at, _)| at).collect::<Vec<_>>();
        let last = GROUP_BYTES - PAGE as u64;
        assert_eq!(offsets(&copy), [last, GROUP_BYTES, GROUP_BYTES * 2]);
        assert_eq!(offsets(&image), [last, GROUP_BYTES * 2], "a part of a page keeps the page");
    }

    #[test]
    fn what_is_cut_off_is_zero_when_it_grows_again() {
        for kept in [0, 1, PAGE as u64, PAGE as u64 + 1, GROUP_BYTES, GROUP_BYTES + 1] {
            let mut image = Image::new(GROUP_BYTES * 2 + 7);
            let data = vec![7; image.size() as usize];
            image.write(0, &data).unwrap();
            image.resize(kept);
            assert!(all(&image).iter().all(|byte| *byte == 7), "{kept}");
            assert_eq!(image.written().map(|(_, page)| page.len() as u64).sum::<u64>(), kept);
            image.resize(data.len() as u64);
            let grown = all(&image);
            assert!(grown[kept as usize..].iter().all(|byte| *byte == 0), "{kept}");
            assert!(grown[..kept as usize].iter().all(|byte| *byte == 7), "{kept}");
        }
    }
}
