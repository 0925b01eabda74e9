//! `features/<name>`: a finalized feature's level, a bare number.

use crate::store::Key;

pub(crate) fn key(name: &str) -> Key {
    format!("features/{name}").into()
}
