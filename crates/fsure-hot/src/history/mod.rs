//! History: what programs waited for, interval by interval, in a store of bounded size. A
//! recorder writes it for days, and advice is given from it later. `docs/hot.md` has the format.

mod coverage;
mod folder_limit;
mod folder_sum;
mod interval;
mod record;
mod replay;
mod store;
mod store_lines;
mod stored_interval;

pub use coverage::{Gap, History};
pub use folder_sum::{RecordedFolder, RecordedRest};
pub use interval::RecordedInterval;
pub use record::{RecordMonitor, RecordOptions, Recorded, record};
pub use replay::{HistoryOptions, hot_history};
pub use store::StoreLimits;
pub use stored_interval::stored_line;
