//! Who owns what: topics, brokers, placement and the store that keeps them.

pub mod store;
