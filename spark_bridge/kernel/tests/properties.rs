//! Properties of the readers of values and documents, over arbitrary and hostile texts.
//!
//! The truth is std's or serde_json's: what the kernel reads, they read alike. It may refuse more.

use cdcfmt_kernel::testing::{
    Cursor, Result, decode_base64, decode_hex, encode_base64, encode_hex, latin1, numbers, plain,
    temporal, unescape, unescape_latin1, unquote_go,
};
use proptest::prelude::*;
use serde_json::Value;

/// Texts that are nearly JSON: documents of serde_json with one piece replaced.
fn nearly_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let piece = prop_oneof![
        Just(String::new()),
        Just(" ".to_owned()),
        r#"[\[\]{}",:\\.eE+0-9nul -]{0,4}"#,
        ".{0,3}",
    ];
    (value, any::<prop::sample::Index>(), 0..4_usize, piece).prop_map(
        |(value, index, length, piece)| {
            let text: Vec<char> = value.to_string().chars().collect();
            let at = index.index(text.len());
            let end = (at + length).min(text.len());
            let parts = [
                &text[..at],
                &piece.chars().collect::<Vec<_>>(),
                &text[end..],
            ];
            parts.concat().into_iter().collect()
        },
    )
}

fn read(document: &str) -> Option<usize> {
    let mut cursor = Cursor::new(document).ok()?;
    cursor.document().ok().map(|_| cursor.position())
}

fn bytes_of(text: &str, decode: fn(&str, &mut Vec<u8>) -> Result<()>) -> Option<Vec<u8>> {
    let mut out = vec![7];
    decode(text, &mut out).ok()?;
    assert_eq!(out[0], 7, "what was there before stays");
    Some(out.split_off(1))
}

