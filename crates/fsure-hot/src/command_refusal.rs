//! The error of a command that cannot be watched, and what to do about it.

use std::io::ErrorKind;

use fsure_core::Error;
use fsure_os::foreground::StartError;

/// Returns the error for a command that was not run, or is ended since it cannot be watched.
pub(crate) fn refused(error: &StartError) -> Error {
    let (user, group) = fsure_os::user::user_and_group();
    let (message, hint) = match error {
        StartError::NotStarted(error) => (
            error.to_string(),
            "check the name of the program behind '--', and that it may be executed".to_owned(),
        ),
        StartError::Unwatched(error) if error.kind() == ErrorKind::PermissionDenied => (
            format!("a command is watched by eBPF, which is for root: {error}"),
            format!(
                "put 'sudo -E' in front of fsure, and 'setpriv --reuid={user} --regid={group} \
                 --init-groups' between '--' and the command, so that it runs as this user"
            ),
        ),
        StartError::Unwatched(error) => (
            format!("a command is watched by eBPF, which is not available here: {error}"),
            "'strace -c -f -e trace=fsync,fdatasync' in front of the command counts its flushes"
                .to_owned(),
        ),
    };
    Error::FailedPrecondition { message, hint: Some(hint) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_says_what_to_do() {
        for (kind, words, remedy) in [
            (ErrorKind::PermissionDenied, "which is for root", "sudo -E"),
            (ErrorKind::Unsupported, "not available here", "strace -c -f"),
            (ErrorKind::NotFound, "entity not found", "check the name"),
        ] {
            let error = match kind {
                ErrorKind::NotFound => StartError::NotStarted(kind.into()),
                kind => StartError::Unwatched(kind.into()),
            };
            let error = refused(&error);
            assert_eq!(error.exit_code().number(), 2);
            assert!(error.to_string().contains(words), "{error}");
            assert!(error.hint().is_some_and(|hint| hint.contains(remedy)), "{error}");
        }
    }
}
