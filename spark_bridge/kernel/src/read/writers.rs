//! Writer schemas of messages that name them: by their framing, the bytes before the datum.
//!
//! The bridge adds a schema once, with the framing of the first message that has it.

use std::sync::Arc;

use hashbrown::HashMap;
use serde::Deserialize;
use serde_json::Value;

use crate::avro::{Field, Type};
use crate::plan::{Layout, Slot};
use crate::pool::{Pool, Weighed};
use crate::read::envelope::Name;
use crate::read::plans::Plan;
use crate::refusal::{Refusal, Result};

/// Maximum bytes of descriptions, whose compiled form takes about as much.
const MAX_BYTES: usize = 64 << 20;

/// A writer schema of values, as described by the bridge.
#[derive(Deserialize)]
pub struct Description {
    schema: Value,
    /// As in the settings; `avro.schema` is null.
    layout: Value,
    /// The table, if messages do not name it.
    table: Option<[String; 3]>,
}

/// How to read the messages of a writer schema.
pub struct Writer {
    pub head: Box<[u8]>,
    /// None: the reference reads these messages.
    pub program: Option<Program>,
    /// The plan of its previous message.
    pub guess: Option<Arc<Plan>>,
}

/// A compiled writer schema.
pub struct Program {
    /// Index of its layout; those of most schemas are equal.
    pub layout: usize,
    pub slots: Arc<Slots>,
    /// The columns of rows.
    pub row: Arc<[Field]>,
    pub table: Option<Name>,
}

/// The fields of messages.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Slots(pub Vec<Slot>);

impl Weighed for Slots {
    fn bytes(&self) -> usize {
        size_of_val(&self.0[..])
    }
}

/// Values by their framing.
struct ByHead<T> {
    numbers: HashMap<Box<[u8]>, usize>,
    /// Lengths of all framings.
    lengths: Vec<usize>,
    found: Vec<T>,
    /// The one of the previous message.
    last: usize,
}

impl<T> Default for ByHead<T> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            lengths: Vec::new(),
            found: Vec::new(),
            last: 0,
        }
    }
}

impl<T> ByHead<T> {
    fn add(&mut self, head: &[u8], value: T) {
        if !self.lengths.contains(&head.len()) {
            self.lengths.push(head.len());
        }
        if let Some(number) = self.numbers.get(head) {
            self.found[*number] = value;
            return;
        }
        self.numbers.insert(head.into(), self.found.len());
        self.found.push(value);
    }

    /// The index of the value for a message; None if it is unknown.
    fn find(&mut self, data: &[u8], head: impl Fn(&T) -> &[u8]) -> Result<Option<usize>> {
        if let [length] = self.lengths[..] {
            // Most messages have the schema of the previous one.
            let last = self.found.get(self.last);
            if last.is_some_and(|last| data.starts_with(head(last))) {
                return Ok(Some(self.last));
            }
            let found = data.get(..length).and_then(|head| self.numbers.get(head));
            self.last = found.copied().unwrap_or(self.last);
            return Ok(found.copied());
        }
        let heads = self.lengths.iter().filter_map(|length| data.get(..*length));
        let mut found = heads.filter_map(|head| self.numbers.get(head));
        match (found.next(), found.next()) {
            (one, None) => Ok(one.copied()),
            // Two framings fit: the reference decides.
            _ => Err(Refusal::new("ambiguous framing", 0)),
        }
    }
}

/// A writer schema of keys; None: the reference reads messages with such keys.
struct Key {
    head: Box<[u8]>,
    type_: Option<Type>,
}

/// The writer schemas of values and keys.
#[derive(Default)]
pub struct Writers {
    values: ByHead<Writer>,
    keys: ByHead<Key>,
    slots: Pool<Slots>,
    /// Layouts by their description and fields.
    layouts: HashMap<(String, Arc<Slots>), usize>,
    bytes: usize,
}

impl Writers {
    /// Whether there are too many of them to add another one.
    pub fn are_many(&self) -> bool {
        self.bytes > MAX_BYTES
    }

    /// Adds a schema of values; its layout is the next one, unless an equal one is known.
    pub fn add(
        &mut self,
        head: &[u8],
        description: Option<&str>,
        layouts: &mut Vec<Layout>,
    ) -> Result<(), String> {
        self.bytes += head.len() + description.map_or(0, str::len) + size_of::<Writer>();
        let program = match description {
            Some(description) => {
                let description = serde_json::from_str(description);
                let description = description.map_err(|error| error.to_string())?;
                Some(self.compile(description, layouts)?)
            }
            None => None,
        };
        self.values.add(
            head,
            Writer {
                head: head.into(),
                program,
                guess: None,
            },
        );
        Ok(())
    }

    fn compile(
        &mut self,
        description: Description,
        layouts: &mut Vec<Layout>,
    ) -> Result<Program, String> {
        let type_ = Type::of_registry(&description.schema)?;
        let text = description.layout.to_string();
        let mut layout: Layout =
            serde_json::from_value(description.layout).map_err(|error| error.to_string())?;
        layout.prepare(layouts.len());
        let avro = layout.avro.as_ref().ok_or("a layout without Avro")?;
        let (slots, row) = avro.of_writer(&type_, &layout.members)?;
        let slots = self.slots.share(Slots(slots));
        let number = self.layouts.entry((text, Arc::clone(&slots)));
        let number = *number.or_insert_with(|| {
            layouts.push(layout);
            layouts.len() - 1
        });
        Ok(Program {
            layout: number,
            slots,
            row,
            table: description.table.map(|names| names.map(Arc::from)),
        })
    }

    /// Adds a schema of keys.
    pub fn add_key(&mut self, head: &[u8], schema: Option<&str>) -> Result<(), String> {
        self.bytes += head.len() + schema.map_or(0, str::len) + size_of::<Key>();
        let type_ = match schema {
            Some(schema) => {
                let schema = serde_json::from_str(schema).map_err(|error| error.to_string())?;
                Some(Type::of_registry(&schema)?)
            }
            None => None,
        };
        self.keys.add(
            head,
            Key {
                head: head.into(),
                type_,
            },
        );
        Ok(())
    }

    /// The index of a value's schema; None if it is unknown.
    pub fn find(&mut self, value: &[u8]) -> Result<Option<usize>> {
        self.values.find(value, |writer| &writer.head)
    }

    pub fn get(&self, number: usize) -> &Writer {
        &self.values.found[number]
    }

    /// The compiled schema of a value; refused if the reference reads its messages.
    pub fn program(&self, number: usize) -> Result<&Program> {
        let program = self.get(number).program.as_ref();
        program.ok_or(Refusal::new("writer schema is unusual", 0))
    }

    pub fn guess(&mut self, number: usize, plan: Option<Arc<Plan>>) {
        self.values.found[number].guess = plan;
    }

    pub fn forget_guesses(&mut self) {
        for writer in &mut self.values.found {
            writer.guess = None;
        }
    }

    /// The framing and the type of a key; None if its schema is unknown.
    pub fn key(&mut self, key: &[u8]) -> Result<Option<(&[u8], &Type)>> {
        let Some(number) = self.keys.find(key, |key| &key.head)? else {
            return Ok(None);
        };
        let Key { head, type_ } = &self.keys.found[number];
        let type_ = type_.as_ref();
        let type_ = type_.ok_or(Refusal::new("schema of the key is unusual", 0))?;
        Ok(Some((head, type_)))
    }
}
