//! The Python class of the kernel.

use arrow_array::RecordBatch;
use arrow_pyarrow::FromPyArrow;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::python::errors::{refused, value_error};
use crate::python::messages::ArrowMessages;
use crate::python::rows::Rows;
use crate::read::Kernel;
use crate::read::Place;
use crate::read::frames;
use crate::read::{Origins, WholeMessage};
use crate::refusal::{Reason, Stop};

/// Number of messages between two checks of Python's signals: Ctrl-C is answered at once, and the GIL
/// is taken rarely.
pub const WINDOW: usize = 128;

type OriginLists<'py> = (
    Bound<'py, PyList>,
    Bound<'py, PyList>,
    Bound<'py, PyList>,
    Bound<'py, PyList>,
);

/// Value, key, place and encoded attributes.
type Record<'a> = (Option<&'a [u8]>, Option<&'a [u8]>, Place, &'a [u8]);

/// Topic and headers of a message.
type Attributes<'py> = (Option<String>, Vec<(String, Option<Bound<'py, PyBytes>>)>);

/// Reads messages into batches; see `cdcfmt_kernel.pyi`.
#[pyclass(name = "Kernel")]
pub struct PyKernel {
    pub(super) kernel: Kernel,
    pub(super) stop: Option<Stop>,
    /// Bytes of the read messages in the batch.
    pub(super) size: usize,
    /// For lines that are whole messages.
    pub(super) whole: WholeMessage,
    pub(super) origins: Origins,
}

#[pymethods]
impl PyKernel {
    #[new]
    fn new(settings: &str) -> PyResult<Self> {
        let settings = serde_json::from_str(settings).map_err(value_error)?;
        Ok(Self {
            kernel: Kernel::new(settings),
            stop: None,
            size: 0,
            whole: WholeMessage::default(),
            origins: Origins::default(),
        })
    }

