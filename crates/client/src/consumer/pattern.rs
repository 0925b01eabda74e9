//! Wildcards (S35-S38): which topics a subscription means, when it names none.

use crate::{Error, ErrorKind, Result};
use regex_lite::Regex;
use std::fmt;

/// Topics by pattern: a white-list of regular expressions, and a black-list that overrules it.
/// An expression has to match the whole name.
///
/// ```
/// use ottla_client::TopicFilter;
///
/// let filter = TopicFilter::allow("orders-.*")?.deny(".*-test")?;
/// assert!(filter.matches("orders-eu"));
/// assert!(!filter.matches("orders-test") && !filter.matches("my-orders-eu"));
/// # Ok::<(), ottla_client::Error>(())
/// ```
#[derive(Clone)]
pub struct TopicFilter {
    /// Empty if every topic is.
    allowed: Vec<Regex>,
    denied: Vec<Regex>,
}

impl TopicFilter {
    /// The topics whose whole name matches.
    ///
    /// # Errors
    /// `Config`, if that is no regular expression.
    pub fn allow(pattern: &str) -> Result<Self> {
        Ok(Self { allowed: vec![compile(pattern)?], denied: Vec::new() })
    }

    /// Every topic.
    pub(super) fn all() -> Self {
        Self { allowed: Vec::new(), denied: Vec::new() }
    }

    /// And those whose whole name matches this.
    ///
    /// # Errors
    /// `Config`, if that is no regular expression.
    pub fn or(mut self, pattern: &str) -> Result<Self> {
        self.allowed.push(compile(pattern)?);
        Ok(self)
    }

    /// But none whose whole name matches this.
    ///
    /// # Errors
    /// `Config`, if that is no regular expression.
    pub fn deny(mut self, pattern: &str) -> Result<Self> {
        self.denied.push(compile(pattern)?);
        Ok(self)
    }

    /// Whether a topic of this name is meant.
    pub fn matches(&self, topic: &str) -> bool {
        let is_in = |list: &[Regex]| list.iter().any(|one| one.is_match(topic));
        (self.allowed.is_empty() || is_in(&self.allowed)) && !is_in(&self.denied)
    }
}

impl fmt::Debug for TopicFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopicFilter")
            .field("allowed", &self.allowed)
            .field("denied", &self.denied)
            .finish()
    }
}

fn compile(pattern: &str) -> Result<Regex> {
    Regex::new(&format!("^(?:{pattern})$")).map_err(|error| {
        Error::new(ErrorKind::Config, format!("`{pattern}` is no regular expression: {error}"))
    })
}
