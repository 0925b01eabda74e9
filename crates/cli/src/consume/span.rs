//! Which offsets are read: what `--from` and `--until` come to in each partition.

use super::Arguments;
use crate::failure::{Code, Failure};
use crate::when;
use jiff::ZonedDateTime;
use ottla_client::{Admin, OffsetSpec, Timestamp, TopicPartition};
use std::collections::BTreeMap;

/// Where reading begins and ends, by partition.
pub(super) struct Span {
    pub(super) begin: BTreeMap<TopicPartition, i64>,
    end: BTreeMap<TopicPartition, i64>,
}

/// What is left to read: the end of each partition that is not read to it yet.
#[derive(Debug)]
pub(super) struct Left {
    end: BTreeMap<TopicPartition, i64>,
    open: BTreeMap<TopicPartition, i64>,
}

/// A place in a partition, as it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Earliest,
    Latest,
    Offset(i64),
    /// So many records before the end.
    Last(i64),
    Time(Timestamp),
}

impl Span {
    /// Asks what there is.
    pub(super) async fn look_up(arguments: &Arguments) -> Result<Self, Failure> {
        let now = ZonedDateTime::now();
        let place = |text: &str| place(text, &now).map_err(Failure::usage);
        let from = place(&arguments.from)?;
        let until = arguments.until.as_deref().map_or(Ok(Place::Latest), place)?;
        let admin = arguments.session.admin()?;
        let described = admin.describe_topics([arguments.topic.topic.as_str()]).await?;
        let mut partitions = Vec::new();
        for (_, topic) in described {
            let of = arguments.topic.of(&topic?);
            partitions.extend(of.map_err(|message| Failure::new(Code::NotFound, message))?);
        }
        let begin = resolve(&admin, &partitions, from).await?;
        let end = resolve(&admin, &partitions, until).await?;
        Ok(Self { begin, end })
    }

    /// All of it.
    pub(super) fn left(self) -> Left {
        let Self { begin, end } = self;
        let is_open = |(partition, end): &(&TopicPartition, &i64)| begin[*partition] < **end;
        let open = end.iter().filter(is_open).map(|(of, end)| (of.clone(), *end)).collect();
        Left { end, open }
    }
}

impl Left {
    /// Whether nothing is left.
    pub(super) fn is_over(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether the record at `offset` lies before the end.
    pub(super) fn has(&self, partition: &TopicPartition, offset: i64) -> bool {
        self.end.get(partition).is_none_or(|end| offset < *end)
    }

    /// `next` is what is read next.
    pub(super) fn came_to(&mut self, partition: &TopicPartition, next: i64) {
        if self.open.get(partition).is_some_and(|end| next >= *end) {
            self.open.remove(partition);
        }
    }
}

fn place(text: &str, now: &ZonedDateTime) -> Result<Place, String> {
    Ok(match (text, text.parse::<i64>()) {
        ("earliest", _) => Place::Earliest,
        ("latest", _) => Place::Latest,
        (_, Ok(offset)) if offset >= 0 => Place::Offset(offset),
        (_, Ok(last)) => Place::Last(last.saturating_neg()),
        _ => Place::Time(Timestamp(when::parse(text, now)?.as_millisecond())),
    })
}

async fn resolve(
    admin: &Admin,
    partitions: &[TopicPartition],
    place: Place,
) -> Result<BTreeMap<TopicPartition, i64>, Failure> {
    let spec = match place {
        Place::Time(time) => OffsetSpec::At(time),
        _ => OffsetSpec::Latest,
    };
    let earliest = look_up(admin, partitions, OffsetSpec::Earliest).await?;
    let latest = look_up(admin, partitions, OffsetSpec::Latest).await?;
    let found = if spec == OffsetSpec::Latest {
        latest.clone()
    } else {
        look_up(admin, partitions, spec).await?
    };
    let offset = |of: &TopicPartition| {
        let (first, end) = (earliest.get(of).copied().unwrap_or(0), latest.get(of).copied()?);
        let offset = match place {
            Place::Earliest => first,
            Place::Latest => end,
            Place::Offset(offset) => offset,
            Place::Last(count) => end.saturating_sub(count),
            // All records are older: the end.
            Place::Time(_) => found.get(of).copied().unwrap_or(end),
        };
        Some((of.clone(), offset.clamp(first, end.max(first))))
    };
    Ok(partitions.iter().filter_map(offset).collect())
}

async fn look_up(
    admin: &Admin,
    partitions: &[TopicPartition],
    spec: OffsetSpec,
) -> Result<BTreeMap<TopicPartition, i64>, Failure> {
    let found = admin.list_offsets(partitions.iter().map(|of| (of.clone(), spec))).await?;
    let mut offsets = BTreeMap::new();
    for (partition, found) in found {
        offsets.extend(found?.offset.map(|offset| (partition, offset.0)));
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_words_offsets_counts_from_the_end_and_times() {
        let now: ZonedDateTime = "2026-03-30T12:00:00+00:00[UTC]".parse().expect("a time");
        assert_eq!(place("latest", &now), Ok(Place::Latest));
        assert_eq!(place("7", &now), Ok(Place::Offset(7)));
        assert_eq!(place("-7", &now), Ok(Place::Last(7)));
        assert!(matches!(place("yesterday", &now), Ok(Place::Time(_))));
        assert!(place("soon", &now).is_err());
    }

    #[test]
    fn reading_is_over_when_every_partition_came_to_its_end() {
        let of = |partition| TopicPartition::new("t", partition);
        let begin = [(of(0), 0), (of(1), 5), (of(2), 0)].into();
        let end = [(of(0), 3), (of(1), 5), (of(2), 1)].into();
        let mut left = Span { begin, end }.left();
        assert!(left.has(&of(0), 2) && !left.has(&of(0), 3) && !left.is_over());
        left.came_to(&of(0), 4);
        assert!(!left.is_over());
        left.came_to(&of(2), 1);
        assert!(left.is_over());
    }
}
