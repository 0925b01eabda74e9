//! What the machine can do right now, without any broker: the denominators of every figure, and the
//! sign of whether a neighbour was busy.

use super::echo::EchoServer;
use crate::Outcome;
use crate::figures::{Figures, count, latencies};
use crate::link::Link;
use crate::storm::{Pace, Source, Storm};
use clap::Args;
use ottla_wire::ApiKey;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Its arguments.
#[derive(Args, Debug)]
pub(crate) struct Limits {
    /// Where files are written; on the disk the brokers use
    #[arg(long)]
    folder: PathBuf,
    /// Milliseconds for each limit
    #[arg(long, default_value_t = 500)]
    millis: u64,
}

impl Limits {
    /// Measures each limit in turn.
    pub(crate) async fn run(self) -> Outcome<Figures> {
        let time = Duration::from_millis(self.millis);
        let mut figures = Figures::default();
        figures.add("memcpy, GB/s", memcpy(time));
        figures.add("crc32c, GB/s", crc(time));
        figures.add("bare system call, ns", system_call(time));
        figures.add("loopback 1 MiB writes, GB/s", loopback(time).map_err(|e| e.to_string())?);
        figures.add("append to a fresh file, GB/s", self.append(time).map_err(|e| e.to_string())?);
        self.sync(time, &mut figures).map_err(|error| error.to_string())?;
        for depth in [1, 5, 16] {
            echo(depth, time, &mut figures).await?;
        }
        Ok(figures)
    }

    /// Gigabytes per second of one writer into the page cache.
    fn append(&self, time: Duration) -> std::io::Result<f64> {
        fs::create_dir_all(&self.folder)?;
        let path = self.folder.join("limits-append");
        let mut file = File::create(&path)?;
        let rate = rate(time, || file.write_all(&CHUNK).map(|()| CHUNK.len()))?;
        drop(file);
        fs::remove_file(path)?;
        Ok(rate / 1e9)
    }

    /// How long the disk takes to promise 4 KiB.
    fn sync(&self, time: Duration, figures: &mut Figures) -> std::io::Result<()> {
        let path = self.folder.join("limits-sync");
        let mut file = File::create(&path)?;
        let (mut latencies, begun) = (latencies(), Instant::now());
        while begun.elapsed() < time {
            file.write_all(&CHUNK[..4096])?;
            let asked = Instant::now();
            file.sync_data()?;
            count(&mut latencies, asked.elapsed());
        }
        figures.add_latencies("fdatasync of 4 KiB", &latencies);
        drop(file);
        fs::remove_file(path)
    }
}

/// Bytes per second of a piece of work that is repeated.
fn rate(time: Duration, mut work: impl FnMut() -> std::io::Result<usize>) -> std::io::Result<f64> {
    let (mut bytes, begun) = (0, Instant::now());
    while begun.elapsed() < time {
        bytes += work()?;
    }
    Ok(bytes as f64 / begun.elapsed().as_secs_f64())
}

fn memcpy(time: Duration) -> f64 {
    let (from, mut to) = (vec![7_u8; 16 << 20], vec![0_u8; 16 << 20]);
    let copied = rate(time, || {
        to.copy_from_slice(black_box(&from));
        black_box(&to);
        Ok(from.len())
    });
    copied.unwrap_or(0.0) / 1e9
}

fn crc(time: Duration) -> f64 {
    let summed = rate(time, || {
        black_box(crc32c::crc32c(black_box(&CHUNK)));
        Ok(CHUNK.len())
    });
    summed.unwrap_or(0.0) / 1e9
}

fn system_call(time: Duration) -> f64 {
    const AT_ONCE: usize = 1000;
    let called = rate(time, || {
        for _ in 0..AT_ONCE {
            black_box(rustix::process::getppid());
        }
        Ok(AT_ONCE)
    });
    called.map_or(0.0, |per_second| 1e9 / per_second)
}

fn loopback(time: Duration) -> std::io::Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut writer = TcpStream::connect(listener.local_addr()?)?;
    let (mut reader, _) = listener.accept()?;
    let reading = std::thread::spawn(move || {
        let mut buffer = vec![0; CHUNK.len()];
        while reader.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    let written = rate(time, || writer.write_all(&CHUNK).map(|()| CHUNK.len()));
    drop(writer);
    let _ = reading.join();
    Ok(written? / 1e9)
}

/// 64 connections to a server that does nothing.
async fn echo(depth: usize, time: Duration, figures: &mut Figures) -> Outcome<()> {
    let server = EchoServer::start()?;
    let mut connections = Vec::new();
    for _ in 0..64 {
        connections.push((Link::silent(&server.address).await?, Sixty));
    }
    let storm = Storm { pace: Pace::InFlight(depth), warmup: time / 2, measured: time * 2 };
    let (tally, _) = storm.run(connections, server.process()).await?;
    let name = format!("echo of 64 B, depth {depth}");
    figures.add(format!("{name}, per second"), tally.answers / tally.seconds);
    figures.add(format!("{name}, per server CPU-s"), tally.per_cpu_second());
    if depth == 1 {
        figures.add_latencies(&name, &tally.latencies);
    }
    Ok(())
}

/// A frame of 64 bytes, its length included.
struct Sixty;

impl Source for Sixty {
    fn write(&mut self, id: i32, out: &mut Vec<u8>) {
        out.extend_from_slice(&60_i32.to_be_bytes());
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&[0; 56]);
    }

    fn check(&mut self, _id: i32, body: &[u8]) -> Outcome<()> {
        if body.len() == 56 { Ok(()) } else { Err("an echo of another length".into()) }
    }

    fn answers(&self) -> (ApiKey, i16) {
        // Its response has the one header that is a correlation id and nothing else.
        (ApiKey::ApiVersions, 0)
    }
}

static CHUNK: [u8; 1 << 20] = [7; 1 << 20];
