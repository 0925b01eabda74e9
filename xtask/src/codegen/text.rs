//! The line language of `crates/wire/schema/`: printing and reading it. The language itself is
//! described in `crates/wire/schema/README.md`.

use super::schema::{Field, Kind, Message, Nullable, Range, Struct, Type};
use std::fmt::Write;

const INDENT: usize = 2;

/// The text of a message.
pub fn print(message: &Message) -> String {
    let mut out = String::from(kind_word(message.kind));
    if let Some(key) = message.key {
        let _ = write!(out, " {key}");
    }
    let versions = range_text(message.versions);
    let _ = write!(out, " {} {versions}", message.name);
    if let Some(flexible) = message.flexible {
        let _ = write!(out, " flexible {flexible}+");
    }
    out.push_str(if message.unstable { " unstable\n" } else { "\n" });
    print_fields(&mut out, &message.fields, INDENT);
    for shared in &message.structs {
        let _ = writeln!(out, "struct {}", shared.name);
        print_fields(&mut out, &shared.fields, INDENT);
    }
    out
}

/// The message of a text; the error names the line.
pub fn parse(text: &str) -> Result<Message, String> {
    let lines: Vec<Line> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .map(|(index, line)| Line::new(index + 1, line))
        .collect();
    let (first, mut rest) = lines.split_first().ok_or("an empty schema")?;
    let mut message = first.message().map_err(|problem| first.at(&problem))?;
    message.fields = fields(&mut rest, INDENT)?;
    while let Some((head, tail)) = rest.split_first() {
        let name = head.text.strip_prefix("struct ").ok_or_else(|| head.at("expected a struct"))?;
        rest = tail;
        let fields = fields(&mut rest, INDENT)?;
        message.structs.push(Struct { name: name.trim().to_string(), fields });
    }
    Ok(message)
}

/// A range as `3`, `3-5` or `3+`.
pub fn range_text(range: Range) -> String {
    match range.max {
        None => format!("{}+", range.min),
        Some(max) if max == range.min => max.to_string(),
        Some(max) => format!("{}-{max}", range.min),
    }
}

/// Reads `3`, `3-5` or `3+`.
pub fn parse_range(text: &str) -> Result<Range, String> {
    let number = |part: &str| part.parse::<i16>().map_err(|_| format!("bad range `{text}`"));
    if let Some(min) = text.strip_suffix('+') {
        return Ok(Range { min: number(min)?, max: None });
    }
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    Ok(Range { min: number(min)?, max: Some(number(max)?) })
}

/// Reads a type word such as `int32`, `[]string` or a struct's name.
pub fn parse_type(text: &str) -> Type {
    if let Some(element) = text.strip_prefix("[]") {
        return Type::Array(Box::new(parse_type(element)));
    }
    match text {
        "bool" => Type::Bool,
        "int8" => Type::Int8,
        "int16" => Type::Int16,
        "uint16" => Type::Uint16,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "float64" => Type::Float64,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "records" => Type::Records,
        "uuid" => Type::Uuid,
        name => Type::Struct(name.to_string()),
    }
}

/// The word of a type.
pub fn type_text(ty: &Type) -> String {
    match ty {
        Type::Bool => "bool".into(),
        Type::Int8 => "int8".into(),
        Type::Int16 => "int16".into(),
        Type::Uint16 => "uint16".into(),
        Type::Int32 => "int32".into(),
        Type::Int64 => "int64".into(),
        Type::Float64 => "float64".into(),
        Type::String => "string".into(),
        Type::Bytes => "bytes".into(),
        Type::Records => "records".into(),
        Type::Uuid => "uuid".into(),
        Type::Array(element) => format!("[]{}", type_text(element)),
        Type::Struct(name) => name.clone(),
    }
}

fn print_fields(out: &mut String, fields: &[Field], indent: usize) {
    for field in fields {
        let null = if field.nullable == Nullable::Always { "?" } else { "" };
        let _ = write!(out, "{:indent$}{} {null}{}", "", field.name, type_text(&field.ty));
        if let Some(versions) = field.versions {
            let _ = write!(out, " {}", range_text(versions));
        }
        if let Nullable::In(range) = field.nullable {
            let _ = write!(out, " null {}", range_text(range));
        }
        if let Some(tag) = field.tag {
            let _ = write!(out, " tag {tag}");
        }
        for (set, word) in [
            (field.ignorable, " ignorable"),
            (field.map_key, " key"),
            (field.inflexible, " inflexible"),
        ] {
            out.push_str(if set { word } else { "" });
        }
        if let Some(default) = &field.default {
            let _ = write!(out, " = {default}");
        }
        out.push('\n');
        print_fields(out, &field.fields, indent + INDENT);
    }
}

