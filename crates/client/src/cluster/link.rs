//! The way to one broker as a task keeps it: a connection, or the one try to get one.

use super::{Cluster, Patience, Purpose};
use crate::Result;
use crate::config::ClientConfig;
use crate::connection::Connection;
use ottla_model::NodeId;

/// The way to one broker for one purpose.
#[derive(Debug)]
pub(crate) struct Link {
    purpose: Purpose,
    connection: Option<Connection>,
    is_connecting: bool,
    patience: Patience,
}

impl Link {
    /// Leads nowhere yet.
    pub(crate) fn new(config: &ClientConfig, purpose: Purpose) -> Self {
        let patience = Patience::new(config);
        Self { purpose, connection: None, is_connecting: false, patience }
    }

    /// The last connection, which may be closed by now.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    /// Whether it leads to the broker now, as far as anybody knows.
    pub(crate) fn is_open(&self) -> bool {
        self.connection.as_ref().is_some_and(Connection::is_open)
    }

    /// Connects, after the pause that the last failure asks for; `tell` hears how it ended, and
    /// hands that to [`Self::connected`]. Nothing, while a try is under way.
    pub(crate) fn connect(
        &mut self,
        cluster: &Cluster,
        node: NodeId,
        tell: impl FnOnce(Result<Connection>) + Send + 'static,
    ) {
        if std::mem::replace(&mut self.is_connecting, true) {
            return;
        }
        let (cluster, purpose, pause) = (cluster.clone(), self.purpose, self.patience.pause());
        tokio::spawn(async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            tell(cluster.connection(node, purpose).await);
        });
    }

    /// The try has ended; whether it brought a connection. If not, another broker may lead by now,
    /// so the cluster is asked.
    pub(crate) fn connected(&mut self, tried: Result<Connection>, cluster: &Cluster) -> bool {
        self.is_connecting = false;
        match tried {
            Ok(connection) => {
                self.connection = Some(connection);
                true
            }
            Err(_) => {
                self.patience.failed();
                cluster.ask();
                false
            }
        }
    }

    /// What came on it made sense: it is tried again at once, should it break.
    pub(crate) fn worked(&mut self) {
        self.patience.worked();
    }

    /// What came on it, or did not, made no sense: another connection, after a pause.
    pub(crate) fn failed(&mut self, cluster: &Cluster) {
        self.patience.failed();
        self.connection = None;
        cluster.ask();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::sync::mpsc;

    /// One try at a time, each failure followed by a pause.
    #[tokio::test]
    async fn a_way_that_fails_is_tried_once_at_a_time() {
        let config = ClientConfig::new("127.0.0.1:1");
        let cluster = Cluster::new(config.clone());
        let (tell, mut told) = mpsc::unbounded_channel();
        let mut link = Link::new(&config, Purpose::Fetch);
        for pauses in 0..2 {
            assert_eq!(link.patience.pause().is_zero(), pauses == 0);
            for _ in 0..3 {
                let tell = tell.clone();
                link.connect(&cluster, NodeId(1), move |tried| drop(tell.send(tried)));
            }
            let tried = told.recv().await.expect("an end of the try");
            assert!(!link.connected(tried, &cluster), "nobody knows this broker");
            assert!(told.try_recv().is_err());
        }
        assert!(!link.is_open() && link.connection().is_none());
        link.worked();
        assert_eq!(link.patience.pause(), Duration::ZERO);
    }
}