fn printed(print: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    print(&mut out);
    String::from_utf8(out).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn documents_are_those_of_serde_json(text in nearly_json()) {
        // Numbers beyond a double are not an error here: the reference keeps them as text.
        if read(&text).is_some()
            && let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&text)
        {
            prop_assert!(error.to_string().starts_with("number out of range"), "{error}: {text}");
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        if read(&text).is_some() {
            prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok());
        }
    }

    #[test]
    fn texts_lose_their_escapes(text in any::<String>(), ascii in any::<bool>()) {
        let mut quoted = serde_json::to_string(&text).unwrap();
        if ascii {
            quoted = quoted.chars().map(escaped).collect();
        }
        let token = Cursor::new(&quoted).unwrap().document().unwrap();
        let mut room = Vec::new();
        prop_assert_eq!(plain(token, &quoted, &mut room), text.as_str());
        // Room that an earlier, longer text has used changes nothing.
        let mut room = vec![b'x'; 99];
        prop_assert_eq!(unescape(&quoted[1..quoted.len() - 1], &mut room), text.as_str());
    }

    #[test]
    fn escaped_bytes_are_those_of_the_text(text in prop_oneof!["[\\x00-\\u{ff}\"]{0,40}", any::<String>()], ascii in any::<bool>()) {
        let mut quoted = serde_json::to_string(&text).unwrap();
        if ascii {
            quoted = quoted.chars().map(escaped).collect();
        }
        let mut wanted = Vec::new();
        let fits = latin1(&text, 0, &mut wanted).is_ok();
        let mut bytes = vec![7];
        let read = unescape_latin1(&quoted[1..quoted.len() - 1], &mut bytes);
        prop_assert_eq!(read.is_ok(), fits);
        if fits {
            prop_assert_eq!(bytes, wanted);
        }
    }

    #[test]
    fn integers_are_those_of_std(text in prop_oneof!["-?[0-9]{1,45}", "[-+0-9a-f._ ]{0,8}"]) {
        if let Some(value) = numbers::integer(&text) {
            prop_assert_eq!(Ok(value), text.parse::<i128>());
        }
    }

    #[test]
    fn integers_of_128_bits_are_read(value in any::<i64>()) {
        prop_assert_eq!(numbers::integer(value.to_string()), Some(i128::from(value)));
    }

    #[test]
    fn decimals_print_as_they_were(digits in -(10_i128.pow(37))..10_i128.pow(37), scale in 0..20_usize) {
        let sign = if digits < 0 { "-" } else { "" };
        let all = format!("{:0width$}", digits.unsigned_abs(), width = scale + 1);
        let (whole, fraction) = all.split_at(all.len() - scale);
        let point = if scale > 0 { "." } else { "" };
        let text = format!("{sign}{whole}{point}{fraction}");
        prop_assert_eq!(numbers::decimal(&text), Some((digits, u8::try_from(scale).unwrap())));
    }

    #[test]
    fn floats_are_those_of_std(
        text in prop_oneof!["-?[0-9]{1,20}(\\.[0-9]{1,20})?([eE][-+]?[0-9]{1,3})?", "[-+.eE0-9infa]{0,9}"],
    ) {
        if let Some(value) = numbers::float(&text) {
            prop_assert!(value.is_finite());
            prop_assert_eq!(Ok(value.to_bits()), text.parse::<f64>().map(f64::to_bits));
        }
    }

    #[test]
    fn doubles_are_read_as_printed(value in any::<f64>()) {
        let text = format!("{value:e}");
        let read = numbers::float(&text).map(f64::to_bits);
        prop_assert_eq!(read, value.is_finite().then_some(value.to_bits()));
    }

    #[test]
    fn days_are_read_as_printed(days in -719_162_i64..2_932_897) {
        let text = printed(|out| temporal::print_date(days, out));
        prop_assert_eq!(temporal::date(&text).map(i64::from), Some(days));
    }

    #[test]
    fn wall_clocks_are_read_as_printed(micros in -62_135_596_800_000_000_i64..=253_402_300_799_999_999) {
        let text = printed(|out| temporal::print_datetime(micros, out));
        prop_assert_eq!(temporal::datetime(&text), Some(micros));
    }

    #[test]
    fn times_are_read_as_printed(micros in -3_020_399_999_999_i64..=3_020_399_999_999) {
        let mut text = String::new();
        temporal::print_time(micros, None, &mut text);
        prop_assert_eq!(temporal::time(&text), Some(micros));
    }

    #[test]
    fn any_text_is_a_time_or_none(text in prop_oneof!["[-0-9: .T]{0,30}", any::<String>()]) {
        if let Some(days) = temporal::date(&text) {
            prop_assert_eq!(printed(|out| temporal::print_date(days.into(), out)), text.as_str());
        }
        if let Some(micros) = temporal::datetime(&text) {
            let printed = printed(|out| temporal::print_datetime(micros, out));
            prop_assert_eq!(&printed[..10], &text[..10]);
            prop_assert_eq!(&printed[11..19], &text[11..19]);
        }
        let _ = temporal::time(&text);
    }

    #[test]
    fn base64_comes_back(data in any::<Vec<u8>>(), text in prop_oneof!["[A-Za-z0-9+/=]{0,12}", any::<String>()]) {
        let encoded = printed(|out| encode_base64(&data, out));
        prop_assert_eq!(bytes_of(&encoded, decode_base64), Some(data));
        if let Some(data) = bytes_of(&text, decode_base64) {
            prop_assert_eq!(printed(|out| encode_base64(&data, out)), text);
        }
    }

    #[test]
    fn hexadecimal_comes_back(data in any::<Vec<u8>>(), text in "(0x)?[0-9a-fA-F g]{0,9}") {
        let encoded = printed(|out| encode_hex(&data, out));
        prop_assert_eq!(bytes_of(&encoded, decode_hex), Some(data));
        if let Some(data) = bytes_of(&text, decode_hex) {
            let digits = text.strip_prefix("0x").unwrap_or(&text).to_lowercase();
            prop_assert_eq!(printed(|out| encode_hex(&data, out)), digits);
        }
    }

    #[test]
    fn latin_1_is_one_byte_a_character(data in any::<Vec<u8>>(), text in any::<String>()) {
        let characters: String = data.iter().map(|byte| char::from(*byte)).collect();
        let mut out = Vec::new();
        prop_assert!(latin1(&characters, 0, &mut out).is_ok());
        prop_assert_eq!(&out, &data);
        let mut out = Vec::new();
        let fits = text.chars().all(|character| character as u32 <= 0xff);
        prop_assert_eq!(latin1(&text, 0, &mut out).is_ok(), fits);
    }

    #[test]
    fn quoted_texts_of_go_are_read_or_refused(text in prop_oneof![r#"[\\xu0-9a-fnrt"']{0,20}"#, any::<String>()]) {
        let mut out = Vec::new();
        if unquote_go(&text, &mut out).is_ok() && !text.contains('\\') {
            prop_assert_eq!(out, text.into_bytes());
        }
    }
}

/// A character as JSON's `\u` escapes; quotes and escapes stay as they are.
fn escaped(character: char) -> String {
    if character.is_ascii() {
        return character.into();
    }
    let mut units = [0; 2];
    let units = character.encode_utf16(&mut units).iter();
    units.fold(String::new(), |text, unit| text + &format!("\\u{unit:04X}"))
}
