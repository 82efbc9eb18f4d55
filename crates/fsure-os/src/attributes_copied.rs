//! The result of a copy of owner, mode and attributes from one file to another.

/// The extent to which a model could be taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributesCopied {
    /// Owner, mode, extended attributes and ACLs are the model's.
    Fully,
    /// The system refused some of it, and what that leaves gives no user more
    /// rights than the model does.
    InPart,
}
