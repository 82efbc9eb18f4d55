//! `fsure seal`.

use std::path::PathBuf;

use crate::report::log as report;
use clap::{Args, ValueHint};
use fsure_core::{Error, ExitCode, Result};
use fsure_integrity::catalog::locate;
use fsure_integrity::trust::{LockedKey, Signer};
use fsure_integrity::{SealOptions, seal};

use super::access_args::AccessArgs;
use super::headings::RECORD;
use super::screen::Screen;
use super::{OutputArgs, user_dirs};

/// Sign the record, so that a change by another user is noticed
///
/// Reads no data: 'fsure verify' first, then 'update', then this. The next
/// update that changes the record leaves it unsigned until the next seal.
#[derive(Args)]
pub(crate) struct SealArgs {
    /// A folder that has a record [default: the current folder]
    #[arg(value_name = "PATH", default_value = ".", hide_default_value = true,
          value_hint = ValueHint::AnyPath)]
    path: PathBuf,
    /// The secret key, made by 'minisign -G'
    #[arg(long, value_name = "KEY", value_hint = ValueHint::FilePath)]
    sign: PathBuf,
    /// Take the key's password from the first line of FILE [default: ask]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    password_file: Option<PathBuf>,
    /// Use the record in FILE instead of PATH/.fsure/catalog.db
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = RECORD)]
    catalog: Option<PathBuf>,
    /// Begin a new chain of generations, whatever was signed before
    #[arg(long, alias = "force")]
    new_chain: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// Runs the command.
pub(crate) fn run(args: &SealArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    match args.run(output, &screen) {
        Ok(()) => screen.end(ExitCode::Clean),
        Err(error) => screen.failed(&error),
    }
}

impl SealArgs {
    fn run(&self, output: &OutputArgs, screen: &Screen) -> Result<()> {
        let (signer, memory) = (self.signer()?, user_dirs::memory(self.access.dry_run)?);
        let options = SealOptions {
            signer,
            memory,
            begins_chain: self.new_chain,
            backup_folders: output.user.backup.clone(),
            access: self.access.access(),
        };
        let place = locate(&self.path, self.catalog.as_deref())?;
        let root = place.root.to_string_lossy().into_owned();
        screen.starts_on(std::slice::from_ref(&place));
        let task = screen.begin(screen.paths(&place), false);
        let sealed = seal(&place, &options, &task)?;
        drop(task);
        for nested in &sealed.nested {
            screen.warn(&format!(
                "{root}/{} has a record of its own, which this signature does not cover: sign it \
                 with a 'fsure seal' of its own",
                nested.display()
            ));
        }
        if output.json {
            screen.print(&report::sealed_json(&root, &sealed));
        } else if !output.quiet {
            screen.print(&report::sealed_text(&root, &sealed));
        }
        Ok(())
    }

    fn signer(&self) -> Result<Signer> {
        let shown = self.sign.display();
        let bad = |why: &str| Error::Usage { message: format!("{shown}: {why}"), hint: None };
        let key = LockedKey::read(user_dirs::text(&self.sign)?);
        let key = key.ok_or_else(|| bad("it is not a secret key of minisign"))?;
        let password = match &self.password_file {
            _ if !key.needs_password => None,
            Some(file) => {
                Some(user_dirs::text(file)?.lines().next().unwrap_or_default().to_owned())
            }
            None => Some(rpassword::prompt_password(format!("Password of {shown}: ")).map_err(
                |error| {
                    bad(&format!(
                        "cannot ask for its password ({error}); '--password-file FILE' reads it \
                         from a file"
                    ))
                },
            )?),
        };
        key.open(password).map_err(|why| bad(&why))
    }
}
