//! How a command fails: in words for a person, with what to do next, and by an exit code for a
//! script. The table of codes is `docs/cli.md`'s.

use ottla_client::{Error, ErrorCode, ErrorKind};
use serde::Serialize;
use std::process::ExitCode;

/// Why a command did not do what it was asked, or not all of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    /// What is wrong.
    pub(crate) message: String,
    /// What to do about it, where that is known.
    pub(crate) hint: Option<String>,
    /// What scripts are told.
    pub(crate) code: Code,
    /// The error code of the broker that refused, by Kafka's name.
    pub(crate) kafka: Option<&'static str>,
}

/// What a script can tell apart, by the process's exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    /// The cluster refuses: it exists already, the group has members, the value does not fit.
    Refused = 1,
    /// The command line or a setting makes no sense. Also what clap ends with.
    Usage = 2,
    /// There is no such topic, partition, group or member.
    NotFound = 3,
    /// No broker answered in time. Trying again may help; what was to be changed may be changed.
    Unreachable = 4,
    /// The broker does not let this client do it.
    Denied = 5,
    /// The broker is too old or too new, or answers what the protocol does not allow.
    Unsupported = 6,
    /// A file or a pipe could not be read or written.
    Io = 7,
    /// Whoever read our output is gone, as the shell would say of a process that SIGPIPE ended.
    Unread = 141,
}

impl Failure {
    /// A failure of this kind.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code, kafka: None }
    }

    /// The command line makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    /// With this advice, in place of any other.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Tells it on standard error, as JSON where the output is JSON, too.
    pub(crate) fn report(&self, as_json: bool) -> ExitCode {
        use std::io::Write;
        let mut out = std::io::stderr().lock();
        // Without standard error there is nobody to tell.
        let _ = match as_json {
            _ if self.code == Code::Unread => Ok(()),
            true => writeln!(out, "{}", serde_json::json!({ "error": self.view() })),
            false => writeln!(out, "{}", self.text()),
        };
        ExitCode::from(self.code as u8)
    }

    fn text(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("\n  hint: {hint}"));
        format!("ottla: {}{}", self.message, hint.unwrap_or_default())
    }

    fn view(&self) -> View<'_> {
        let Self { message, hint, code, kafka } = self;
        View { message, hint: hint.as_deref(), code: *code as u8, kafka_code: *kafka }
    }
}

/// What a program reads of a failure.
#[derive(Serialize)]
struct View<'a> {
    message: &'a str,
    hint: Option<&'a str>,
    code: u8,
    kafka_code: Option<&'static str>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            message: error.to_string(),
            hint: error.code().and_then(hint_about).or_else(|| hint_for(&error)).map(str::to_owned),
            code: code_of(&error),
            kafka: error.code().map(ErrorCode::name),
        }
    }
}

fn code_of(error: &Error) -> Code {
    match error.code() {
        Some(
            ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId
            | ErrorCode::GroupIdNotFound,
        ) => return Code::NotFound,
        Some(ErrorCode::OffsetOutOfRange) => return Code::NotFound,
        _ => {}
    }
    match error.kind() {
        ErrorKind::Retriable | ErrorKind::TimedOut => Code::Unreachable,
        ErrorKind::Config => Code::Usage,
        ErrorKind::Denied => Code::Denied,
        ErrorKind::Unsupported | ErrorKind::Protocol => Code::Unsupported,
        ErrorKind::NoOffset => Code::NotFound,
        _ => Code::Refused,
    }
}

fn hint_about(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::UnknownTopicOrPartition => "`ottla topic list` shows which topics there are",
        ErrorCode::GroupIdNotFound => "`ottla group list` shows which groups there are",
        ErrorCode::TopicAlreadyExists => "--if-not-exists takes that for success",
        ErrorCode::NonEmptyGroup => {
            "stop its consumers first; `ottla group describe` shows who they are"
        }
        ErrorCode::GroupSubscribedToTopic => {
            "a member is subscribed to the topic; stop it, or unsubscribe it"
        }
        ErrorCode::InvalidReplicationFactor => {
            "there are not that many brokers; leave --replication-factor out for the broker's own"
        }
        ErrorCode::InvalidPartitions => {
            "partitions can only be added; `ottla topic describe` shows how many there are"
        }
        _ => return None,
    })
}

fn hint_for(error: &Error) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::Retriable => {
            "is a broker running at the --brokers address, and can it be reached from here? \
             (`ottla serve` starts one)"
        }
        ErrorKind::TimedOut => {
            "what was asked may have been done: look before doing it again, or allow more --timeout"
        }
        ErrorKind::Unsupported => "this needs a newer broker",
        _ => return None,
    })
}

/// The failures of several things: each is told, and the first decides on the exit code.
#[derive(Default)]
pub(crate) struct Failures(Vec<Failure>);

impl Failures {
    /// What there is of a result; the failure is kept for the end.
    pub(crate) fn keep<T>(&mut self, result: Result<T, impl Into<Failure>>) -> Option<T> {
        result.map_err(|failure| self.0.push(failure.into())).ok()
    }

    /// What became of all of it.
    pub(crate) fn outcome(self) -> Result<(), Failure> {
        let Some(first) = self.0.first() else { return Ok(()) };
        let lines: Vec<&str> = self.0.iter().map(|failure| &*failure.message).collect();
        Err(Failure { message: lines.join("\nottla: "), ..first.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_its_words_then_what_to_do() {
        let failure = Failure::usage("no").hint("try yes");
        assert_eq!(failure.text(), "ottla: no\n  hint: try yes");
    }

    /// Whatever fails, nothing that was asked goes unmentioned.
    #[test]
    fn the_first_of_several_failures_decides_and_all_are_told() {
        let mut failures = Failures::default();
        assert_eq!(failures.keep(Ok::<_, Failure>(1)), Some(1));
        failures.keep(Err::<(), _>(Failure::new(Code::NotFound, "no a").hint("look")));
        failures.keep(Err::<(), _>(Failure::new(Code::Refused, "no b")));
        let failure = failures.outcome().expect_err("two failed");
        assert_eq!((failure.code, &*failure.message), (Code::NotFound, "no a\nottla: no b"));
        assert!(Failures::default().outcome().is_ok());
    }
}
