//! A battery or UPS of the machine changes nothing of a grade: it keeps the drive powered when
//! the mains fail, and the drive's cache is as volatile as before.

use super::{FlushFinding, FlushFindingId, Grade};

/// Adds to the first finding by which acknowledged writes may be lost from the drive's cache
/// what the machine's backup power does about that, and what it does not.
pub(super) fn add_words(findings: &mut [FlushFinding], backup_power: Option<&str>) {
    let is_of_cache = |finding: &&mut FlushFinding| {
        let is_open = matches!(finding.grade, Grade::Suspicious | Grade::Bad);
        is_open
            && matches!(
                finding.id,
                FlushFindingId::NoFlushSent
                    | FlushFindingId::ClaimsWt
                    | FlushFindingId::FreeFlush
                    | FlushFindingId::Impossible
            )
    };
    let Some(power) = backup_power else { return };
    if let Some(finding) = findings.iter_mut().find(is_of_cache) {
        finding.words += &format!(
            " This machine has a {power}: while it lasts, a failure of the mains does not empty \
             the drive's cache. A crash or reset of the drive, a machine that is reset or \
             switched off hard and an empty battery still do, and a drive with a power supply of \
             its own is not kept running. The verdict stays."
        );
    }
}
