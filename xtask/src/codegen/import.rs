//! Takes the facts out of Kafka's JSON schemas, found as resources in its jars, and leaves the
//! prose behind. Used when a Kafka version is taken up, never by an ordinary build.

use super::schema::{Field, Kind, Message, Nullable, Range, Struct, Type};
use super::text::{parse_range, parse_type};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Data schemas that a broker or a client needs beside requests and records.
const DATA: [&str; 5] = [
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "ControlRecordTypeSchema",
    "EndTxnMarker",
    "DefaultPrincipalData",
];

/// Every message of these jars that a broker answers or stores.
pub fn import(jars: &[PathBuf]) -> Result<Vec<Message>, String> {
    let mut values = Vec::new();
    for (index, jar) in jars.iter().enumerate() {
        let folder = std::env::temp_dir().join(format!("schemas-{}-{index}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let found = unpack(jar, &folder).and_then(|()| read_all(&folder.join("common/message")));
        let _ = std::fs::remove_dir_all(&folder);
        values.extend(found?);
    }
    let served: Vec<i64> = values
        .iter()
        .filter(|value| value["type"] == "request" && listens_as_broker(value))
        .filter_map(|value| value["apiKey"].as_i64())
        .collect();
    values.iter().filter(|value| wanted(value, &served)).map(message).collect()
}

fn unpack(jar: &Path, folder: &Path) -> Result<(), String> {
    let jar = std::path::absolute(jar).map_err(|error| error.to_string())?;
    let status = Command::new("jar")
        .arg("xf")
        .arg(&jar)
        .arg("common/message")
        .current_dir(folder)
        .status()
        .map_err(|error| format!("cannot run the JDK's `jar`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cannot unpack {}", jar.display())) }
}

fn read_all(folder: &Path) -> Result<Vec<Value>, String> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| format!("no schemas in {}: {error}", folder.display()))?;
    let mut values = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let json: String = text.lines().map(without_remark).collect::<Vec<_>>().join("\n");
        let value = serde_json::from_str(&json);
        values.push(value.map_err(|error| format!("{}: {error}", path.display()))?);
    }
    Ok(values)
}

/// The line up to a `//` that is not inside a string.
fn without_remark(line: &str) -> &str {
    let mut quoted = false;
    let bytes = line.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' if at == 0 || bytes[at - 1] != b'\\' => quoted = !quoted,
            b'/' if !quoted && bytes.get(at + 1) == Some(&b'/') => return &line[..at],
            _ => {}
        }
    }
    line
}

fn listens_as_broker(value: &Value) -> bool {
    let listeners = value["listeners"].as_array();
    listeners.is_some_and(|listeners| listeners.iter().any(|listener| listener == "broker"))
}

fn wanted(value: &Value, served: &[i64]) -> bool {
    if value["validVersions"] == "none" {
        return false;
    }
    let name = value["name"].as_str().unwrap_or_default();
    match value["type"].as_str() {
        Some("request" | "response") => {
            value["apiKey"].as_i64().is_some_and(|key| served.contains(&key))
        }
        Some("data") => DATA.contains(&name),
        _ => true,
    }
}

fn message(value: &Value) -> Result<Message, String> {
    let name = text(value, "name")?;
    let versions = parse_range(&text(value, "validVersions")?)?;
    let flexible = match value["flexibleVersions"].as_str() {
        None | Some("none") => None,
        Some(range) => Some(parse_range(range)?.min),
    };
    let mut structs = Vec::new();
    for shared in value["commonStructs"].as_array().into_iter().flatten() {
        let fields = fields(shared, versions).map_err(|problem| format!("{name}: {problem}"))?;
        structs.push(Struct { name: text(shared, "name")?, fields });
    }
    Ok(Message {
        kind: kind(&text(value, "type")?)?,
        key: value["apiKey"].as_i64().and_then(|key| i16::try_from(key).ok()),
        versions,
        flexible: flexible.filter(|first| versions.max.is_none_or(|max| *first <= max)),
        unstable: value["latestVersionUnstable"].as_bool().unwrap_or(false),
        fields: fields(value, versions).map_err(|problem| format!("{name}: {problem}"))?,
        structs,
        name,
    })
}

fn kind(word: &str) -> Result<Kind, String> {
    Ok(match word {
        "request" => Kind::Request,
        "response" => Kind::Response,
        "header" => Kind::Header,
        "data" => Kind::Data,
        "coordinator-key" => Kind::RecordKey,
        "coordinator-value" => Kind::RecordValue,
        _ => return Err(format!("unknown kind of message `{word}`")),
    })
}

fn fields(parent: &Value, within: Range) -> Result<Vec<Field>, String> {
    let mut found = Vec::new();
    for value in parent["fields"].as_array().into_iter().flatten() {
        found.extend(field(value, within)?);
    }
    Ok(found)
}

/// The field, unless no version of its parent carries it.
fn field(value: &Value, within: Range) -> Result<Option<Field>, String> {
    let name = text(value, "name")?;
    let tagged = value["taggedVersions"].as_str();
    let versions = value["versions"].as_str().or(tagged).ok_or("a field without versions")?;
    if tagged.is_some_and(|tagged| tagged != versions) {
        return Err(format!("{name} is tagged in only some of its versions"));
    }
    let Some(present) = parse_range(versions)?.intersect(within) else { return Ok(None) };
    let nullable = match value["nullableVersions"].as_str() {
        None => Nullable::Never,
        Some(range) => match parse_range(range)?.intersect(present) {
            None => Nullable::Never,
            Some(range) if range == present => Nullable::Always,
            Some(range) => Nullable::In(open(range, within)),
        },
    };
    let ty = parse_type(&text(value, "type")?);
    Ok(Some(Field {
        name,
        nullable,
        default: default(&value["default"], &ty)?,
        ty,
        versions: (present != within).then(|| open(present, within)),
        tag: value["tag"].as_u64().and_then(|tag| u32::try_from(tag).ok()),
        ignorable: value["ignorable"].as_bool().unwrap_or(false),
        map_key: value["mapKey"].as_bool().unwrap_or(false),
        inflexible: value["flexibleVersions"] == "none",
        fields: fields(value, present)?,
    }))
}

/// A range that reaches its parent's end stays open, so that a new version needs no edit.
fn open(range: Range, within: Range) -> Range {
    Range { min: range.min, max: range.max.filter(|_| range.max != within.max) }
}

/// The default, unless it is the type's own zero. The word "null" is one; JSON's null is none.
fn default(value: &Value, ty: &Type) -> Result<Option<String>, String> {
    let word = match value {
        Value::Null => return Ok(None),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(word) => word.clone(),
        _ => return Err(format!("odd default `{value}`")),
    };
    let zero = match ty {
        Type::Bool => "false",
        Type::String => "",
        Type::Int8 | Type::Int16 | Type::Uint16 | Type::Int32 | Type::Int64 => "0",
        _ => "none",
    };
    if let Some(hexadecimal) = word.strip_prefix("0x") {
        let number = i64::from_str_radix(hexadecimal, 16).map_err(|error| error.to_string())?;
        return Ok(Some(number.to_string()));
    }
    Ok(Some(word).filter(|word| word != zero))
}

fn text(value: &Value, name: &str) -> Result<String, String> {
    let found = value[name].as_str().ok_or_else(|| format!("no `{name}` in {value}"))?;
    Ok(found.to_string())
}
