//! The commands as a person or a script runs them: the real binary against a real broker process.
//! Where `KAFKA_BOOTSTRAP` names an Apache Kafka, the same against that.

mod broker;
mod demo;
mod full_disk;
mod groups;
mod journal;
mod records;
mod topics;
mod world;
