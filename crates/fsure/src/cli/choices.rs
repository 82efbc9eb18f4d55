//! Options whose value is one of several names: a shell completes them, and their case does not
//! matter.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use fsure_core::Algorithm;
use fsure_integrity::manifest::ManifestFormat;
use fsure_integrity::model::SidecarKind;

/// Reads one of several names. The option has to ignore the case, too.
fn one_of<T: Clone + Send + Sync + 'static>(
    names: impl IntoIterator<Item = (&'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let all: Vec<_> = names.into_iter().collect();
    let known: Vec<_> = all.iter().map(|(name, _)| PossibleValue::new(*name)).collect();
    PossibleValuesParser::new(known).try_map(move |given| {
        let found = all.iter().find(|(name, _)| name.eq_ignore_ascii_case(&given));
        found.map(|(_, value)| value.clone()).ok_or("it is none of the names")
    })
}

/// Digests that can be recorded, also as `SHA-256`.
pub(super) fn digest() -> impl TypedValueParser<Value = Algorithm> {
    let hyphened = |algorithm| match algorithm {
        Algorithm::Sha1 => Some("sha-1"),
        Algorithm::Sha256 => Some("sha-256"),
        Algorithm::Sha512 => Some("sha-512"),
        _ => None,
    };
    let known = Algorithm::RECORDED
        .map(|algorithm| PossibleValue::new(algorithm.name()).aliases(hyphened(algorithm)));
    PossibleValuesParser::new(known)
        .try_map(|given| Algorithm::from_typed(&given).ok_or("it is none of the names"))
}

/// Layouts of the record beside the catalog.
pub(super) fn layout() -> impl TypedValueParser<Value = SidecarKind> {
    one_of(SidecarKind::ALL.map(|layout| (layout.name(), layout)))
}

/// Formats of lists that are read.
pub(super) fn any_format() -> impl TypedValueParser<Value = ManifestFormat> {
    one_of(ManifestFormat::ALL.map(|format| (format.name(), format)))
}

/// Formats of lists that are written.
pub(super) fn written_format() -> impl TypedValueParser<Value = ManifestFormat> {
    let written = ManifestFormat::ALL.into_iter().filter(|format| format.is_written());
    one_of(written.map(|format| (format.name(), format)))
}
