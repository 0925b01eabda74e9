//! The body of `read`.

use super::fields::{default_expression, is_nullable, method, min_size, rust_name, rust_type};
use super::{Struct, mentions};
use crate::codegen::schema::{Field, Nullable, Type};
use std::fmt::Write;

/// The body of `read` for one struct.
pub fn body(part: &Struct<'_>) -> Result<String, String> {
    let mut out = String::new();
    for field in part.untagged() {
        let value = value(part, field)?;
        let name = local_name(field);
        let _ = match part.condition(field.versions) {
            None => writeln!(out, "let {name} = {value};"),
            Some(condition) => {
                let default = default_expression(field);
                writeln!(out, "let {name} = if {condition} {{ {value} }} else {{ {default} }};")
            }
        };
    }
    out.push_str(&tags(part)?);
    let names: Vec<String> = part.fields.iter().map(initializer).collect();
    let _ = write!(out, "Ok(Self {{ {} }})", names.join(", "));
    if mentions(&out, "flexible") {
        out.insert_str(0, &format!("let flexible = {};\n", part.flexible()));
    }
    Ok(out)
}

/// The variable that holds a field; a few names are taken.
fn local_name(field: &Field) -> String {
    match rust_name(&field.name).as_str() {
        taken @ ("version" | "reader" | "flexible" | "tag") => format!("{taken}_field"),
        name => name.into(),
    }
}

fn initializer(field: &Field) -> String {
    let (name, local) = (rust_name(&field.name), local_name(field));
    if name == local { name } else { format!("{name}: {local}") }
}

/// Reads the tagged fields, in the versions that have any.
fn tags(part: &Struct<'_>) -> Result<String, String> {
    if part.message.flexible.is_none() {
        return Ok(String::new());
    }
    let mut out = String::new();
    let mut arms = String::new();
    for (field, tag) in part.tagged() {
        let name = local_name(field);
        let ty = rust_type(part.message, field);
        let _ = writeln!(out, "let mut {name}: {ty} = {};", default_expression(field));
        let guard = part.condition(field.versions).map(|condition| format!(" if {condition}"));
        let value = value(part, field)?;
        let _ = writeln!(arms, "{tag}{} => {name} = {value},", guard.unwrap_or_default());
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
    let _ = match part.flexible().as_str() {
        "true" => write!(out, "{read}"),
        _ => write!(out, "if flexible {{ {read} }}"),
    };
    Ok(out)
}

/// An expression that reads the field, errors included.
fn value(part: &Struct<'_>, field: &Field) -> Result<String, String> {
    let label = part.label(field);
    let flexible = if field.inflexible { "false" } else { "flexible" };
    let null = if is_nullable(field) { "nullable_" } else { "" };
    let value = |null: &str| -> Result<String, String> {
        Ok(match &field.ty {
            Type::String | Type::Bytes | Type::Records => {
                format!("reader.{null}{}({flexible}, {label})?", method(&field.ty))
            }
            Type::Array(element) => array(part, field, element, null)?,
            Type::Struct(name) if null.is_empty() => format!("{name}::read(reader, version)?"),
            Type::Struct(name) => format!(
                "if reader.present({label})? {{ Some({name}::read(reader, version)?) }} \
                 else {{ None }}"
            ),
            other => format!("reader.{}({label})?", method(other)),
        })
    };
    if let Nullable::In(range) = field.nullable
        && let Some(condition) = part.condition(Some(range))
    {
        let (nullable, plain) = (value("nullable_")?, value("")?);
        return Ok(format!("if {condition} {{ {nullable} }} else {{ Some({plain}) }}"));
    }
    value(null)
}

fn array(part: &Struct<'_>, field: &Field, element: &Type, null: &str) -> Result<String, String> {
    let label = part.label(field);
    let within = field.versions.and_then(|range| range.intersect(part.within));
    let within = within.unwrap_or(part.within);
    let last = within.max.unwrap_or(part.message.version_max()).min(part.message.version_max());
    let min = min_size(part.message, element, within.min..=last);
    if min == 0 {
        return Err(format!("an element of {label} may take no bytes at all"));
    }
    let read = match element {
        Type::Struct(name) => format!("{name}::read(reader, version)"),
        Type::String | Type::Bytes => format!("reader.{}(flexible, {label})", method(element)),
        Type::Array(_) | Type::Records => return Err(format!("{label} is an array of arrays")),
        other => format!("reader.{}({label})", method(other)),
    };
    Ok(format!("reader.{null}array(flexible, {min}, {label}, |reader| {read})?"))
}
