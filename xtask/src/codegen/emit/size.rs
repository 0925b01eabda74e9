//! The body of `size`.

use super::fields::{fixed_size, is_nullable, method, rust_name};
use super::write::is_set;
use super::{Struct, mentions};
use crate::codegen::schema::{Field, Type};
use std::fmt::Write;

/// The body of `size` for one struct.
pub fn body(part: &Struct<'_>) -> String {
    let mut fixed = 0;
    let mut out = String::new();
    for field in part.untagged() {
        let terms = terms(field);
        let _ = match part.condition(field.versions) {
            None => {
                fixed += terms.fixed;
                write!(out, "{}", terms.statements())
            }
            Some(condition) => writeln!(out, "if {condition} {{ {} }}", terms.all()),
        };
    }
    let tags = tags(part);
    if part.flexible() == "true" {
        fixed += 1;
    } else if part.message.flexible.is_some() {
        let _ = writeln!(out, "if flexible {{ total += 1; {tags} }}");
    }
    if part.flexible() == "true" {
        out.push_str(&tags);
    }
    if out.is_empty() {
        return fixed.to_string();
    }
    out = format!("let mut total = {fixed};\n{out}total");
    if mentions(&out, "flexible") {
        out.insert_str(0, &format!("let flexible = {};\n", part.flexible()));
    }
    out
}

/// An expression for the size of a tagged field's content.
pub fn tagged_value(_part: &Struct<'_>, field: &Field) -> String {
    let terms = terms(field);
    match (&*terms.added, &*terms.loops) {
        ("", "") => terms.fixed.to_string(),
        (added, "") if terms.fixed == 0 => added.into(),
        (added, "") => format!("{} + {added}", terms.fixed),
        _ => format!("{{ let mut total = 0; {} total }}", terms.all()),
    }
}

fn tags(part: &Struct<'_>) -> String {
    let mut out = String::new();
    for (field, tag) in part.tagged() {
        let (set, size) = (is_set(part, field), tagged_value(part, field));
        let _ = writeln!(out, "if {set} {{ total += size::tag({tag}, {size}); }}");
    }
    out
}

/// What a field adds to the size: a constant, an expression, statements that add the rest.
struct Terms {
    fixed: usize,
    added: String,
    loops: String,
}

impl Terms {
    fn statements(&self) -> String {
        let mut out = String::new();
        if !self.added.is_empty() {
            let _ = writeln!(out, "total += {};", self.added);
        }
        out.push_str(&self.loops);
        out
    }

    fn all(&self) -> String {
        match self.fixed {
            0 => self.statements(),
            fixed => format!("total += {fixed};\n{}", self.statements()),
        }
    }
}

fn terms(field: &Field) -> Terms {
    let place = format!("self.{}", rust_name(&field.name));
    let flexible = if field.inflexible { "false" } else { "flexible" };
    let nullable = is_nullable(field);
    let mut terms = Terms { fixed: 0, added: String::new(), loops: String::new() };
    match (&field.ty, nullable) {
        (Type::String | Type::Bytes, _) => {
            let null = if nullable { "nullable_" } else { "" };
            terms.added = format!("size::{null}{}({flexible}, {place})", method(&field.ty));
        }
        (Type::Records, true) => {
            terms.added = format!("size::nullable_records({flexible}, {place}.as_ref())");
        }
        (Type::Records, false) => terms.added = format!("size::records({flexible}, &{place})"),
        (Type::Array(of), _) => array(&mut terms, &place, of, nullable),
        (Type::Struct(_), true) => {
            terms.fixed = 1;
            terms.loops =
                format!("if let Some(value) = &{place} {{ total += value.size(version); }}\n");
        }
        (Type::Struct(_), false) => terms.added = format!("{place}.size(version)"),
        (other, _) => terms.fixed = fixed_size(other).unwrap_or(0),
    }
    terms
}

fn array(terms: &mut Terms, place: &str, of: &Type, nullable: bool) {
    let len = if nullable {
        format!("{place}.as_ref().map_or(0, Vec::len)")
    } else {
        format!("{place}.len()")
    };
    terms.added = format!("size::length(flexible, {len})");
    if let Some(size) = fixed_size(of) {
        let times = if size == 1 { String::new() } else { format!("{size} * ") };
        let _ = write!(terms.added, " + {times}{len}");
        return;
    }
    let each = if nullable { format!("{place}.iter().flatten()") } else { format!("&{place}") };
    let add = match of {
        Type::Struct(_) => "element.size(version)".to_string(),
        other => format!("size::{}(flexible, element)", method(other)),
    };
    terms.loops = format!("for element in {each} {{ total += {add}; }}\n");
}
