//! Cells of variant images, with the same bytes as `pyspark_cdcfmt/rows/variant.py`.

use crate::plan::Form;
use crate::refusal::{Reason, Refusal, Result};
use crate::text::bytes::{decode_base64, latin1};
use crate::values::temporal;
use crate::values::{Cells, NameOrder};
use crate::variant::encode;
use crate::variant::encode::MAX_UNSCALED;
use crate::variant::{Dictionary, Variants};

const NOT_OPEN: Refusal = Refusal::new("value outside of a list or object", 0);

/// Writes cells, one after the other.
pub struct VariantCells<'a> {
    pub out: &'a mut Vec<u8>,
    pub form: Form,
    pub dictionary: &'a Dictionary,
    /// The names that JSON columns add.
    pub names: &'a mut Variants,
    /// Whether the last cell was JSON, which may add names.
    pub is_json: bool,
    /// The lists and objects that are not yet complete, from the outermost on.
    pub open: Vec<Open>,
}

/// A list or an object under construction.
pub struct Open {
    head: usize,
    /// Where its values begin.
    start: usize,
    /// The number of ends of values before its own.
    first: usize,
    has_values: bool,
}

impl VariantCells<'_> {
    fn begin(&mut self, head: usize) {
        self.open.push(Open {
            head,
            start: self.out.len(),
            first: self.names.ends(),
            has_values: false,
        });
    }

    /// Ends the value before the next one, if any.
    fn end_value(&mut self) -> Result<()> {
        let open = self.open.last_mut().ok_or(NOT_OPEN)?;
        if std::mem::replace(&mut open.has_values, true) {
            self.names.end_value(open.start, self.out);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<Open> {
        let open = self.open.pop().ok_or(NOT_OPEN)?;
        if open.has_values {
            self.names.end_value(open.start, self.out);
        }
        Ok(open)
    }

    fn sized(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        const BINARY: u8 = 15;
        // The length is known only behind the bytes.
        encode::primitive(BINARY, [0; 4], self.out);
        let start = self.out.len();
        write(self.out)?;
        let size = u32::try_from(self.out.len() - start);
        let size = size.map_err(|_| Refusal::of(Reason::Size, "value has 4 GiB or more", 0))?;
        self.out[start - 4..start].copy_from_slice(&size.to_le_bytes());
        Ok(())
    }
}

impl Cells for VariantCells<'_> {
    fn is_text(&self) -> bool {
        false
    }

    fn is_image(&self) -> bool {
        true
    }

    fn push_null(&mut self) -> Result<()> {
        self.out.push(encode::NULL);
        Ok(())
    }

    fn push_integer(&mut self, value: i128) -> Result<()> {
        self.form.check(value)?;
        match self.form {
            Form::Boolean => encode::boolean(value != 0, self.out),
            Form::Decimal => encode::unscaled(value, 0, self.out),
            Form::Plain | Form::Signless => encode::integer(value, self.out),
        }
        Ok(())
    }

    fn push_decimal(&mut self, value: i128, scale: u8) -> Result<()> {
        if value.abs() >= MAX_UNSCALED || scale > 38 {
            return Err(Refusal::new("decimal has more than 38 digits", 0));
        }
        encode::unscaled(value, scale, self.out);
        Ok(())
    }

    fn push_float(&mut self, value: f64) -> Result<()> {
        encode::primitive(7, value.to_le_bytes(), self.out);
        Ok(())
    }

    fn push_boolean(&mut self, value: bool) -> Result<()> {
        encode::boolean(value, self.out);
        Ok(())
    }

    fn push_text(&mut self, text: &str) -> Result<()> {
        encode::string(text.as_bytes(), self.out);
        Ok(())
    }

    fn push_bytes(&mut self, data: &[u8]) -> Result<()> {
        self.sized(|out| {
            out.extend_from_slice(data);
            Ok(())
        })
    }

    fn push_latin1(&mut self, text: &str, padded: usize) -> Result<()> {
        self.sized(|out| latin1(text, padded, out))
    }

    fn push_base64(&mut self, text: &str) -> Result<()> {
        self.sized(|out| decode_base64(text, out))
    }

    fn push_date(&mut self, days: i32) -> Result<()> {
        encode::primitive(11, days.to_le_bytes(), self.out);
        Ok(())
    }

    fn push_datetime(&mut self, micros: i64) -> Result<()> {
        temporal::check_instant(micros)?;
        encode::primitive(13, micros.to_le_bytes(), self.out);
        Ok(())
    }

    fn push_instant(&mut self, micros: i64) -> Result<()> {
        temporal::check_instant(micros)?;
        encode::primitive(12, micros.to_le_bytes(), self.out);
        Ok(())
    }

    fn push_time(&mut self, micros: i64, _: Option<u32>, scratch: &mut String) -> Result<()> {
        scratch.clear();
        // Variants have no type for TIME: it is text with six digits.
        temporal::print_time(micros, Some(6), scratch);
        self.push_text(scratch)
    }

    fn begin_list(&mut self) -> Result<()> {
        self.begin(self.out.len());
        Ok(())
    }

    fn item(&mut self, form: Form) -> Result<&mut Self> {
        self.end_value()?;
        self.form = form;
        Ok(self)
    }

    fn end_list(&mut self) -> Result<()> {
        let list = self.end()?;
        self.names.end_array(list.first, list.start, self.out);
        Ok(())
    }

    fn order_of_names(&self) -> NameOrder {
        NameOrder::Utf16
    }

    fn begin_object(&mut self, names: &[&str]) -> Result<()> {
        // Copies need the same names.
        self.is_json = true;
        let head = self.out.len();
        self.names.begin_object(self.dictionary, names, self.out);
        self.begin(head);
        Ok(())
    }

    fn member(&mut self, _: usize, _: &str, form: Form) -> Result<&mut Self> {
        self.item(form)
    }

    fn end_object(&mut self) -> Result<()> {
        let Open {
            head, start, first, ..
        } = self.end()?;
        self.names.end_object(first, head, start, self.out);
        Ok(())
    }

    fn push_nested(&mut self, text: &str, variants: &mut Variants) -> Result<()> {
        self.push_json(text, variants)
    }

    fn push_json(&mut self, text: &str, _: &mut Variants) -> Result<()> {
        self.is_json = true;
        self.names.document(self.dictionary, text, self.out)
    }
}
