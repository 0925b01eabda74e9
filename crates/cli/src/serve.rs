//! `ottla serve`: gathers the settings, runs a broker until it is told to stop, says what it does.
//!
//! Standard output carries what a person or a script needs to know about this run; the broker's
//! log goes to standard error, filtered by `OTTLA_TRACE` (`info` by default).

use clap::Args;
use ottla_broker::config::{Config, ConfigError, Source};
use ottla_broker::{Server, StartError};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// Run a broker until SIGTERM or ctrl-c
///
/// A setting comes from a flag, else from its OTTLA_* variable, else from the file, else it is
/// the default; docs/configuration.md has them all. What the broker logs goes to standard
/// error; OTTLA_TRACE=debug says more.
///
/// Exit codes: 0 stopped on request, 1 stopped with requests unanswered, 2 unusable settings, 3
/// cannot start (address or data directory in use).
#[derive(Args)]
pub(super) struct Arguments {
    /// Where to listen: HOST:PORT or NAME://HOST:PORT, port 0 for any; may be repeated
    #[arg(long, value_name = "HOST:PORT")]
    listen: Vec<String>,
    /// What clients are told to connect to, per listener: HOST:PORT or NAME://HOST:PORT
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Vec<String>,
    /// The directory that holds all data
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// A TOML file of settings
    #[arg(long, value_name = "FILE", env = "OTTLA_CONFIG")]
    config: Option<PathBuf>,
    /// Where to serve metrics and health, or "off"
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// Any setting; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

/// Runs a broker until SIGTERM or ctrl-c.
pub(super) fn run(arguments: Arguments) -> ExitCode {
    let config = match settings(arguments) {
        Ok(config) => config,
        Err(problem) => return fail(2, &problem),
    };
    if let Err(problem) = start_log() {
        return fail(2, &problem);
    }
    raise_open_files();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(3, &format!("cannot start threads: {error}")),
    };
    let code = runtime.block_on(serve(config));
    // What is still running has had its time.
    runtime.shutdown_background();
    code
}

async fn serve(config: Config) -> ExitCode {
    // Signals are caught before anybody can be told that the broker is up.
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
        return fail(3, "cannot catch signals");
    };
    let server = match Server::start(config).await {
        Ok(server) => server,
        Err(error @ StartError::Config(_)) => return fail(2, &error.to_string()),
        Err(error) => return fail(3, &error.to_string()),
    };
    say(&greeting(&server));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    say("stopping: answering what is in flight (once more to stop at once)");
    let in_time = tokio::select! {
        in_time = server.stop() => in_time,
        _ = terminate.recv() => return fail(1, "stopped at once"),
        _ = interrupt.recv() => return fail(1, "stopped at once"),
    };
    if in_time {
        say("stopped");
        return ExitCode::SUCCESS;
    }
    fail(1, "not everything could be answered in time (shutdown.grace.ms)")
}

fn settings(arguments: Arguments) -> Result<Config, String> {
    let mut config = Config::default();
    if let Some(path) = &arguments.config {
        let at = |problem: String| format!("{}: {problem}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| at(error.to_string()))?;
        config.apply_toml(&text).map_err(|error| at(error.to_string()))?;
    }
    let text = |error: ConfigError| error.to_string();
    // Values that are not Unicode cannot be settings.
    let variables = std::env::vars_os();
    let variables = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    config.apply_environment(variables).map_err(text)?;
    for (name, value) in flags(&arguments)? {
        config.set(name, &value, Source::Flag).map_err(text)?;
    }
    config.listener_specs().map_err(text)?;
    Ok(config)
}

fn flags(arguments: &Arguments) -> Result<Vec<(&str, String)>, String> {
    let mut flags = Vec::new();
    if !arguments.listen.is_empty() {
        flags.push(("listeners", arguments.listen.join(",")));
    }
    if !arguments.advertise.is_empty() {
        flags.push(("advertised.listeners", arguments.advertise.join(",")));
    }
    flags.extend(arguments.data.iter().map(|data| ("log.dirs", data.clone())));
    let http = |http: &String| if http == "off" { String::new() } else { http.clone() };
    flags.extend(arguments.http.iter().map(|address| ("http.listen", http(address))));
    for pair in &arguments.set {
        let (name, value) =
            pair.split_once('=').ok_or_else(|| format!("--set {pair}: not NAME=VALUE"))?;
        flags.push((name.trim(), value.to_owned()));
    }
    Ok(flags)
}

fn greeting(server: &Server) -> String {
    let mut text = format!("ottla {}\n", env!("CARGO_PKG_VERSION"));
    for listener in server.listeners() {
        text += &format!("  listening  {} {}", listener.name, listener.bound);
        text += &format!(", clients connect to {}\n", listener.advertised());
    }
    text += &format!("  data       {}\n", server.data_dir().display());
    if let Some(address) = server.http_address() {
        text += &format!("  metrics    http://{address}/metrics\n");
    }
    if let Some(listener) = server.listeners().next() {
        text += &format!("  try it     kcat -b {} -L\n", listener.advertised());
    }
    text += "  stop it    ctrl-c";
    text
}

/// Each log keeps files open. Systems give processes few by default and many on request.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it is refused, opening too many files will say so.
    let _ = setrlimit(Resource::Nofile, limit);
}

fn start_log() -> Result<(), String> {
    let wanted = std::env::var("OTTLA_TRACE").unwrap_or_else(|_| "info".into());
    let filter = tracing_subscriber::EnvFilter::try_new(&wanted)
        .map_err(|error| format!("OTTLA_TRACE={wanted}: {error}"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    Ok(())
}

/// Whoever reads may be gone; that is no reason to stop serving.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn fail(code: u8, problem: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr().lock(), "ottla serve: {problem}");
    ExitCode::from(code)
}
