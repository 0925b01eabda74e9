//! The body of `write`.

use super::fields::{differs, fixed_size, is_nullable, method, number, rust_name};
use super::{Struct, mentions, size};
use crate::codegen::schema::{Field, Nullable, Type};
use std::fmt::Write;

/// The body of `write` for one struct.
pub fn body(part: &Struct<'_>) -> String {
    let mut out = String::new();
    let fields: Vec<&Field> = part.untagged().collect();
    for run in fields.chunk_by(|a, b| is_fixed(part, a) && is_fixed(part, b)) {
        let [field] = run else {
            out.push_str(&fixed_run(run));
            continue;
        };
        let value = value(part, field);
        let _ = match part.condition(field.versions) {
            None => writeln!(out, "{value}"),
            Some(condition) => {
                let lost = refuse_loss(part, field, "").map(|lost| format!(" else {lost}"));
                writeln!(out, "if {condition} {{ {value} }}{}", lost.unwrap_or_default())
            }
        };
    }
    out.push_str(&tags(part));
    out.push_str("Ok(())");
    if mentions(&out, "flexible") {
        out.insert_str(0, &format!("let flexible = {};\n", part.flexible()));
    }
    out
}

/// Whether every version writes the field in the same number of bytes.
fn is_fixed(part: &Struct<'_>, field: &Field) -> bool {
    let always = part.condition(field.versions).is_none();
    always && field.ty != Type::Bool && fixed_size(&field.ty).is_some()
}

/// Writes neighbours of fixed size at once: one look at the room that is left instead of many.
fn fixed_run(fields: &[&Field]) -> String {
    let mut parts = String::new();
    let mut at = 0;
    for field in fields {
        let end = at + fixed_size(&field.ty).unwrap_or(0);
        let bytes = format!("self.{}.to_be_bytes()", rust_name(&field.name));
        let _ = writeln!(parts, "fixed[{at}..{end}].copy_from_slice(&{bytes});");
        at = end;
    }
    format!("let mut fixed = [0; {at}]; {parts} out.raw(&fixed);\n")
}

/// What a version without the field does about a value it would lose.
fn refuse_loss(part: &Struct<'_>, field: &Field, also: &str) -> Option<String> {
    let (differs, label) = (differs(field), part.label(field));
    let refuse =
        format!("if {also}{differs} {{ return Err(EncodeError::absent({label}, version)); }}");
    (!field.ignorable).then_some(refuse)
}

fn tags(part: &Struct<'_>) -> String {
    if part.message.flexible.is_none() {
        return String::new();
    }
    let mut checks = String::new();
    let mut sum = String::new();
    let mut writes = String::new();
    for (field, tag) in part.tagged() {
        if let Some(condition) = part.condition(field.versions) {
            let absent = format!("{} && ", negated(&condition));
            checks.push_str(&refuse_loss(part, field, &absent).unwrap_or_default());
        }
        let set = is_set(part, field);
        let _ = write!(sum, "{}u32::from({set})", if sum.is_empty() { "" } else { " + " });
        let (size, value) = (size::tagged_value(part, field), value(part, field));
        let _ = writeln!(writes, "if {set} {{ out.tag({tag}, {size}); {value} }}");
    }
    let count = if sum.is_empty() { "0".into() } else { sum };
    let written = format!("out.varint({count}); {writes}");
    match part.flexible().as_str() {
        "true" => format!("{checks}{written}"),
        _ => format!("{checks}if flexible {{ {written} }}"),
    }
}

/// A condition that holds if a tagged field is to be written.
pub fn is_set(part: &Struct<'_>, field: &Field) -> String {
    let differs = differs(field);
    match part.condition(field.versions) {
        Some(condition) if condition != part.flexible() => format!("{condition} && {differs}"),
        _ => differs,
    }
}

/// Statements that write the field.
fn value(part: &Struct<'_>, field: &Field) -> String {
    let label = part.label(field);
    let place = format!("self.{}", rust_name(&field.name));
    let flexible = if field.inflexible { "false" } else { "flexible" };
    let nullable = is_nullable(field);
    let written = match (&field.ty, nullable) {
        (Type::String | Type::Bytes, true) => {
            format!("out.nullable_{}({flexible}, {place}, {label})?;", method(&field.ty))
        }
        (Type::String | Type::Bytes, false) => {
            format!("out.{}({flexible}, {place}, {label})?;", method(&field.ty))
        }
        (Type::Records, true) => {
            format!("out.nullable_records({flexible}, {place}.as_ref(), {label})?;")
        }
        (Type::Records, false) => format!("out.records({flexible}, &{place}, {label})?;"),
        (Type::Array(of), true) => format!(
            "match &{place} {{ Some(elements) => {{ {} }} None => out.null(flexible), }}",
            elements("elements", "elements", of, &label)
        ),
        (Type::Array(of), false) => elements(&place, &format!("&{place}"), of, &label),
        (Type::Struct(_), true) => {
            // In a tagged field Kafka says null by another byte than elsewhere.
            let absent = if field.tag.is_some() { 0 } else { -1 };
            format!(
                "match &{place} {{ Some(value) => {{ out.i8(1); value.write(version, out)?; }} \
                 None => out.i8({absent}), }}"
            )
        }
        (Type::Struct(_), false) => format!("{place}.write(version, out)?;"),
        (other, _) => format!("out.{}({place});", method(other)),
    };
    let Nullable::In(range) = field.nullable else { return written };
    let Some(condition) = part.condition(Some(range)) else { return written };
    let condition = negated(&condition);
    format!(
        "if {condition} && {place}.is_none() {{ return Err(EncodeError::null({label}, version)); }}\
         {written}"
    )
}

fn elements(place: &str, iterated: &str, of: &Type, label: &str) -> String {
    if let Some(number) = number(of) {
        let bytes = format!("{number}::to_be_bytes");
        return format!("out.numbers(flexible, {iterated}, {label}, {bytes})?;");
    }
    let write = match of {
        Type::Struct(_) => "element.write(version, out)?;".to_string(),
        Type::String | Type::Bytes => format!("out.{}(flexible, element, {label})?;", method(of)),
        other => format!("out.{}(*element);", method(other)),
    };
    format!(
        "out.length(flexible, {place}.len(), {label})?; for element in {iterated} {{ {write} }}"
    )
}

fn negated(condition: &str) -> String {
    if let Some(low) = condition.strip_prefix("version >= ") {
        return format!("version < {low}");
    }
    if let Some(high) = condition.strip_prefix("version <= ") {
        return format!("version > {high}");
    }
    format!("!({condition})")
}
