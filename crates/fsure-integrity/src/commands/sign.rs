//! `seal`: signs the claims of the record. No data is read: the signature covers what
//! was recorded, and not whether the runs that recorded it were right.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fsure_os::path as os_path;
use fsure_os::user_file::AtomicFile;

use super::RecordAccess;
use super::dry_run::open_to_write;
use super::open_root::{keep_backup, open_root, require_record};
use crate::catalog::{Audit, Catalog, Claimed, MADE_BY, RootLocation, digest_of};
use crate::model::{Changes, Generation, ScanMonitor, SignatureInfo, SignedStatement};
use crate::trust::{
    Chain, SeenChains, Signer, Statement, forgetful, head, place_of, remember, signed,
    unable_to_remember, weak,
};
use fsure_core::{Clock, Error, IoContext as _, RelPath, Result, escape};

/// Options of [`seal`].
pub struct SealOptions {
    /// The key that signs.
    pub signer: Signer,
    /// File with the signatures that this machine has seen.
    pub memory: PathBuf,
    /// Begin a new chain, whatever was signed before.
    pub begins_chain: bool,
    /// Folders that get a copy of the record's backup.
    pub backup_folders: Vec<PathBuf>,
    /// The manner in which the run takes the record.
    pub access: RecordAccess,
}

/// The result of [`seal`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignOutcome {
    /// The signature.
    pub signed: SignatureInfo,
    /// Recorded files.
    pub files: u64,
    /// Their total size.
    pub bytes: u64,
    /// Changes of the record since the last signature.
    pub changes: Changes,
    /// The statement as a file; its signature lies beside it.
    pub file: PathBuf,
    /// Folders that have records of their own, which were not signed.
    pub nested: Vec<RelPath>,
    /// True if nothing was signed because that was asked for.
    pub is_dry_run: bool,
}

/// Signs the record of a root.
pub fn seal(
    place: &RootLocation,
    options: &SealOptions,
    monitor: &dyn ScanMonitor,
) -> Result<SignOutcome> {
    require_record(place)?;
    if !place.scope.is_root() {
        return Err(Error::Usage {
            message: format!(
                "{} is a part of a root, and only a whole root can be signed",
                place.scope.display()
            ),
            hint: Some(format!("give the root: {}", place.root.display())),
        });
    }
    let config = open_root(place)?.config.digest;
    let mut catalog = open_to_write(place, options.access, monitor)?;
    let refuse = |why: String| Err(refused(place, why));
    if let Some(why) = Audit::of(&mut catalog)?.fault() {
        return refuse(why);
    }
    // One transaction from here on, so that exactly what is there is signed.
    catalog.begin()?;
    let claimed = Claimed::of(&mut catalog)?;
    if claimed.bad > 0 {
        return refuse(Audit::BAD_ROWS.to_owned());
    }
    if claimed.weak > 0 {
        return refuse(weak(claimed.weak));
    }
    let generations = catalog.history().generations()?;
    let before = previous(place, options, &generations)?;
    let since = before.as_ref().map_or(0, |chain| chain.newest.generation);
    let first = generations.partition_point(|one| one.number <= since);
    let between = &generations[first..];
    let number = catalog.history().next_generation()?;
    let statement = Statement {
        root: escape(place.root.file_name().map_or(b"/", |name| name.as_encoded_bytes())),
        chain: before.as_ref().map_or_else(|| catalog.draw(), |chain| Ok(chain.newest.chain))?,
        generation: number,
        at_s: Clock::default().now_s(),
        record: claimed.digest,
        config,
        cross_file_systems: catalog.settings().cross_file_systems,
        files: claimed.files,
        folders: claimed.folders,
        links: claimed.links,
        gone: claimed.gone,
        bytes: claimed.bytes,
        previous: before.as_ref().map(|chain| (chain.newest.generation, chain.head())),
        history: (between.first().map_or(number, |one| one.number), digest_of(between)),
    };
    let changes = between.iter().fold(Changes::default(), |sum, one| sum.plus(&one.changes));
    let (chain, file) = write(place, options, &mut catalog, statement)?;
    keep_backup(place, &mut catalog, &options.backup_folders, monitor)?;
    let key = options.signer.verifier();
    Ok(SignOutcome {
        signed: signed(&chain, key.id()),
        files: claimed.files,
        bytes: claimed.bytes,
        changes,
        file,
        nested: catalog.nested_roots().all()?,
        is_dry_run: options.access.is_dry_run,
    })
}

