//! `fsure seal`.

use std::path::{Path, PathBuf};

use clap::Args;
use fsure::catalog::locate;
use fsure::job::{SealOptions, seal};
use fsure::report::log as report;
use fsure::trust::{LockedKey, Signer};
use fsure::words::{Error, ExitCode, Result};

use super::screen::Screen;
use super::{OutputArgs, places};

/// Sign what the record says, so that nobody else can change it unnoticed
///
/// Reads no data: 'fsure verify' first, then 'update', then this. The next
/// update that changes the record leaves it unsigned until the next seal.
#[derive(Args)]
pub(crate) struct SealArgs {
    /// Folders that have a record [default: the current folder]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The secret key, made by 'minisign -G'
    #[arg(long, value_name = "KEY")]
    sign: PathBuf,
    /// Take the key's password from the first line of FILE [default: ask]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Use the record in FILE instead of PATH/.fsure/catalog.db
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
    /// Begin a new chain of generations, whatever was signed before
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub(crate) fn run(args: &SealArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    let here = [PathBuf::from(".")];
    let paths = if args.paths.is_empty() { &here[..] } else { &args.paths };
    let fail = |error: &Error| {
        screen.error(error);
        error.exit_code()
    };
    let options = match args.options() {
        Ok(options) => options,
        Err(error) => return fail(&error),
    };
    let mut code = ExitCode::Clean;
    for path in paths {
        code = code.worse(match run_one(path, args, &options, output, &screen) {
            Ok(()) => ExitCode::Clean,
            Err(error) => fail(&error),
        });
    }
    screen.end(code)
}

fn run_one(
    path: &Path,
    args: &SealArgs,
    options: &SealOptions,
    output: &OutputArgs,
    screen: &Screen,
) -> Result<()> {
    let place = locate(path, args.catalog.as_deref())?;
    let root = place.root.to_string_lossy().into_owned();
    let task = screen.begin(root.clone(), false);
    let sealed = seal(&place, options, &task)?;
    drop(task);
    for nested in &sealed.nested {
        screen.warn(&format!(
            "{root}/{} has a record of its own, which is to be signed by itself",
            nested.shown()
        ));
    }
    if output.json {
        screen.print(&report::sealed_json(&root, &sealed));
    } else if !output.quiet {
        screen.print(&report::sealed_text(&root, &sealed));
    }
    Ok(())
}

impl SealArgs {
    fn options(&self) -> Result<SealOptions> {
        Ok(SealOptions { signer: self.signer()?, memory: places::memory()?, force: self.force })
    }

    fn signer(&self) -> Result<Signer> {
        let shown = self.sign.display();
        let bad = |why: &str| Error::Usage { message: format!("{shown}: {why}"), hint: None };
        let key = LockedKey::read(places::text(&self.sign)?);
        let key = key.ok_or_else(|| bad("no secret key of minisign"))?;
        let password = match &self.password_file {
            _ if !key.needs_password => None,
            Some(file) => Some(places::text(file)?.lines().next().unwrap_or_default().to_owned()),
            None => Some(
                rpassword::prompt_password(format!("Password of {shown}: "))
                    .map_err(|error| bad(&format!("its password cannot be asked for: {error}")))?,
            ),
        };
        key.open(password).map_err(|why| bad(&why))
    }
}
