//! Subscriptions by pattern: which topics a regular expression stands for (KIP-848, KIP-1082).
//!
//! Patterns are RE2's, as Kafka 4.4 has them: matched against the whole name, linear in its length,
//! `\d`, `\w` and `\s` meaning ASCII. `\Q...\E` quotes. Knows no group and no record.

use crate::message::GroupError;
use alloc::format;
use alloc::string::String;
use regex::bytes::{Regex, RegexBuilder};

/// A pattern that was understood.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    /// How much slower than a simple one it may be, on each byte.
    weight: usize,
}

impl Pattern {
    /// Understands a pattern; [`GroupError::InvalidRegularExpression`] where that cannot be done
    /// within bounds.
    pub(super) fn parse(text: &str) -> Result<Self, GroupError> {
        let invalid = |_| GroupError::InvalidRegularExpression;
        if text.len() > PATTERN_BYTES_MAX {
            return Err(GroupError::InvalidRegularExpression);
        }
        let text = unquoted(text);
        // By itself first: within brackets `a)|(b` would do.
        compile(&text, PROGRAM_BYTES_MAX).map_err(invalid)?;
        let whole = format!(r"\A(?:{text})\z");
        for (bytes_max, weight) in WEIGHTS {
            if let Ok(regex) = compile(&whole, bytes_max) {
                return Ok(Self { regex, weight });
            }
        }
        Err(GroupError::InvalidRegularExpression)
    }

    /// Whether it matches the whole name.
    pub(super) fn matches(&self, topic: &str) -> bool {
        self.regex.is_match(topic.as_bytes())
    }

    /// What it may cost to match this name: about its bytes, times the size of the pattern.
    pub(super) fn cost(&self, topic: &str) -> usize {
        (topic.len() + NAME_COST) * self.weight
    }
}

fn compile(text: &str, bytes_max: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).unicode(false).nest_limit(NESTING_MAX).size_limit(bytes_max).build()
}

/// `\Q...\E`, which our library does not know, as the same text escaped.
fn unquoted(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = quote_start(rest) {
        plain.push_str(&rest[..at]);
        let quoted = &rest[at + 2..];
        let (inside, after) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
        plain.push_str(&regex::escape(inside));
        rest = after;
    }
    plain.push_str(rest);
    plain
}

/// Where `\Q` begins, its backslash not being escaped itself.
fn quote_start(text: &str) -> Option<usize> {
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        if byte == b'\\' && bytes.next()?.1 == b'Q' {
            return Some(at);
        }
    }
    None
}

/// Bytes of one pattern.
const PATTERN_BYTES_MAX: usize = 4096;
/// How deep its brackets may nest.
const NESTING_MAX: u32 = 50;
/// Bytes of what it becomes: `(a{100}){100}` is short to write. A name takes a hostile pattern of
/// that size some milliseconds.
const PROGRAM_BYTES_MAX: usize = 256 << 10;
/// What patterns of up to so many bytes weigh: a hostile one looks at all of itself for each byte.
const WEIGHTS: [(usize, usize); 3] = [(16 << 10, 1), (64 << 10, 8), (PROGRAM_BYTES_MAX, 64)];
/// What a name costs beside its bytes.
const NAME_COST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, topic: &str) -> bool {
        Pattern::parse(pattern).expect("a valid pattern").matches(topic)
    }

    /// KIP-1082: a pattern speaks of the whole name, as `Pattern.matches` of RE2/J does.
    #[test]
    fn the_whole_name_must_match() {
        assert!(matches("ord.*", "orders"));
        assert!(!matches("ord", "orders"));
        assert!(!matches("rders", "orders"));
        assert!(matches("a|ab", "ab"), "not the first alternative that fits");
        assert!(matches("(?i)ORDERS", "orders"));
        assert!(matches("", ""));
        assert!(matches(r"v\d+", "v12"));
    }

    #[test]
    fn quoted_text_means_itself() {
        assert!(matches(r"\Qa.b\E.*", "a.bc"));
        assert!(!matches(r"\Qa.b\E", "axb"));
        assert!(matches(r"\Qa.b", "a.b"), "an open quotation runs to the end");
        assert!(matches(r"\\Q", r"\Q"), "an escaped backslash begins nothing");
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        for pattern in ["(", "a)|(b", "*", r"(?<=a)b", r"(a)\1", "[", "((a{100}){100}){100}"] {
            let parsed = Pattern::parse(pattern).map(|_| ());
            assert_eq!(parsed, Err(GroupError::InvalidRegularExpression), "{pattern}");
        }
        assert!(Pattern::parse(&"a".repeat(PATTERN_BYTES_MAX + 1)).is_err());
    }
}