/// Returns the chain that is to be continued; `None` if a new one begins.
fn previous(
    place: &RootLocation,
    options: &SealOptions,
    generations: &[Generation],
) -> Result<Option<Chain>> {
    if options.begins_chain {
        return Ok(None);
    }
    let chain = match Chain::follow(generations).transpose() {
        Ok(chain) => chain,
        Err(why) => return Err(refused(place, why)),
    };
    let file = &options.memory;
    if options.access.is_dry_run && !os_path::exists(file) {
        return Ok(chain);
    }
    let memory = SeenChains::open(file).map_err(|why| forgetful(file, why))?;
    let key = options.signer.verifier();
    let objection = memory.objection(&place_of(place), &key, chain.as_ref());
    if objection == Ok(None) && !options.access.is_dry_run {
        memory.require_writable().map_err(|why| unable_to_remember(file, why))?;
    }
    match objection {
        Ok(None) => Ok(chain),
        Ok(Some(why)) => Err(refused(place, why)),
        Err(why) => Err(forgetful(file, why)),
    }
}

/// Signs a statement and writes it: into the catalog, as files, into the memory.
fn write(
    place: &RootLocation,
    options: &SealOptions,
    catalog: &mut Catalog,
    statement: Statement,
) -> Result<(Chain, PathBuf)> {
    let number = statement.generation;
    let name = format!("{number:04}.txt");
    let comment = format!(
        "timestamp:{}\tfile:{name}\tgeneration:{number}\tfiles:{}",
        statement.at_s, statement.files
    );
    let sealed = options.signer.sign(statement.text(), &comment);
    let seal = sealed.map_err(|why| Error::Usage {
        message: format!("the key cannot sign: {why}"),
        hint: None,
    })?;
    let chain = Chain { heads: vec![(number, head(&seal))], newest: statement };
    catalog.history_mut().put_generation(&Generation {
        number,
        at_s: chain.newest.at_s,
        command: "seal".to_owned(),
        made_by: MADE_BY.to_owned(),
        changes: Changes::default(),
        seal: Some(seal.clone()),
    })?;
    catalog.commit()?;
    let folder = folder(place);
    let file = folder.join(name);
    if options.access.is_dry_run {
        return Ok((chain, file));
    }
    // In this order: nothing is remembered that is not signed.
    remember(&options.memory, place, &options.signer.verifier(), &chain)?;
    os_path::make_folder(&folder).context("make", &folder)?;
    write_files(&file, &seal)?;
    Ok((chain, file))
}

/// Returns the folder in which statements are kept as files.
fn folder(place: &RootLocation) -> PathBuf {
    if place.is_inside() {
        return place.catalog.with_file_name("seal");
    }
    os_path::with_suffix(&place.catalog, ".seal")
}

fn write_files(file: &Path, seal: &SignedStatement) -> Result<()> {
    let signature = os_path::with_suffix(file, ".minisig");
    let texts = [(file, &seal.statement), (&signature, &seal.signature)];
    for (file, text) in texts {
        let written = AtomicFile::create(file).and_then(|mut beside| {
            beside.write_all(text.as_bytes())?;
            beside.finish()
        });
        written.context("write", file)?;
    }
    Ok(())
}

fn refused(place: &RootLocation, why: String) -> Error {
    Error::RecordUntrusted {
        catalog: place.catalog.clone(),
        why,
        hint: format!(
            "nothing was signed. '{}' says more of bad rows, '{} --full' adds BLAKE3; after a \
             forged or rolled-back record, put back a good one, or, if this one is known to be \
             right, '--new-chain' begins a new one",
            place.command("verify"),
            place.command("update")
        ),
        is_recoverable: false,
    }
}
