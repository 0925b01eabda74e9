//! Which partitions are meant: `TOPIC`, or `TOPIC:0,3-5`.

use ottla_client::{TopicInfo, TopicPartition};
use std::str::FromStr;

/// A topic, or some partitions of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Selection {
    /// The topic.
    pub(crate) topic: String,
    /// Which of its partitions, first and last of each range; all, if none is named.
    ranges: Vec<(i32, i32)>,
}

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // No topic's name has a colon.
        let (topic, list) = match text.split_once(':') {
            Some((topic, list)) => (topic, Some(list)),
            None => (text, None),
        };
        if topic.is_empty() {
            return Err("names no topic".to_owned());
        }
        let ranges = list.map_or(Ok(Vec::new()), |list| list.split(',').map(range).collect())?;
        Ok(Self { topic: topic.to_owned(), ranges })
    }
}

/// Partitions as [`Selection`] reads them: `orders:0,3-5 payments:1`.
pub(crate) fn list(partitions: &[TopicPartition]) -> String {
    let mut sorted: Vec<&TopicPartition> = partitions.iter().collect();
    sorted.sort();
    let topics = sorted.chunk_by(|a, b| a.topic == b.topic);
    let topic = |partitions: &[&TopicPartition]| {
        let runs = partitions.chunk_by(|a, b| a.partition.0 + 1 == b.partition.0);
        let run = |run: &[&TopicPartition]| match run {
            [only] => only.partition.to_string(),
            [first, .., last] => format!("{}-{}", first.partition, last.partition),
            [] => String::new(),
        };
        let runs: Vec<String> = runs.map(run).collect();
        format!("{}:{}", partitions[0].topic, runs.join(","))
    };
    topics.map(topic).collect::<Vec<_>>().join(" ")
}

fn range(text: &str) -> Result<(i32, i32), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<u16>().map(i32::from);
    match (number(first), number(last)) {
        (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
        _ => Err(format!("`{text}` is no partition and no range of them, such as 3 or 3-5")),
    }
}

impl Selection {
    /// The partitions it means.
    ///
    /// # Errors
    /// In words, if the topic has not all those that are named.
    pub(crate) fn of(&self, topic: &TopicInfo) -> Result<Vec<TopicPartition>, String> {
        let count = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        if let Some((_, last)) = self.ranges.iter().find(|(_, last)| *last >= count) {
            let name = &topic.name;
            return Err(format!("topic `{name}` has no partition {last}: it has {count}"));
        }
        let partition = |partition| TopicPartition::new(topic.name.clone(), partition);
        Ok((0..count).filter(|one| self.has(*one)).map(partition).collect())
    }

    /// Whether it means this partition of its topic.
    pub(crate) fn has(&self, partition: i32) -> bool {
        let within = |(first, last): &(i32, i32)| (*first..=*last).contains(&partition);
        self.ranges.is_empty() || self.ranges.iter().any(within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ottla_client::TopicId;

    fn numbers(text: &str, count: usize) -> Result<Vec<i32>, String> {
        let topic = TopicInfo {
            name: "t".into(),
            id: TopicId::default(),
            is_internal: false,
            partitions: vec![Default::default(); count],
            error: None,
        };
        let selected = text.parse::<Selection>()?.of(&topic)?;
        Ok(selected.iter().map(|partition| partition.partition.0).collect())
    }

    #[test]
    fn partitions_are_told_as_they_are_read() {
        let all = [("b", 1), ("a", 5), ("a", 0), ("a", 4), ("a", 3), ("a", 7)];
        let all = all.map(|(topic, partition)| TopicPartition::new(topic, partition));
        assert_eq!(list(&all), "a:0,3-5,7 b:1");
        assert_eq!(list(&[]), "");
    }

    #[test]
    fn partitions_are_named_alone_in_ranges_or_not_at_all() {
        assert_eq!(numbers("t", 3), Ok(vec![0, 1, 2]));
        assert_eq!(numbers("t:1", 3), Ok(vec![1]));
        assert_eq!(numbers("t:4,0-1,1", 5), Ok(vec![0, 1, 4]));
    }

    #[test]
    fn what_names_nothing_is_refused() {
        for text in ["", ":1", "t:", "t:x", "t:2-1", "t:-1", "t:3"] {
            assert!(numbers(text, 3).is_err(), "{text}");
        }
    }
}
