//! Subscriptions by pattern: which topics a regular expression stands for (KIP-848, KIP-1082).
//!
//! Patterns are RE2's, as Kafka 4.4 has them: matched against the whole name, linear in its length,
//! `\d`, `\w` and `\s` meaning ASCII. `\Q...\E` quotes. Knows no group and no record.

use crate::message::GroupError;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use ottla_model::{TopicName, TopicsView};
use regex::bytes::{Regex, RegexBuilder};

/// A pattern that was understood.
pub(super) struct Pattern(Regex);

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
        compile(&text).map_err(invalid)?;
        compile(&format!(r"\A(?:{text})\z")).map(Self).map_err(invalid)
    }

    /// Whether it matches the whole name.
    pub(super) fn matches(&self, topic: &str) -> bool {
        self.0.is_match(topic.as_bytes())
    }

    /// The topics of the view that it matches, in the order of their names.
    pub(super) fn topics(&self, view: &TopicsView) -> Vec<TopicName> {
        let matching = view.topics().filter(|topic| self.matches(&topic.name));
        matching.map(|topic| topic.name.clone()).collect()
    }
}

fn compile(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text)
        .unicode(false)
        .nest_limit(NESTING_MAX)
        .size_limit(PROGRAM_BYTES_MAX)
        .build()
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
/// Bytes of what it becomes: `(a{100}){100}` is short to write.
const PROGRAM_BYTES_MAX: usize = 1 << 20;

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
