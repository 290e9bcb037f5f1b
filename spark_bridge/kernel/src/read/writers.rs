//! Writer schemas of messages that name them: by their framing, the bytes before the datum.
//!
//! The bridge adds a schema once, with the framing of the first message that has it.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use serde::Deserialize;
use serde_json::Value;

use crate::avro::{Field, Type};
use crate::plan::{Layout, Slot};
use crate::pool::{Pool, Weighed};
use crate::read::attributes::Attributes;
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
    /// Database, schema and table that messages do not name, if any.
    table: Option<Names>,
}

/// Database, schema and table; None: a field has it.
type Names = [Option<Arc<str>>; 3];

/// Maximum bytes of a framing: that of Glue has 18.
const MAX_HEAD: usize = 23;

/// A framing: the bytes before the datum, and the number of the message's attributes.
///
/// The bytes are stored inline, as messages of thousands of schemas in turn read every one of them
/// from cold memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Head {
    attributes: u32,
    length: u8,
    bytes: [u8; MAX_HEAD],
}

impl Head {
    /// None if it is too long.
    fn new(head: &[u8], attributes: u32) -> Option<Self> {
        let mut bytes = [0; MAX_HEAD];
        bytes.get_mut(..head.len())?.copy_from_slice(head);
        let length = head.len() as u8;
        Some(Self {
            attributes,
            length,
            bytes,
        })
    }

    pub fn len(&self) -> usize {
        usize::from(self.length)
    }

    fn begins(&self, data: &[u8], attributes: u32) -> bool {
        self.attributes == attributes && data.starts_with(&self.bytes[..self.len()])
    }
}

/// How to read the messages of a writer schema.
pub struct Writer {
    pub head: Head,
    /// None: the reference reads these messages.
    pub program: Option<Program>,
    /// The plan of its previous message.
    pub guess: Option<Arc<Plan>>,
    /// The key's schema in its previous message.
    key: usize,
}

/// A compiled writer schema.
pub struct Program {
    /// Index of its layout; those of most schemas are equal.
    pub layout: usize,
    pub slots: Arc<Slots>,
    /// The columns of rows.
    pub row: Arc<[Field]>,
    pub table: Option<Names>,
    /// Names the schema in the filters, if attributes count; else empty.
    pub tag: Box<str>,
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
    numbers: HashMap<Head, usize>,
    /// Lengths of all framings.
    lengths: Vec<usize>,
    found: Vec<T>,
}

impl<T> Default for ByHead<T> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            lengths: Vec::new(),
            found: Vec::new(),
        }
    }
}

impl<T> ByHead<T> {
    fn add(&mut self, head: Head, value: T) {
        if !self.lengths.contains(&head.len()) {
            self.lengths.push(head.len());
        }
        if let Some(number) = self.numbers.get(&head) {
            self.found[*number] = value;
            return;
        }
        self.numbers.insert(head, self.found.len());
        self.found.push(value);
    }

    /// The index of the value for a message; None if it is unknown.
    ///
    /// `guess`: its probable index.
    fn find(
        &self,
        data: &[u8],
        attributes: u32,
        guess: usize,
        head: impl Fn(&T) -> &Head,
    ) -> Result<Option<usize>> {
        let of_length = |length: &usize| {
            let head = Head::new(data.get(..*length)?, attributes)?;
            self.numbers.get(&head).copied()
        };
        if let [length] = &self.lengths[..] {
            let guessed = self.found.get(guess);
            if guessed.is_some_and(|guessed| head(guessed).begins(data, attributes)) {
                return Ok(Some(guess));
            }
            return Ok(of_length(length));
        }
        let mut found = self.lengths.iter().filter_map(of_length);
        match (found.next(), found.next()) {
            (one, None) => Ok(one),
            // Two framings fit: the reference decides.
            _ => Err(Refusal::new("ambiguous framing", 0)),
        }
    }
}

/// A writer schema of keys; None: the reference reads messages with such keys.
struct Key {
    head: Head,
    type_: Option<Arc<Type>>,
}