/// One line of a schema that is neither blank nor a remark.
struct Line<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn new(number: usize, line: &'a str) -> Self {
        let text = line.trim_start();
        Self { number, indent: line.len() - text.len(), text: text.trim_end() }
    }

    fn at(&self, problem: &str) -> String {
        format!("line {}: {problem}: `{}`", self.number, self.text)
    }

    fn message(&self) -> Result<Message, String> {
        let mut words = self.text.split(' ').peekable();
        let kind = parse_kind(words.next().unwrap_or_default())?;
        let key = words.peek().and_then(|word| word.parse().ok());
        if key.is_some() {
            words.next();
        }
        let name = words.next().ok_or("no name")?.to_string();
        let versions = parse_range(words.next().ok_or("no versions")?)?;
        let mut message = Message {
            kind,
            key,
            name,
            versions,
            flexible: None,
            unstable: false,
            fields: Vec::new(),
            structs: Vec::new(),
        };
        while let Some(word) = words.next() {
            match word {
                "flexible" => {
                    message.flexible = Some(parse_range(words.next().unwrap_or_default())?.min);
                }
                "unstable" => message.unstable = true,
                _ => return Err(format!("unknown word `{word}`")),
            }
        }
        Ok(message)
    }

    fn field(&self) -> Result<Field, String> {
        let (head, default) = match self.text.split_once(" = ") {
            Some((head, default)) => (head, Some(default.to_string())),
            None => (self.text, None),
        };
        let mut words = head.split(' ').peekable();
        let name = words.next().unwrap_or_default().to_string();
        let ty = words.next().ok_or("no type")?;
        let (nullable, ty) = match ty.strip_prefix('?') {
            Some(ty) => (Nullable::Always, parse_type(ty)),
            None => (Nullable::Never, parse_type(ty)),
        };
        let versions = words.peek().and_then(|word| parse_range(word).ok());
        if versions.is_some() {
            words.next();
        }
        let mut field = Field {
            name,
            ty,
            versions,
            nullable,
            default,
            tag: None,
            ignorable: false,
            map_key: false,
            inflexible: false,
            fields: Vec::new(),
        };
        while let Some(word) = words.next() {
            let mut next = || words.next().ok_or_else(|| format!("nothing after `{word}`"));
            match word {
                "null" => field.nullable = Nullable::In(parse_range(next()?)?),
                "tag" => field.tag = Some(next()?.parse().map_err(|_| "bad tag")?),
                "ignorable" => field.ignorable = true,
                "key" => field.map_key = true,
                "inflexible" => field.inflexible = true,
                _ => return Err(format!("unknown word `{word}`")),
            }
        }
        Ok(field)
    }
}

fn fields(lines: &mut &[Line<'_>], indent: usize) -> Result<Vec<Field>, String> {
    let mut found = Vec::new();
    while let Some((line, rest)) = lines.split_first() {
        if line.indent < indent {
            break;
        }
        if line.indent > indent {
            return Err(line.at("indented too far"));
        }
        let mut field = line.field().map_err(|problem| line.at(&problem))?;
        *lines = rest;
        field.fields = fields(lines, indent + INDENT)?;
        found.push(field);
    }
    Ok(found)
}

const KINDS: [(Kind, &str); 6] = [
    (Kind::Request, "request"),
    (Kind::Response, "response"),
    (Kind::Header, "header"),
    (Kind::Data, "data"),
    (Kind::RecordKey, "record-key"),
    (Kind::RecordValue, "record-value"),
];

fn kind_word(kind: Kind) -> &'static str {
    KINDS.iter().find(|(of, _)| *of == kind).map_or("data", |(_, word)| word)
}

fn parse_kind(word: &str) -> Result<Kind, String> {
    let kind = KINDS.iter().find(|(_, of)| *of == word).map(|(kind, _)| *kind);
    kind.ok_or_else(|| format!("unknown kind `{word}`"))
}
