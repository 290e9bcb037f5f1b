//! Values of columns: what is read is printed alike.
#![no_main]

use cdcfmt_kernel::testing::{
    decode_base64, decode_hex, encode_base64, encode_hex, numbers, temporal, unquote_go,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut bytes = Vec::new();
    if decode_base64(text, &mut bytes).is_ok() {
        let mut printed = Vec::new();
        encode_base64(&bytes, &mut printed);
        assert_eq!(printed, text.as_bytes());
    }
    bytes.clear();
    if decode_hex(text, &mut bytes).is_ok() {
        let mut printed = Vec::new();
        encode_hex(&bytes, &mut printed);
        let digits = text.strip_prefix("0x").unwrap_or(text);
        assert!(printed.eq_ignore_ascii_case(digits.as_bytes()));
    }
    bytes.clear();
    let _ = unquote_go(text, &mut bytes);
    if let Some(value) = numbers::float(text) {
        assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(value.to_bits()));
    }
    if let Some((_, scale)) = numbers::decimal(text) {
        let digits = text
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.len());
        assert_eq!(usize::from(scale), digits);
    }
    if let Some(days) = temporal::date(text) {
        let mut printed = Vec::new();
        temporal::print_date(days.into(), &mut printed);
        assert_eq!(printed, text.as_bytes());
    }
    let _ = (temporal::datetime(text), temporal::time(text));
});
