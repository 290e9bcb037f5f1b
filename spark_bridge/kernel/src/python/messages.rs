//! Messages in Arrow arrays.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, BinaryArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
};

use crate::read::Attributes;
use crate::read::HEADER_BYTES;
use crate::read::Place;
use crate::read::Shown;

/// The messages of a batch.
pub struct ArrowMessages<'a> {
    values: &'a BinaryArray,
    keys: &'a BinaryArray,
    offsets: &'a Int64Array,
    partitions: &'a Int32Array,
    epochs: &'a Int32Array,
    places: [&'a StringArray; 2],
    headers: Headers<'a>,
}

/// One message: value, key and place, and the bytes that each of its rows has beside its values.
pub struct ArrowMessage<'a> {
    pub value: &'a [u8],
    pub key: Option<&'a [u8]>,
    pub place: Place,
    pub beside: usize,
}

/// Headers of each message, with the texts of all.
struct Headers<'a> {
    lists: &'a ListArray,
    names: &'a StringArray,
    values: &'a BinaryArray,
}

impl<'a> ArrowMessages<'a> {
    /// The columns of a batch; None if one is missing.
    pub fn new(batch: &'a RecordBatch) -> Option<Self> {
        let int = |name| batch.column_by_name(name)?.as_primitive_opt::<Int32Type>();
        Some(Self {
            values: batch.column_by_name("value")?.as_binary_opt()?,
            keys: batch.column_by_name("key")?.as_binary_opt()?,
            offsets: batch
                .column_by_name("offset")?
                .as_primitive_opt::<Int64Type>()?,
            partitions: int("partition")?,
            epochs: int("epoch")?,
            places: [
                batch.column_by_name("topic")?.as_string_opt()?,
                batch.column_by_name("path")?.as_string_opt()?,
            ],
            headers: Headers::new(batch.column_by_name("headers")?)?,
        })
    }

    /// The message at an index; None if it has no value.
    pub fn get(&self, at: usize, shown: Shown) -> Option<ArrowMessage<'a>> {
        let (values, keys) = (self.values, self.keys);
        values.is_valid(at).then(|| ArrowMessage {
            value: values.value(at),
            key: keys.is_valid(at).then(|| keys.value(at)),
            place: Place {
                epoch: integer(self.epochs, at),
                partition: integer(self.partitions, at),
                offset: self.offsets.is_valid(at).then(|| self.offsets.value(at)),
            },
            beside: self.beside(at, shown),
        })
    }

    /// Notes topic and headers of the message at an index.
    pub fn note(&self, at: usize, attributes: &mut Attributes) {
        let topics = self.places[0];
        let topic = topics.is_valid(at).then(|| topics.value(at));
        attributes.read(topic, self.headers.of(at));
    }

    /// The bytes that each row of a message has of it.
    fn beside(&self, at: usize, shown: Shown) -> usize {
        let places = self.places.iter();
        let of_place = places.map(|texts| texts.value_length(at) as usize).sum();
        let of_headers = if shown.headers {
            self.headers.bytes(at)
        } else {
            0
        };
        shown.bytes(of_place, of_headers)
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }
}

impl<'a> Headers<'a> {
    fn new(array: &'a dyn Array) -> Option<Self> {
        let lists = array.as_list_opt()?;
        let [names, values] = lists.values().as_struct_opt()?.columns() else {
            return None;
        };
        Some(Self {
            lists,
            names: names.as_string_opt()?,
            values: values.as_binary_opt()?,
        })
    }

    /// The places of a message's headers.
    fn places(&self, at: usize) -> Range<usize> {
        if self.lists.is_null(at) {
            return 0..0;
        }
        let [start, end] = [at, at + 1].map(|place| self.lists.value_offsets()[place] as usize);
        start..end
    }

    /// Name and value of each header of a message.
    fn of(&self, at: usize) -> impl Iterator<Item = (&'a str, Option<&'a [u8]>)> {
        let (names, values) = (self.names, self.values);
        self.places(at).map(move |place| {
            let value = values.is_valid(place).then(|| values.value(place));
            (names.value(place), value)
        })
    }

    fn bytes(&self, at: usize) -> usize {
        let Range { start, end } = self.places(at);
        let (names, values) = (self.names.value_offsets(), self.values.value_offsets());
        let of_texts = names[end] - names[start] + values[end] - values[start];
        of_texts as usize + HEADER_BYTES * (end - start)
    }
}

fn integer(column: &Int32Array, at: usize) -> i32 {
    match column.is_valid(at) {
        true => column.value(at),
        false => 0,
    }
}
