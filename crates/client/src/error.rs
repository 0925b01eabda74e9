//! The client's one error type. Its kinds tell the caller what to do; Kafka's code, where a broker
//! sent one, and the words say what happened.

use ottla_group::message::GroupError;
use ottla_model::TopicPartition;
use ottla_wire::{DecodeError, EncodeError, ErrorCode};
use std::fmt;
use std::sync::Arc;

/// A result whose error is the client's.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, and ([`Error::kind`]) what to do about it.
///
/// Clones share their details. `Display` is one line for a log, without a stack of causes.
#[derive(Clone)]
pub struct Error(Arc<Details>);

#[derive(Debug)]
struct Details {
    kind: ErrorKind,
    code: Option<ErrorCode>,
    message: String,
    partitions: Vec<TopicPartition>,
}

/// What the caller can do about an error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The cluster could not do it now, however often the client tried within its timeout. The
    /// same call may succeed later.
    Retriable,
    /// No answer came in time, or the connection broke after the request was sent: it may have
    /// been carried out. Ask what is there before doing it again, unless doing it twice is
    /// harmless.
    TimedOut,
    /// The group rebalanced and the partitions are (or may be) another's: process no more of them,
    /// poll again. Not a fault.
    Rebalanced,
    /// Another process uses the same identity (`group.instance.id`, producer epoch): close this
    /// client and find out why there are two.
    Fenced,
    /// There is no position to read from and `auto.offset.reset` is `none`: seek
    /// ([`Error::partitions`] says where), or change the policy.
    NoOffset,
    /// A setting or an argument is wrong. Only a person can help.
    Config,
    /// The call makes no sense in this state, such as a seek in a partition that is not assigned.
    State,
    /// The broker does not let this client do it.
    Denied,
    /// The broker refuses: the topic exists, the group has members, the record is too large. The
    /// code says which.
    Refused,
    /// The broker is too old (or too new) for what was asked.
    Unsupported,
    /// The broker answered what the protocol does not allow, or a stored batch is damaged. The
    /// connection is closed; a retry meets the same broker.
    Protocol,
    /// The client is closed.
    Closed,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Arc::new(Details { kind, code: None, message, partitions: Vec::new() }))
    }

    /// A broker's error code, and what it was an answer to.
    pub(crate) fn of(code: ErrorCode, message: impl Into<String>) -> Self {
        let (kind, message) = (ErrorKind::of(code), message.into());
        Self(Arc::new(Details { kind, code: Some(code), message, partitions: Vec::new() }))
    }

    /// As [`Error::of`], by number; `Ok` if it says that nothing went wrong.
    pub(crate) fn check(code: i16, message: impl FnOnce() -> String) -> Result<()> {
        match ErrorCode::from_number(code) {
            Some(ErrorCode::None) => Ok(()),
            Some(code) => Err(Self::of(code, message())),
            None => {
                let message = format!("{}: unknown error code {code}", message());
                Err(Self::of(ErrorCode::UnknownServerError, message))
            }
        }
    }

    /// The same error about these partitions.
    pub(crate) fn about(self, partitions: Vec<TopicPartition>) -> Self {
        let Details { kind, code, message, .. } = &*self.0;
        let (kind, code, message) = (*kind, *code, message.clone());
        Self(Arc::new(Details { kind, code, message, partitions }))
    }

    pub(crate) fn closed() -> Self {
        Self::new(ErrorKind::Closed, "the client is closed")
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Protocol, message)
    }

    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The broker's code, if it was a broker that refused.
    pub fn code(&self) -> Option<ErrorCode> {
        self.0.code
    }

    /// The partitions it is about, where it is about some in particular.
    pub fn partitions(&self) -> &[TopicPartition] {
        &self.0.partitions
    }

    /// Whether the same call may succeed later without anything being changed.
    pub fn is_retriable(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Retriable | ErrorKind::TimedOut)
    }
}