/// The schema of a message's key.
pub struct KeySchema<'a> {
    pub number: usize,
    pub head: &'a Head,
    pub type_: &'a Type,
}

/// The writer schemas of values and keys.
#[derive(Default)]
pub struct Writers {
    pub attributes: Attributes,
    values: ByHead<Writer>,
    /// The index of the previous message's schema.
    last: usize,
    keys: ByHead<Key>,
    slots: Pool<Slots>,
    /// Types of keys and columns of rows; those of many schemas are equal.
    types: HashSet<Arc<Type>>,
    rows: HashSet<Arc<[Field]>>,
    /// Layouts by their description and fields.
    layouts: HashMap<(String, Arc<Slots>), usize>,
    bytes: usize,
}

impl Writers {
    pub fn new(attributes: Attributes) -> Self {
        Self {
            attributes,
            ..Self::default()
        }
    }

    /// Removes all schemas.
    pub fn clear(&mut self) {
        let mut attributes = std::mem::take(&mut self.attributes);
        attributes.forget();
        *self = Self::new(attributes);
    }

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
        let head = self.head(head)?;
        self.bytes += description.map_or(0, str::len) + size_of::<Writer>();
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
                head,
                program,
                guess: None,
                key: 0,
            },
        );
        Ok(())
    }

    /// The framing of messages with the attributes of the current one.
    fn head(&mut self, head: &[u8]) -> Result<Head, String> {
        let attributes = self.attributes.learn();
        let head = attributes.and_then(|attributes| Head::new(head, attributes));
        Ok(head.ok_or("a framing, or attributes, that are too long")?)
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
        let (mut slots, row) = avro.of_writer(&type_, &layout.members)?;
        for slot in &mut slots {
            slot.prepare(layout.log_leaves.as_ref().map_or(&[], |leaves| leaves));
        }
        let slots = self.slots.share(Slots(slots));
        let row = Arc::clone(self.rows.get_or_insert(row));
        let number = self.layouts.entry((text, Arc::clone(&slots)));
        let number = *number.or_insert_with(|| {
            layouts.push(layout);
            layouts.len() - 1
        });
        Ok(Program {
            layout: number,
            slots,
            row,
            table: description.table,
            tag: match self.attributes.are_used() {
                true => format!("writer schema {}", self.values.found.len()).into(),
                false => "".into(),
            },
        })
    }

    /// Adds a schema of keys.
    pub fn add_key(&mut self, head: &[u8], schema: Option<&str>) -> Result<(), String> {
        let head = self.head(head)?;
        self.bytes += schema.map_or(0, str::len) + size_of::<Key>();
        let type_ = match schema {
            Some(schema) => {
                let schema = serde_json::from_str(schema).map_err(|error| error.to_string())?;
                let type_ = Arc::new(Type::of_registry(&schema)?);
                Some(Arc::clone(self.types.get_or_insert(type_)))
            }
            None => None,
        };
        self.keys.add(head, Key { head, type_ });
        Ok(())
    }

    /// The index of a value's schema; None if it is unknown.
    pub fn find(&mut self, value: &[u8]) -> Result<Option<usize>> {
        // Most messages have the schema of the previous one.
        let attributes = self.attributes.number();
        let found = self
            .values
            .find(value, attributes, self.last, |writer| &writer.head)?;
        self.last = found.unwrap_or(self.last);
        Ok(found)
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

    /// The schema of the key of a message whose value has this schema; None if it is unknown.
    pub fn key(&mut self, number: usize, key: &[u8]) -> Result<Option<KeySchema<'_>>> {
        let guess = &mut self.values.found[number].key;
        let attributes = self.attributes.number();
        let Some(number) = self.keys.find(key, attributes, *guess, |key| &key.head)? else {
            return Ok(None);
        };
        *guess = number;
        let Key { head, type_ } = &self.keys.found[number];
        let type_ = type_.as_deref();
        let type_ = type_.ok_or(Refusal::new("schema of the key is unusual", 0))?;
        Ok(Some(KeySchema {
            number,
            head,
            type_,
        }))
    }
}
