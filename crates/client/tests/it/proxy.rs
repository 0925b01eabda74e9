//! A proxy between the client and a broker that advertises it: all the client's sockets go through
//! here, and the test says what becomes of them.

use crate::harness::TestBroker;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Line {
    /// They arrive.
    Open,
    /// They wait, and arrive once the line is open again.
    Paused,
    /// They vanish, whoever sends them.
    BlackHole,
}

#[derive(Clone, Copy)]
struct State {
    line: Line,
    /// Connections below this number end.
    cut_below: u64,
    /// Connections below this number say nothing any more, for ever, and do not end.
    dead_below: u64,
}

impl State {
    fn holds(&self, number: u64) -> bool {
        number >= self.cut_below && (self.line == Line::Paused || number < self.dead_below)
    }
}

/// A broker whose clients all come through here.
pub(crate) struct Proxy {
    pub(crate) broker: TestBroker,
    address: SocketAddr,
    state: watch::Sender<State>,
    connections: watch::Receiver<u64>,
    _task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let broker =
            TestBroker::start_with(&[("advertised.listeners", &format!("PLAINTEXT://{address}"))]);
        let (state, states) =
            watch::channel(State { line: Line::Open, cut_below: 0, dead_below: 0 });
        let (count, connections) = watch::channel(0);
        let target = broker.address();
        let task = tokio::spawn(async move {
            loop {
                let Ok((client, _)) = listener.accept().await else { return };
                let number = *count.borrow();
                count.send_replace(number + 1);
                tokio::spawn(connection(client, target.clone(), number, states.clone()));
            }
        });
        Self { broker, address, state, connections, _task: task }
    }

    /// What clients connect to.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// What becomes of all bytes from now on.
    pub(crate) fn set(&self, line: Line) {
        self.state.send_modify(|state| state.line = line);
    }

    /// Closes every connection there is.
    pub(crate) fn cut(&self) {
        let next = *self.connections.borrow();
        self.state.send_modify(|state| state.cut_below = next);
    }

    /// The connections there are stay open and say nothing any more; new ones work.
    pub(crate) fn freeze(&self) {
        let next = *self.connections.borrow();
        self.state.send_modify(|state| state.dead_below = next);
    }
}

async fn connection(
    client: TcpStream,
    target: String,
    number: u64,
    mut states: watch::Receiver<State>,
) {
    // A broker that is away closes what it does not know.
    let Ok(broker) = TcpStream::connect(target).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_broker, to_broker) = broker.into_split();
    let there = pump(from_client, to_broker, number, states.clone());
    let back = pump(from_broker, to_client, number, states.clone());
    tokio::select! {
        () = there => {}
        () = back => {}
        _ = states.wait_for(|state| number < state.cut_below) => {}
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    number: u64,
    mut states: watch::Receiver<State>,
) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let Ok(state) = states.wait_for(|state| !state.holds(number)).await.map(|state| *state)
        else {
            return;
        };
        if state.line == Line::BlackHole {
            continue;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
