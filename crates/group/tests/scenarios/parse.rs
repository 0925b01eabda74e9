//! Words of a command: a verb, plain words, and `key=value` pairs.

use std::time::Duration;

pub struct Command<'a> {
    pub verb: &'a str,
    words: Vec<&'a str>,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Command<'a> {
    pub fn parse(line: &'a str) -> Result<Self, String> {
        let mut parts = line.split_whitespace();
        let verb = parts.next().ok_or("an empty command")?;
        let (pairs, words): (Vec<_>, Vec<_>) = parts.partition(|part| part.contains('='));
        let pairs = pairs.into_iter().filter_map(|part| part.split_once('=')).collect();
        Ok(Self { verb, words, pairs })
    }

    pub fn words(&self) -> &[&'a str] {
        &self.words
    }

    pub fn word(&self) -> Result<&'a str, String> {
        self.words.first().copied().ok_or_else(|| "whom is this about?".into())
    }

    pub fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    pub fn pairs(&self) -> &[(&'a str, &'a str)] {
        &self.pairs
    }

    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    pub fn number(&self, key: &str) -> Result<Option<i64>, String> {
        self.text(key).map(number).transpose()
    }

    pub fn span(&self, key: &str) -> Result<Option<Duration>, String> {
        self.text(key).map(span).transpose()
    }
}

pub fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

/// `5us`, `250ms`, `10s`, `5m`, `2h`, `7d`.
pub fn span(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let count = number(&text[..digits])? as u64;
    let micros = match &text[digits..] {
        "us" => 1,
        "ms" => 1000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        unit => return Err(format!("{unit} is not a unit of time")),
    };
    Ok(Duration::from_micros(count * micros))
}
