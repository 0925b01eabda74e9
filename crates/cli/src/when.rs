//! Times as people write them. Pure: what time it is now, and where, is an argument.

use jiff::civil::DateTime;
use jiff::{Span, Timestamp, ZonedDateTime};

/// A point in time on the command line.
///
/// `now`, `today` and `yesterday` (their first moment), a date, a date and a time of day, or
/// those with a zone (`Z`, `+02:00`). Without a zone it is `now`'s.
pub(crate) fn parse(text: &str, now: &ZonedDateTime) -> Result<Timestamp, String> {
    let text = text.trim();
    let start = |day: Result<ZonedDateTime, jiff::Error>| {
        let start = day.and_then(|day| day.start_of_day());
        start.map(|start| start.timestamp()).map_err(|error| error.to_string())
    };
    match text {
        "now" => return Ok(now.timestamp()),
        "today" => return start(Ok(now.clone())),
        "yesterday" => return start(now.yesterday()),
        _ => {}
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Ok(timestamp);
    }
    let civil = text.parse::<DateTime>().map_err(|_| {
        format!(
            "`{text}` is no time: write `yesterday`, `today`, `now`, 2026-11-30, \
             2026-11-30T09:15 or 2026-11-30T09:15:00Z"
        )
    })?;
    let zoned = civil.to_zoned_datetime(now.time_zone().clone());
    zoned.map(|zoned| zoned.timestamp()).map_err(|error| error.to_string())
}

/// The time so long before `now`: `30m`, `1d 2h`, `P1D`.
pub(crate) fn ago(text: &str, now: &ZonedDateTime) -> Result<Timestamp, String> {
    let span: Span = text
        .trim()
        .parse()
        .map_err(|_| format!("`{text}` is no length of time: write 30m, 12h, `1d 6h` or P1D"))?;
    if span.is_negative() {
        return Err(format!("`{text}` lies ahead: write how long ago, without a sign"));
    }
    let then = now.checked_sub(span).map_err(|error| error.to_string())?;
    Ok(then.timestamp())
}

/// A time of a record or a plan, in UTC, to the millisecond.
pub(crate) fn show(time: ottla_client::Timestamp) -> String {
    match Timestamp::from_millisecond(time.0) {
        Ok(time) => format!("{time:.3}"),
        // No record of this world; its number is all there is to show.
        Err(_) => format!("{} ms", time.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noon on the day after clocks went forward in Berlin.
    fn now() -> ZonedDateTime {
        "2026-03-30T12:00:00+02:00[+02:00]".parse().expect("a time")
    }

    fn at(text: &str) -> String {
        parse(text, &now()).expect(text).to_string()
    }

    #[test]
    fn words_and_dates_are_of_the_zone_one_is_in() {
        assert_eq!(at("now"), "2026-03-30T10:00:00Z");
        assert_eq!(at("today"), "2026-03-29T22:00:00Z");
        assert_eq!(at("yesterday"), "2026-03-28T22:00:00Z");
        assert_eq!(at("2026-03-01"), "2026-02-28T22:00:00Z");
        assert_eq!(at("2026-03-01 09:15"), "2026-03-01T07:15:00Z");
    }

    /// Kafka's own tool writes and reads such times.
    #[test]
    fn a_zone_that_is_named_wins() {
        assert_eq!(at("2026-03-01T09:15:00.250Z"), "2026-03-01T09:15:00.25Z");
        assert_eq!(at("2026-03-01T09:15:00-05:00"), "2026-03-01T14:15:00Z");
    }

    #[test]
    fn what_is_no_time_is_told_what_would_be() {
        let error = parse("tomorrowish", &now()).expect_err("no time");
        assert!(error.contains("yesterday"), "{error}");
        assert!(ago("soon", &now()).is_err());
        assert!(ago("-1h", &now()).is_err());
    }

    #[test]
    fn lengths_are_friendly_or_iso() {
        for text in ["1d", "24h", "P1D", "1 day", "PT24H"] {
            let then = ago(text, &now()).expect(text).to_string();
            assert_eq!(then, "2026-03-29T10:00:00Z", "{text}");
        }
    }
}
