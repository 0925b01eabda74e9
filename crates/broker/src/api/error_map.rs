//! From our errors to Kafka's codes, each map exhaustive so that a new error cannot be forgotten.

use ottla_group::message::GroupError;
use ottla_wire::ErrorCode;

/// The code a refusal by a coordinator goes out with. The map stands beside its inverse, which the
/// client needs, and is what every converted response uses.
pub(crate) fn group_error(error: GroupError) -> ErrorCode {
    ottla_wire::convert::code(error)
}
