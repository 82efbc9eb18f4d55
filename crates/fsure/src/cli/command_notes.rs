//! The form of the notes on a command.

/// Examples of one command, and where to read on.
pub struct CommandNotes {
    /// The words of the command behind `fsure`, such as `ram bind`.
    pub command: &'static str,
    /// Lines for a shell, each with a sentence that says what it does.
    pub examples: &'static [(&'static str, &'static str)],
    /// Related commands, by their words behind `fsure`.
    pub see_also: &'static [&'static str],
    /// The page of the documentation, by its path in the repository.
    pub page: &'static str,
}
