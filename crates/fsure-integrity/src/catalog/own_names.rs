//! Names of the files and folders that fsure keeps in a root and beside a catalog.

/// The folder in a root that belongs to fsure.
pub const OWN_FOLDER: &str = ".fsure";
/// The catalog's place in a root.
pub const OWN_CATALOG: &str = ".fsure/catalog.db";

/// Folder below a root in which `heal` keeps what it has replaced.
pub const REPLACED: &str = ".fsure/replaced";

/// The end of the name of a catalog that is put together and not in its place yet.
pub const RECOVERED: &str = ".recovered";
