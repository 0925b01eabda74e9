//! Kafka's wire protocol: generated codecs, frames and the conversion to our own words.
