//! Java's properties files, and what to say of a name that is no setting.

use crate::{Error, ErrorKind};

/// The entries of a properties file, in order: `name=value` or `name: value` lines, comments from
/// `#` or `!`, and lines that a backslash at their end continues.
pub(super) fn entries(text: &str) -> Vec<(String, String)> {
    let mut entries = Vec::new();
    let mut whole = String::new();
    for line in text.lines() {
        let line = line.trim();
        if whole.is_empty() && (line.starts_with('#') || line.starts_with('!')) {
            continue;
        }
        match line.strip_suffix('\\') {
            Some(begun) => whole.push_str(begun),
            None => {
                whole.push_str(line);
                entries.extend(entry(&std::mem::take(&mut whole)));
            }
        }
    }
    entries.extend(entry(&whole));
    entries
}

fn entry(line: &str) -> Option<(String, String)> {
    if line.is_empty() {
        return None;
    }
    let (key, value) = line.split_once(['=', ':']).unwrap_or((line, ""));
    Some((key.trim().to_owned(), value.trim().to_owned()))
}

/// The error for `key`, with the nearest of the `known` ones if any is near.
pub(super) fn unknown<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let nearest = known.map(|known| (distance(key, known), known)).min();
    let hint = match nearest {
        Some((distance, known)) if distance <= key.len().div_ceil(3) => {
            format!("; did you mean `{known}`?")
        }
        _ => String::new(),
    };
    Error::new(ErrorKind::Config, format!("`{key}` is no setting of this client{hint}"))
}

/// Levenshtein's distance, in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
