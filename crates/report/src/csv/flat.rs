//! Conversion of a structure to the fields of a row. Fields of a part have the part's name as a prefix
//! (`group_peak_bytes`), and those of a list hold one value for each member, separated by spaces.
//!
//! The fields are written directly, because a row has hundreds of them and a run has many rows.

use std::collections::HashMap;
use std::fmt::Display;
use std::fmt::Write as _;

use serde::ser::{Impossible, SerializeSeq, SerializeStruct, Serializer};
use serde::{Serialize, ser};

/// A field of a row, not yet quoted.
pub(super) type CsvField = String;

/// An unknown number among several in one field.
pub(super) const UNKNOWN: &str = "?";

/// The columns of a structure, in the order of their names.
pub(super) struct Columns {
    names: Vec<String>,
    index_of: HashMap<String, usize>,
    /// The field that has columns of its own elsewhere.
    left_out: &'static str,
}

impl Columns {
    /// Columns of `whole`, a value with all optional parts present.
    pub(super) fn of(whole: &impl Serialize, left_out: &'static str) -> Self {
        let mut row =
            Row { columns: None, names: Vec::new(), fields: Vec::new(), left_out, name: String::new() };
        whole.serialize(FieldPlace::top(&mut row)).expect("a structure of numbers and texts");
        let mut names = row.names;
        names.sort_unstable();
        names.dedup();
        let index_of = names.iter().enumerate().map(|(index, name)| (name.clone(), index)).collect();
        Self { names, index_of, left_out }
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The fields of a value, one for each column.
    pub(super) fn fields(&self, value: &impl Serialize) -> Vec<CsvField> {
        let fields = vec![CsvField::new(); self.names.len()];
        let (columns, left_out) = (Some(&self.index_of), self.left_out);
        let mut row = Row { columns, names: Vec::new(), fields, left_out, name: String::new() };
        value.serialize(FieldPlace::top(&mut row)).expect("a structure of numbers and texts");
        row.fields
    }
}

/// The fields being filled; without columns, the names being collected.
struct Row<'a> {
    columns: Option<&'a HashMap<String, usize>>,
    names: Vec<String>,
    fields: Vec<CsvField>,
    left_out: &'static str,
    /// The current column.
    name: String,
}

impl Row<'_> {
    fn put(&mut self, prefix: &str, key: &str, is_listed: bool, text: Option<&dyn Display>) {
        self.name.clear();
        self.name.push_str(prefix);
        self.name.push_str(key);
        let Some(columns) = self.columns else { return self.names.push(self.name.clone()) };
        let index = *columns.get(&self.name).unwrap_or_else(|| panic!("{} has no column", self.name));
        let field = &mut self.fields[index];
        if is_listed && !field.is_empty() {
            field.push(' ');
        }
        match text {
            Some(text) => write!(field, "{text}").expect("a string takes all"),
            None if is_listed => field.push_str(UNKNOWN),
            None => {}
        }
    }
}

/// Position of a value: a field of the structure or of a part of it.
struct FieldPlace<'a, 'b> {
    row: &'a mut Row<'b>,
    prefix: &'a str,
    key: &'a str,
    /// True if it belongs to a member of a list.
    is_listed: bool,
    /// True if it is itself such a member.
    is_member: bool,
}

impl<'a, 'b> FieldPlace<'a, 'b> {
    fn top(row: &'a mut Row<'b>) -> Self {
        Self { row, prefix: "", key: "", is_listed: false, is_member: false }
    }

    fn put(self, text: Option<&dyn Display>) -> Result<(), Wrong> {
        // A list of plain values is not a list of parts, and has no column.
        if !self.is_member {
            self.row.put(self.prefix, self.key, self.is_listed, text);
        }
        Ok(())
    }

    fn part(self) -> Nested<'a, 'b> {
        let prefix = match (self.key, self.is_member) {
            ("", _) => String::new(),
            (key, true) => format!("{}_", key.trim_end_matches('s')),
            (key, false) => format!("{key}_"),
        };
        Nested { row: self.row, prefix, is_listed: self.is_listed }
    }
}

/// A structure within it.
struct Nested<'a, 'b> {
    row: &'a mut Row<'b>,
    prefix: String,
    is_listed: bool,
}

impl SerializeStruct for Nested<'_, '_> {
    type Ok = ();
    type Error = Wrong;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Wrong> {
        if self.prefix.is_empty() && key == self.row.left_out {
            return Ok(());
        }
        let (prefix, is_listed) = (self.prefix.as_str(), self.is_listed);
        value.serialize(FieldPlace { row: self.row, prefix, key, is_listed, is_member: false })
    }

    fn end(self) -> Result<(), Wrong> {
        Ok(())
    }
}

/// A list within it.
struct List<'a, 'b> {
    row: &'a mut Row<'b>,
    key: &'a str,
}

impl SerializeSeq for List<'_, '_> {
    type Ok = ();
    type Error = Wrong;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Wrong> {
        value.serialize(FieldPlace {
            row: self.row,
            prefix: "",
            key: self.key,
            is_listed: true,
            is_member: true,
        })
    }

    fn end(self) -> Result<(), Wrong> {
        Ok(())
    }
}

/// A kind of value that does not occur in evidence.
#[derive(Debug)]
struct Wrong(String);

impl Display for Wrong {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

impl ser::Error for Wrong {
    fn custom<T: Display>(reason: T) -> Self {
        Self(reason.to_string())
    }
}

fn wrong<T>(kind: &str) -> Result<T, Wrong> {
    Err(Wrong(format!("{kind} is not supported in a row")))
}

/// Numbers and words as written.
macro_rules! plain {
    ($($method:ident: $type:ty,)+) => {
        $(fn $method(self, value: $type) -> Result<(), Wrong> {
            self.put(Some(&value))
        })+
    };
}

impl<'a, 'b> Serializer for FieldPlace<'a, 'b> {
    type Ok = ();
    type Error = Wrong;
    type SerializeSeq = List<'a, 'b>;
    type SerializeStruct = Nested<'a, 'b>;
    type SerializeTuple = Impossible<(), Wrong>;
    type SerializeTupleStruct = Impossible<(), Wrong>;
    type SerializeTupleVariant = Impossible<(), Wrong>;
    type SerializeMap = Impossible<(), Wrong>;
    type SerializeStructVariant = Impossible<(), Wrong>;

    plain! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
        serialize_str: &str,
    }

    fn serialize_none(self) -> Result<(), Wrong> {
        self.put(None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Wrong> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Wrong> {
        self.put(None)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Wrong> {
        self.put(Some(&variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Wrong> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<List<'a, 'b>, Wrong> {
        Ok(List { row: self.row, key: self.key })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Nested<'a, 'b>, Wrong> {
        Ok(self.part())
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), Wrong> {
        wrong("bytes")
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<(), Wrong> {
        wrong(name)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Wrong> {
        wrong(name)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Wrong> {
        wrong("a tuple")
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Wrong> {
        wrong(name)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Wrong> {
        wrong(name)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Wrong> {
        wrong("a map")
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Wrong> {
        wrong(name)
    }
}
