//! A log: numbered records of 100 bytes, one behind the other, so that most
//! share their sector and page with others and some cross a border.
//!
//! A cut may leave the last record half; what follows a bad record was written
//! after it, so a good one there means that order was not kept.

use std::path::Path;

use fsure_os::durable_write::{Method, Names, Writer};

use super::payload::{self, PayloadCheck};
use super::{AckWriter, LastIntact, read};
use fsure_core::{IoContext as _, Result};

const RECORD: usize = 100;
const FILE: &str = "log";

pub(super) fn run(method: Method, folder: &Path, acks: &mut AckWriter<'_>) -> Result<()> {
    let path = folder.join(FILE);
    let writer = Writer::create(&path, method).context("make", &path)?;
    let names = Names::open(folder).and_then(|names| names.flush());
    names.context("flush the folder", folder)?;
    let mut record = [0; RECORD];
    for number in 1.. {
        payload::fill(&mut record, number);
        let at = (number - 1) * RECORD as u64;
        writer.commit(&record, at).context("write to", &path)?;
        if acks.acknowledge(number).is_break() {
            break;
        }
    }
    Ok(())
}

pub(super) fn check(folder: &Path) -> LastIntact {
    let log = read(&folder.join(FILE))?.unwrap_or_default();
    let found = log.chunks(RECORD).map(|record| payload::look(record, RECORD));
    let mut bad = None;
    let mut last = 0;
    for (number, content) in (1..).zip(found) {
        match (content, bad) {
            (PayloadCheck::Whole(found), None) if found == number => last = number,
            (PayloadCheck::Whole(found), None) => {
                return Err(format!("record {found} stands in the place of record {number}"));
            }
            (PayloadCheck::Whole(_), Some(bad)) => {
                return Err(format!("record {bad} is missing, and record {number} is there"));
            }
            (_, bad_before) => bad = bad_before.or(Some(number)),
        }
    }
    Ok(last)
}
