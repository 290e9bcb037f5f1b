//! JSON documents: what the kernel accepts, serde_json accepts.
#![no_main]

use cdcfmt_kernel::testing::Cursor;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let is_read = Cursor::new(text).is_ok_and(|mut cursor| cursor.document().is_ok());
    if is_read && let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        // Numbers beyond a double are not an error of the kernel, which keeps their digits.
        let error = error.to_string();
        assert!(error.starts_with("number out of range"), "{error}");
    }
});
