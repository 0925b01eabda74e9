//! Makes bytes of any message and version straight from its schema, without the generated code: an
//! interpreter of the schema language that writes random values in canonical form.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

#[path = "../../../../xtask/src/codegen/schema.rs"]
pub mod schema;
#[path = "../../../../xtask/src/codegen/text.rs"]
mod text;

use schema::{Field, Message, Nullable, Type};
use std::path::Path;

/// A small seeded generator (SplitMix64): the same seed gives the same bytes for ever.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Every schema of the crate, by name.
pub fn schemas() -> Vec<Message> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
    let mut found: Vec<Message> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .map(|path| text::parse(&std::fs::read_to_string(path).unwrap()).unwrap())
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// The schema of this name.
pub fn schema(name: &str) -> Message {
    schemas().into_iter().find(|message| message.name == name).unwrap()
}

/// Bytes of a random value of the message, as an encoder that follows the protocol writes it.
pub fn sample(message: &Message, version: i16, random: &mut Random) -> Vec<u8> {
    let flexible = message.flexible.is_some_and(|first| version >= first);
    let mut sampler = Sampler { message, version, flexible, random };
    let mut out = Vec::new();
    sampler.fields(&message.fields, &mut out);
    out
}

struct Sampler<'a> {
    message: &'a Message,
    version: i16,
    flexible: bool,
    random: &'a mut Random,
}

impl Sampler<'_> {
    fn fields(&mut self, fields: &[Field], out: &mut Vec<u8>) {
        let carries =
            |field: &&Field| field.versions.is_none_or(|versions| versions.contains(self.version));
        let carried: Vec<&Field> = fields.iter().filter(carries).collect();
        for field in carried.iter().filter(|field| field.tag.is_none()) {
            self.field(field, out);
        }
        if !self.flexible {
            return;
        }
        let mut tagged = Vec::new();
        for field in carried.iter().filter(|field| field.tag.is_some()) {
            let mut content = Vec::new();
            self.field(field, &mut content);
            if !self.random.one_in(3) && content != self.default(field) {
                tagged.push((field.tag.unwrap(), content));
            }
        }
        tagged.sort();
        varint(out, tagged.len());
        for (tag, content) in tagged {
            varint(out, tag as usize);
            varint(out, content.len());
            out.extend(content);
        }
    }

    fn field(&mut self, field: &Field, out: &mut Vec<u8>) {
        let nullable = match field.nullable {
            Nullable::Never => false,
            Nullable::Always => true,
            Nullable::In(range) => range.contains(self.version),
        };
        let null = nullable && self.random.one_in(3);
        let flexible = self.flexible && !field.inflexible;
        match &field.ty {
            Type::Struct(name) => {
                if nullable {
                    out.push(if null { 0xff } else { 1 });
                }
                if !null {
                    let fields = self.message.fields_of(name).unwrap();
                    self.fields(fields, out);
                }
            }
            ty if null => self.length(ty, flexible, None, out),
            ty => self.value(ty, flexible, out),
        }
    }

    /// The canonical bytes of a tagged field's default.
    fn default(&mut self, field: &Field) -> Vec<u8> {
        let mut out = Vec::new();
        let nullable = field.nullable != Nullable::Never;
        let null = field.default.as_deref() == Some("null");
        let number = field.default.as_deref().and_then(|text| text.parse::<i64>().ok());
        let number = number.unwrap_or_default();
        match &field.ty {
            Type::Struct(_) if null => out.push(0xff),
            ty if null => self.length(ty, true, None, &mut out),
            Type::Struct(name) => {
                if nullable {
                    out.push(1);
                }
                let fields = self.message.fields_of(name).unwrap();
                for field in fields {
                    out.extend(self.default(field));
                }
                out.push(0);
            }
            Type::Bool => out.push((field.default.as_deref() == Some("true")).into()),
            Type::Int8 => out.extend((number as i8).to_be_bytes()),
            Type::Int16 => out.extend((number as i16).to_be_bytes()),
            Type::Uint16 => out.extend((number as u16).to_be_bytes()),
            Type::Int32 => out.extend((number as i32).to_be_bytes()),
            Type::Int64 => out.extend(number.to_be_bytes()),
            Type::Uuid => out.extend([0; 16]),
            ty => self.length(ty, true, Some(0), &mut out),
        }
        out
    }

    fn value(&mut self, ty: &Type, flexible: bool, out: &mut Vec<u8>) {
        match ty {
            Type::Bool => out.push((self.random.next() & 1) as u8),
            Type::Int8 => self.bytes(1, out),
            Type::Int16 | Type::Uint16 => self.bytes(2, out),
            Type::Int32 => self.bytes(4, out),
            Type::Int64 => self.bytes(8, out),
            Type::Uuid => self.bytes(16, out),
            Type::Float64 => {
                let number = (self.random.next() as i32) as f64 / 8.0;
                out.extend(number.to_be_bytes());
            }
            Type::String => {
                let text = self.text();
                self.length(ty, flexible, Some(text.len()), out);
                out.extend(text.as_bytes());
            }
            Type::Bytes | Type::Records => {
                let len = self.len();
                self.length(ty, flexible, Some(len), out);
                self.bytes(len, out);
            }
            Type::Array(element) => {
                let count = self.random.below(4);
                self.length(ty, flexible, Some(count), out);
                for _ in 0..count {
                    self.value(element, flexible, out);
                }
            }
            Type::Struct(name) => {
                let fields = self.message.fields_of(name).unwrap();
                self.fields(fields, out);
            }
        }
    }

    /// Mostly small numbers, zero among them, so that defaults are met too.
    fn bytes(&mut self, count: usize, out: &mut Vec<u8>) {
        let zero = self.random.one_in(4);
        out.extend((0..count).map(|_| if zero { 0 } else { self.random.next() as u8 }));
    }

    /// Short mostly; sometimes long enough for a two-byte compact length.
    fn len(&mut self) -> usize {
        if self.random.one_in(12) { 120 + self.random.below(20) } else { self.random.below(9) }
    }

    fn text(&mut self) -> String {
        let len = self.len();
        (0..len).map(|_| ['a', 'Z', '0', '.', '-', 'ß', '語', '🦦'][self.random.below(8)]).collect()
    }

    fn length(&self, ty: &Type, flexible: bool, length: Option<usize>, out: &mut Vec<u8>) {
        match (flexible, ty) {
            (true, _) => varint(out, length.map_or(0, |length| length + 1)),
            (false, Type::String) => {
                out.extend(length.map_or(-1, |length| length as i16).to_be_bytes());
            }
            (false, _) => out.extend(length.map_or(-1, |length| length as i32).to_be_bytes()),
        }
    }
}

fn varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hexadecimal digits.
pub fn unhex(digits: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(digit).collect()
}