    /// Reads messages from `start` on; returns the index of the first unread message.
    #[pyo3(signature = (values, keys, offsets, start, beside=vec![0], places=None, attributes=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "as in the stub file, with names in Python"
    )]
    fn read(
        &mut self,
        values: &Bound<'_, PyList>,
        keys: &Bound<'_, PyList>,
        offsets: &Bound<'_, PyList>,
        start: usize,
        beside: Vec<usize>,
        places: Option<&Bound<'_, PyList>>,
        attributes: Option<&Bound<'_, PyList>>,
    ) -> PyResult<usize> {
        self.stop = None;
        let py = values.py();
        let beside_of = |place: usize| {
            let found = beside.get(place).or(beside.first());
            found.copied().unwrap_or_default()
        };
        let mut at = start;
        while at < values.len() {
            let end = values.len().min(at + WINDOW);
            let mut window = Vec::with_capacity(end - at);
            for number in at..end {
                let value = values.get_item(number)?.cast_into::<PyBytes>().ok();
                let key = match keys.is_empty() {
                    true => None,
                    false => keys.get_item(number)?.cast_into::<PyBytes>().ok(),
                };
                let (partition, epoch): (Option<i32>, Option<i32>) = match places {
                    Some(places) => places.get_item(number)?.extract()?,
                    None => (None, None),
                };
                let place = Place {
                    epoch: epoch.unwrap_or_default(),
                    partition: partition.unwrap_or_default(),
                    offset: offsets.get_item(number)?.extract()?,
                };
                let attributes = match attributes {
                    Some(attributes) => self.encoded(&attributes.get_item(number)?)?,
                    None => Vec::new(),
                };
                // References are taken with the GIL, and bytes are read without it: they are
                // immutable.
                window.push((value, key, place, attributes));
            }
            let window: Vec<Record> = window
                .iter()
                .map(|(value, key, place, attributes)| {
                    let key = key.as_ref().map(|bytes| bytes.as_bytes());
                    let value = value.as_ref().map(|bytes| bytes.as_bytes());
                    (value, key, *place, attributes.as_slice())
                })
                .collect();
            let read = py.detach(|| {
                let read = |(number, record): (usize, &Record)| {
                    let (value, key, place, attributes) = *record;
                    let Some(value) = value else {
                        self.stop = Some(Stop::new(Reason::Message, "missing value"));
                        return false;
                    };
                    if let Some(noted) = self.kernel.attributes() {
                        noted.set(attributes);
                    }
                    self.one(value, key, place, beside_of(at + number))
                };
                let window = window.iter().enumerate();
                window.map(read).take_while(|read| *read).count()
            });
            at += read;
            if self.stop.is_some() {
                break;
            }
        }
        Ok(at)
    }

    /// Like `read`, for a record batch with all columns of messages.
    fn read_batch(&mut self, batch: &Bound<'_, PyAny>, start: usize) -> PyResult<usize> {
        let py = batch.py();
        let batch = RecordBatch::from_pyarrow_bound(batch)?;
        let messages = ArrowMessages::new(&batch).ok_or_else(|| value_error("no messages"))?;
        self.stop = None;
        let mut at = start;
        while at < messages.len() && self.stop.is_none() {
            at = py.detach(|| self.messages_of(&messages, at));
            // Between windows, as messages of a batch may take seconds.
            py.check_signals()?;
        }
        Ok(at)
    }

    /// Reads lines from the byte `at` on; returns the position of the first unread line.
    #[pyo3(signature = (data, offset, at, are_whole, path=0))]
    fn read_lines(
        &mut self,
        py: Python<'_>,
        data: &[u8],
        offset: i64,
        at: usize,
        are_whole: bool,
        path: usize,
    ) -> PyResult<usize> {
        self.stop = None;
        self.origins.clear();
        let mut at = at;
        while at < data.len() && self.stop.is_none() {
            at = py.detach(|| self.lines(data, offset, at, are_whole, path));
            py.check_signals()?;
        }
        Ok(at)
    }

    /// Topics, partitions, timestamps and headers of the messages that `read_lines` just read.
    fn take_origins<'py>(&mut self, py: Python<'py>) -> PyResult<OriginLists<'py>> {
        let Origins {
            partitions,
            timestamps,
            headers,
            ..
        } = &self.origins;
        let headers = headers.iter().map(|each| {
            let each = each.iter();
            let each =
                each.map(|(name, value)| (name, value.as_deref().map(|v| PyBytes::new(py, v))));
            PyList::new(py, each)
        });
        let headers = PyList::new(py, headers.collect::<PyResult<Vec<_>>>()?)?;
        let topics = PyList::empty(py);
        // One string per topic, not one per message.
        let mut last: Option<(usize, Bound<'py, PyString>)> = None;
        for topic in &self.origins.topics {
            let Some(number) = *topic else {
                topics.append(py.None())?;
                continue;
            };
            if last.as_ref().is_none_or(|(known, _)| *known != number) {
                let text = self.origins.topic(number).unwrap_or_default();
                last = Some((number, PyString::new(py, text)));
            }
            topics.append(last.as_ref().map(|(_, text)| text))?;
        }
        let lists = (
            topics,
            PyList::new(py, partitions)?,
            PyList::new(py, timestamps)?,
            headers,
        );
        Ok(lists)
    }

    /// Why the last message was not read; None if it was.
    #[getter]
    fn stop(&self) -> Option<Stop> {
        self.stop.clone()
    }

    fn names(&mut self, value: &[u8], key: Option<&[u8]>) -> PyResult<(String, String, String)> {
        let names = self.kernel.names(value, key);
        let [database, schema, table] = names
            .ok_or_else(|| value_error("the message has no layout"))?
            .map(|name| name.to_string());
        Ok((database, schema, table))
    }

    /// The index of a message's layout.
    fn layout(&mut self, value: &[u8], key: Option<&[u8]>) -> PyResult<usize> {
        self.kernel.layout_of(value, key).map_err(refused)
    }

    /// Value and key of one event of a message.
    fn event<'py>(
        &self,
        py: Python<'py>,
        value: &[u8],
        key: Option<&[u8]>,
        number: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let (key, value) = frames::event(key, value, number).map_err(refused)?;
        Ok((PyBytes::new(py, value), PyBytes::new(py, key)))
    }

    fn skip(&mut self, value: &[u8], key: Option<&[u8]>, all: bool) -> PyResult<()> {
        self.kernel.skip(value, key, all).map_err(refused)
    }

    fn add_plan(&mut self, value: &[u8], key: Option<&[u8]>, plan: &str) -> PyResult<()> {
        let description = serde_json::from_str(plan).map_err(value_error)?;
        let added = self.kernel.add_plan(value, key, description);
        added.map_err(refused)
    }

    fn add_zone(&mut self, name: String, zone: &str) -> PyResult<()> {
        self.kernel
            .add_zone(name, serde_json::from_str(zone).map_err(value_error)?);
        Ok(())
    }

    fn missing_zone(&mut self, value: &[u8], key: Option<&[u8]>) -> Option<String> {
        self.kernel.missing_zone(value, key)
    }

    /// Text and integers of an Avro message's envelope, as JSON.
    #[pyo3(signature = (value, key=None))]
    fn envelope(&mut self, value: &[u8], key: Option<&[u8]>) -> PyResult<String> {
        self.kernel.envelope_as_json(value, key).map_err(refused)
    }

    /// Adds the writer schema of messages whose values begin with these bytes.
    fn add_writer(&mut self, head: &[u8], description: Option<&str>) -> PyResult<()> {
        self.kernel
            .add_writer(head, description)
            .map_err(value_error)
    }

    /// Adds the writer schema of keys that begin with these bytes.
    fn add_key_writer(&mut self, head: &[u8], schema: Option<&str>) -> PyResult<()> {
        self.kernel
            .add_key_writer(head, schema)
            .map_err(value_error)
    }

    fn clear_plans(&mut self) {
        self.kernel.clear_plans();
    }

    /// Assigns the next number to a message that is decoded elsewhere.
    fn pass_over(&mut self) -> i32 {
        self.kernel.pass_over()
    }

    /// Number of messages in the batch so far.
    #[getter]
    fn messages(&mut self) -> i32 {
        self.kernel.messages()
    }

    /// Bytes of the messages read into the batch, without keys.
    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    #[getter]
    fn rows(&mut self) -> usize {
        self.kernel.row_count()
    }

    /// Number of messages skipped by the filters so far.
    #[getter]
    fn skipped(&self) -> usize {
        self.kernel.skipped()
    }

    /// Numbers of counted values by note, since the last call.
    fn take_counts(&mut self) -> Vec<(String, usize)> {
        let counts = self.kernel.take_counts().into_iter();
        counts
            .map(|(note, count)| (note.to_string(), count))
            .collect()
    }

    /// Returns the rows of the batch, and clears it.
    fn finish(&mut self) -> PyResult<Rows> {
        self.size = 0;
        let (rows, fields) = self.kernel.finish().map_err(value_error)?;
        Ok(Rows::new(rows, fields))
    }
}

impl PyKernel {
    /// Topic and headers of a message as bytes, for [`Attributes::set`].
    fn encoded(&mut self, attributes: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        let (topic, headers): Attributes = attributes.extract()?;
        let headers = headers.iter().map(|(name, value)| {
            let value = value.as_ref().map(|bytes| bytes.as_bytes());
            (name.as_str(), value)
        });
        let mut encoded = Vec::new();
        if let Some(known) = self.kernel.attributes() {
            known.encode(topic.as_deref(), headers, &mut encoded);
        }
        Ok(encoded)
    }
}
