//! What one field is in Rust: its name, its type, its default.

use super::{borrows_type, snake};
use crate::codegen::schema::{Field, Message, Nullable, Type};

/// The field's name in Rust.
pub fn rust_name(name: &str) -> String {
    match snake(name).as_str() {
        "type" => "r#type".into(),
        "match" => "r#match".into(),
        other => other.into(),
    }
}

/// The field's type in Rust.
pub fn rust_type(message: &Message, field: &Field) -> String {
    let ty = base_type(message, &field.ty);
    if is_nullable(field) { format!("Option<{ty}>") } else { ty }
}

/// Whether any version allows null.
pub fn is_nullable(field: &Field) -> bool {
    field.nullable != Nullable::Never
}

/// Whether the field's default is what `Default` gives for its type.
pub fn is_plain_default(field: &Field) -> bool {
    if is_nullable(field) {
        return is_null_default(field);
    }
    field.default.is_none()
}

/// The default as an expression.
pub fn default_expression(field: &Field) -> String {
    if is_null_default(field) {
        return "None".into();
    }
    let value = match (&field.default, &field.ty) {
        (Some(text), Type::String) => format!("{text:?}"),
        (Some(text), _) => text.clone(),
        (None, ty) => zero(ty).into(),
    };
    if is_nullable(field) { format!("Some({value})") } else { value }
}

/// A condition that holds if the field has another value than its default.
pub fn differs(field: &Field) -> String {
    let place = format!("self.{}", rust_name(&field.name));
    if is_null_default(field) {
        return format!("{place}.is_some()");
    }
    if is_nullable(field) {
        return match field.ty {
            Type::String | Type::Struct(_) => {
                format!("{place} != {}", default_expression(field))
            }
            _ => format!("{place}.as_ref().is_none_or(|value| !value.is_empty())"),
        };
    }
    match (&field.ty, &field.default) {
        (Type::Bool, Some(text)) if text == "true" => format!("!{place}"),
        (Type::Bool, _) => place,
        (Type::Uuid, _) => format!("!{place}.is_zero()"),
        (Type::String, Some(text)) => format!("{place} != {text:?}"),
        (Type::String | Type::Bytes | Type::Records | Type::Array(_), _) => {
            format!("!{place}.is_empty()")
        }
        (Type::Struct(name), _) => format!("{place} != {name}::default()"),
        _ => format!("{place} != {}", default_expression(field)),
    }
}

/// The method of `Reader` and `Output` for a type without parts.
pub fn method(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::Int8 => "i8",
        Type::Int16 => "i16",
        Type::Uint16 => "u16",
        Type::Int32 => "i32",
        Type::Int64 => "i64",
        Type::Float64 => "f64",
        Type::Uuid => "uuid",
        Type::String => "string",
        Type::Bytes => "bytes",
        Type::Records => "records",
        Type::Array(_) | Type::Struct(_) => "array",
    }
}

/// The Rust type of a number that arrays hold.
pub fn number(ty: &Type) -> Option<&'static str> {
    Some(match ty {
        Type::Int8 => "i8",
        Type::Int16 => "i16",
        Type::Uint16 => "u16",
        Type::Int32 => "i32",
        Type::Int64 => "i64",
        Type::Float64 => "f64",
        Type::Uuid => "Uuid",
        _ => return None,
    })
}

/// How many bytes a type takes if it always takes the same.
pub fn fixed_size(ty: &Type) -> Option<usize> {
    Some(match ty {
        Type::Bool | Type::Int8 => 1,
        Type::Int16 | Type::Uint16 => 2,
        Type::Int32 => 4,
        Type::Int64 | Type::Float64 => 8,
        Type::Uuid => 16,
        _ => return None,
    })
}

/// The fewest bytes a value takes in any of these versions.
pub fn min_size(message: &Message, ty: &Type, versions: impl Iterator<Item = i16>) -> usize {
    versions.map(|version| min_size_in(message, ty, version)).min().unwrap_or(0)
}

fn min_size_in(message: &Message, ty: &Type, version: i16) -> usize {
    let flexible = message.flexible.is_some_and(|first| version >= first);
    match ty {
        Type::String => {
            if flexible {
                1
            } else {
                2
            }
        }
        Type::Bytes | Type::Records | Type::Array(_) => {
            if flexible {
                1
            } else {
                4
            }
        }
        Type::Struct(name) => {
            let fields = message.fields_of(name).unwrap_or_default();
            let carried = fields.iter().filter(|field| {
                field.tag.is_none() && field.versions.is_none_or(|range| range.contains(version))
            });
            let sizes = carried.map(|field| match (&field.ty, is_nullable(field)) {
                (Type::Struct(_), true) => 1,
                _ => min_size_in(message, &field.ty, version),
            });
            sizes.sum::<usize>() + usize::from(flexible)
        }
        _ => fixed_size(ty).unwrap_or(0),
    }
}

fn is_null_default(field: &Field) -> bool {
    is_nullable(field) && field.default.as_deref() == Some("null")
}

/// The field's type in Rust, where it cannot be null.
pub fn base_type(message: &Message, ty: &Type) -> String {
    match ty {
        Type::Bool => "bool".into(),
        Type::Int8 => "i8".into(),
        Type::Int16 => "i16".into(),
        Type::Uint16 => "u16".into(),
        Type::Int32 => "i32".into(),
        Type::Int64 => "i64".into(),
        Type::Float64 => "f64".into(),
        Type::Uuid => "Uuid".into(),
        Type::String => "&'a str".into(),
        Type::Bytes => "&'a [u8]".into(),
        Type::Records => "Records<'a>".into(),
        Type::Array(element) => format!("Vec<{}>", base_type(message, element)),
        Type::Struct(name) if borrows_type(message, ty) => format!("{name}<'a>"),
        Type::Struct(name) => name.clone(),
    }
}

fn zero(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "false",
        Type::Int8 | Type::Int16 | Type::Uint16 | Type::Int32 | Type::Int64 => "0",
        Type::Float64 => "0.0",
        Type::Uuid => "Uuid::ZERO",
        Type::String => "\"\"",
        Type::Bytes => "&[]",
        Type::Records => "Records::EMPTY",
        Type::Array(_) => "Vec::new()",
        Type::Struct(_) => "Default::default()",
    }
}
