//! The body of `read`.

use super::fields::{base_type, method, min_size, number, rust_name};
use super::{Struct, mentions};
use crate::codegen::schema::{Field, Nullable, Type};
use std::fmt::Write;

/// The body of `read` for one struct, which starts out as its default.
pub fn body(part: &Struct<'_>) -> Result<String, String> {
    let mut out = String::new();
    for field in part.untagged() {
        let statement = statement(part, field)?;
        let _ = match part.condition(field.versions) {
            None => writeln!(out, "{statement};"),
            Some(condition) => writeln!(out, "if {condition} {{ {statement}; }}"),
        };
    }
    out.push_str(&tags(part)?);
    out.push_str("Ok(())");
    if mentions(&out, "flexible") {
        out.insert_str(0, &format!("let flexible = {};\n", part.flexible()));
    }
    Ok(out)
}

/// Reads the tagged fields, in the versions that have any.
fn tags(part: &Struct<'_>) -> Result<String, String> {
    if part.message.flexible.is_none() {
        return Ok(String::new());
    }
    let mut arms = String::new();
    for (field, tag) in part.tagged() {
        let guard = part.condition(field.versions).map(|condition| format!(" if {condition}"));
        let statement = statement(part, field)?;
        let _ = writeln!(arms, "{tag}{} => {statement},", guard.unwrap_or_default());
    }
    let read = if arms.is_empty() {
        format!("reader.skip_tags(\"{}\")?;", part.name)
    } else {
        format!(
            "reader.tags(\"{}\", |reader, tag| {{ match tag {{ {arms} _ => return Ok(false), }}\n\
             Ok(true) }})?;",
            part.name
        )
    };
    Ok(match part.flexible().as_str() {
        "true" => read,
        _ => format!("if flexible {{ {read} }}"),
    })
}

/// A statement, without its semicolon, that reads the field into its place.
fn statement(part: &Struct<'_>, field: &Field) -> Result<String, String> {
    let place = format!("self.{}", rust_name(&field.name));
    let condition = match field.nullable {
        Nullable::Never => return into(part, field, "", &place),
        Nullable::Always => None,
        Nullable::In(range) => part.condition(Some(range)),
    };
    let nullable = into(part, field, "nullable_", &place)?;
    let Some(condition) = condition else { return Ok(nullable) };
    let plain = into(part, field, "", "value")?;
    let ty = base_type(part.message, &field.ty);
    let plain =
        format!("let mut value: {ty} = Default::default(); {plain}; {place} = Some(value);");
    Ok(format!("if {condition} {{ {nullable}; }} else {{ {plain} }}"))
}

/// Reads the field, null allowed or not, into this place.
fn into(part: &Struct<'_>, field: &Field, null: &str, place: &str) -> Result<String, String> {
    let label = part.label(field);
    let flexible = if field.inflexible { "false" } else { "flexible" };
    let method = method(&field.ty);
    Ok(match &field.ty {
        Type::String | Type::Bytes | Type::Records => {
            format!("reader.{null}{method}({flexible}, {label}, &mut {place})?")
        }
        Type::Array(element) => array(part, field, element, null, place)?,
        Type::Struct(_) if null.is_empty() => format!("{place}.read(reader, version)?"),
        Type::Struct(name) => {
            let present = if field.tag.is_some() { "tag_present" } else { "present" };
            format!(
                "{place} = if reader.{present}({label})? {{ let mut value = {name}::default(); \
                 value.read(reader, version)?; Some(value) }} else {{ None }}"
            )
        }
        _ => format!("{place} = reader.{method}({label})?"),
    })
}

fn array(
    part: &Struct<'_>,
    field: &Field,
    element: &Type,
    null: &str,
    place: &str,
) -> Result<String, String> {
    let label = part.label(field);
    if let Some(number) = number(element) {
        let from = format!("{number}::from_be_bytes");
        return Ok(format!("reader.{null}numbers(flexible, {label}, &mut {place}, {from})?"));
    }
    let within = field.versions.and_then(|range| range.intersect(part.within));
    let within = within.unwrap_or(part.within);
    let last = within.max.unwrap_or(part.message.version_max()).min(part.message.version_max());
    let min = min_size(part.message, element, within.min..=last);
    if min == 0 {
        return Err(format!("an element of {label} may take no bytes at all"));
    }
    let read = match element {
        Type::Struct(_) => "element.read(reader, version)".to_string(),
        Type::String => format!("reader.string(flexible, {label}, element)"),
        _ => return Err(format!("{label} is an array of a type that has none yet")),
    };
    Ok(format!(
        "reader.{null}array(flexible, {min}, {label}, &mut {place}, |reader, element| {read})?"
    ))
}
