//! What a message schema says, as values. It knows neither the line language, nor Kafka's JSON, nor
//! Rust: `text` reads and prints these values, `import` makes them, `emit` turns them into code.

/// Deepest nesting of structs a schema may have. No input can nest deeper than its schema.
pub const NESTING_MAX: usize = 8;

/// One message: a request, a response, a record, or a piece of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub kind: Kind,
    /// API key of a request or response, record type of a coordinator record.
    pub key: Option<i16>,
    pub name: String,
    pub versions: Range,
    /// First version in compact form with tagged fields, if any.
    pub flexible: Option<i16>,
    /// The highest version is not final; a broker does not answer it.
    pub unstable: bool,
    pub fields: Vec<Field>,
    /// Structs that several fields share.
    pub structs: Vec<Struct>,
}

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Request,
    Response,
    Header,
    Data,
    RecordKey,
    RecordValue,
}

/// A named group of fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Struct {
    pub name: String,
    pub fields: Vec<Field>,
}

/// One field of a message or struct.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub ty: Type,
    /// Versions that carry it; `None` means all of its parent's.
    pub versions: Option<Range>,
    pub nullable: Nullable,
    pub default: Option<String>,
    pub tag: Option<u32>,
    /// A version without this field may drop its value silently.
    pub ignorable: bool,
    /// Names its entry among the entries of the array.
    pub map_key: bool,
    /// Written in the old form even in flexible versions.
    pub inflexible: bool,
    /// The fields of the struct this field's type defines on the spot.
    pub fields: Vec<Field>,
}

/// In which of its versions a field may be null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nullable {
    Never,
    Always,
    In(Range),
}

/// A field's type.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Int64,
    Float64,
    String,
    Bytes,
    Records,
    Uuid,
    Array(Box<Type>),
    Struct(String),
}

/// Versions from `min` to `max`, both included; without a `max`, all later ones too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub min: i16,
    pub max: Option<i16>,
}

impl Message {
    /// The struct of this name, defined on the spot or shared.
    pub fn fields_of(&self, name: &str) -> Option<&[Field]> {
        let shared = self.structs.iter().find(|shared| shared.name == name);
        shared
            .map(|shared| &*shared.fields)
            .or_else(|| find_struct(&self.fields, name))
            .or_else(|| self.structs.iter().find_map(|shared| find_struct(&shared.fields, name)))
    }

    /// The last version, which a message always has.
    pub fn version_max(&self) -> i16 {
        self.versions.max.unwrap_or(self.versions.min)
    }
}

impl Type {
    /// The struct this type is or holds.
    pub fn struct_name(&self) -> Option<&str> {
        match self {
            Self::Struct(name) => Some(name),
            Self::Array(element) => element.struct_name(),
            _ => None,
        }
    }
}

impl Range {
    /// Whether it contains `version`.
    pub fn contains(self, version: i16) -> bool {
        self.min <= version && self.max.is_none_or(|max| version <= max)
    }

    /// The smallest range that contains both.
    pub fn cover(self, other: Self) -> Self {
        let max = self.max.zip(other.max).map(|(a, b)| a.max(b));
        Self { min: self.min.min(other.min), max }
    }

    /// What both contain, or `None` if that is nothing.
    pub fn intersect(self, other: Self) -> Option<Self> {
        let max = match (self.max, other.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let min = self.min.max(other.min);
        max.is_none_or(|max| min <= max).then_some(Self { min, max })
    }
}

fn find_struct<'a>(fields: &'a [Field], name: &str) -> Option<&'a [Field]> {
    fields.iter().find_map(|field| {
        let own = field.ty.struct_name() == Some(name) && !field.fields.is_empty();
        if own { Some(&*field.fields) } else { find_struct(&field.fields, name) }
    })
}
