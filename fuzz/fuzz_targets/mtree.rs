#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fsure_fuzz::list(
    fsure_integrity::manifest::ManifestFormat::Mtree,
    data
));