impl ErrorKind {
    /// What a broker's code asks of the caller: the one table, a reason where it is not the
    /// code's own name.
    pub fn of(code: ErrorCode) -> Self {
        use ErrorCode as C;
        match code {
            // The broker gave up waiting; whatever it was may still come about.
            C::RequestTimedOut | C::NotEnoughReplicasAfterAppend => Self::TimedOut,
            C::RebalanceInProgress
            | C::IllegalGeneration
            | C::UnknownMemberId
            | C::StaleMemberEpoch
            | C::FencedMemberEpoch => Self::Rebalanced,
            C::FencedInstanceId
            | C::UnreleasedInstanceId
            | C::ProducerFenced
            | C::InvalidProducerEpoch
            | C::TransactionCoordinatorFenced => Self::Fenced,
            C::OffsetOutOfRange => Self::NoOffset,
            C::TopicAuthorizationFailed
            | C::GroupAuthorizationFailed
            | C::ClusterAuthorizationFailed
            | C::TransactionalIdAuthorizationFailed
            | C::DelegationTokenAuthorizationFailed
            | C::SaslAuthenticationFailed
            | C::SecurityDisabled => Self::Denied,
            C::InvalidGroupId
            | C::InvalidSessionTimeout
            | C::InconsistentGroupProtocol
            | C::UnsupportedAssignor
            | C::InvalidRegularExpression
            | C::InvalidTopicException
            | C::InvalidRequiredAcks
            | C::InvalidTransactionTimeout => Self::Config,
            C::UnsupportedVersion
            | C::UnsupportedSaslMechanism
            | C::UnsupportedForMessageFormat
            | C::UnsupportedCompressionType
            | C::UnsupportedEndpointType => Self::Unsupported,
            C::CorruptMessage => Self::Protocol,
            // Kafka's own clients wait for a topic that may be on its way.
            _ if code.is_retriable() => Self::Retriable,
            _ => Self::Refused,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A broker may have ended its words with a full stop; the code still follows.
        f.write_str(self.0.message.trim_end_matches('.'))?;
        if let Some(code) = self.0.code {
            write!(f, ": {code}")?;
        }
        if let [first, rest @ ..] = self.partitions() {
            write!(f, " ({first}")?;
            match rest.len() {
                0 => {}
                more => write!(f, " and {more} more")?,
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind())
    }
}

impl std::error::Error for Error {}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Self::protocol(format!("the broker's answer cannot be read: {error}"))
    }
}

impl From<EncodeError> for Error {
    fn from(error: EncodeError) -> Self {
        Self::new(ErrorKind::Unsupported, format!("the request cannot be sent: {error}"))
    }
}

impl From<GroupError> for Error {
    fn from(error: GroupError) -> Self {
        Self::of(ottla_wire::convert::code(error), "the group's coordinator refuses")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every code has a kind; those that Kafka's clients retry are never final here.
    #[test]
    fn a_code_that_kafka_retries_is_retriable() {
        for code in ErrorCode::ALL {
            let kind = ErrorKind::of(*code);
            let is_final = matches!(kind, ErrorKind::Refused | ErrorKind::Config);
            assert!(!(code.is_retriable() && is_final), "{code}: {kind:?}");
        }
        assert_eq!(ErrorKind::of(ErrorCode::FencedInstanceId), ErrorKind::Fenced);
        assert_eq!(ErrorKind::of(ErrorCode::NotLeaderOrFollower), ErrorKind::Retriable);
    }

    #[test]
    fn an_error_is_one_line_with_its_code_and_partitions() {
        let partitions = vec![TopicPartition::new("t", 0), TopicPartition::new("t", 1)];
        let error = Error::of(ErrorCode::OffsetOutOfRange, "cannot fetch").about(partitions);
        assert_eq!(error.to_string(), "cannot fetch: OFFSET_OUT_OF_RANGE (1) (t-0 and 1 more)");
    }
}
