//! The settings of an administrator: those of every client.

super::settings! {
    /// The settings of an [`Admin`](crate::Admin).
    AdminConfig;
}
