//! Programs that run beside us: their output goes to a file, and none outlives its handle.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running program whose output lands in a log file. Dropping it kills it.
pub struct Background {
    name: String,
    child: Child,
    log: PathBuf,
    started: Instant,
}

impl Background {
    /// Starts `command` with no input and with both outputs in `log`.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Result<Self, String> {
        let file = create(log)?;
        let copy = file.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file).stderr(copy);
        let started = Instant::now();
        let child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
        Ok(Self { name: name.into(), child, log: log.into(), started })
    }

    /// The process's id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How long ago it was started.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// The file its output goes to.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Looks every 2 ms for `seek` to find something, as long as the program lives.
    pub fn wait_for<T>(
        &mut self,
        timeout: Duration,
        mut seek: impl FnMut(&Path) -> Option<T>,
    ) -> Result<T, String> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(found) = seek(&self.log) {
                return Ok(found);
            }
            let ended = self.child.try_wait().map_err(|error| error.to_string())?;
            if let Some(status) = ended {
                return Err(format!("{} ended ({status}):\n{}", self.name, tail(&self.log)));
            }
            if Instant::now() > deadline {
                let waited = timeout.as_secs();
                let said = tail(&self.log);
                return Err(format!("{} not ready in {waited} s:\n{said}", self.name));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Asks it to end (SIGTERM) and waits; a program that will not is killed and reported.
    pub fn terminate(mut self, timeout: Duration) -> Result<(), String> {
        signal(&self.child, "TERM")?;
        let deadline = Instant::now() + timeout;
        while Instant::now() < deadline {
            if self.child.try_wait().map_err(|error| error.to_string())?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("{} did not end within {} s of SIGTERM", self.name, timeout.as_secs()))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running command that ends by itself, with a limit on how long we wait for that.
pub struct Call {
    child: Child,
    log: PathBuf,
}

impl Call {
    /// Starts a command that reads `input`; both its outputs go to `log`.
    pub fn start(mut command: Command, log: &Path, input: &str) -> Result<Self, String> {
        let output = create(log)?;
        let errors = output.try_clone().map_err(|error| error.to_string())?;
        command.stdin(Stdio::piped()).stdout(output).stderr(errors);
        let mut child = command.spawn().map_err(|error| format!("cannot start: {error}"))?;
        if let Some(mut pipe) = child.stdin.take() {
            // A program that does not read its input is free not to.
            let _ = pipe.write_all(input.as_bytes());
        }
        Ok(Self { child, log: log.into() })
    }

    /// Waits for its end and returns what it printed; the error of a failure carries it too.
    pub fn wait(mut self, timeout: Duration) -> Result<String, String> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => break,
                Some(status) => return Err(format!("{status}: {}", tail(&self.log))),
                None if Instant::now() > deadline => {
                    let waited = timeout.as_secs();
                    return Err(format!("still running after {waited} s: {}", tail(&self.log)));
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        self.output()
    }

    /// What it printed until it ended or the time was over, whichever comes first.
    pub fn output_within(mut self, time: Duration) -> Result<String, String> {
        let deadline = Instant::now() + time;
        while self.child.try_wait().map_err(|error| error.to_string())?.is_none() {
            if Instant::now() > deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.output()
    }

    fn output(&self) -> Result<String, String> {
        let bytes = fs::read(&self.log).map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal by the system's `kill`, since the standard library knows SIGKILL alone.
pub fn signal(child: &Child, name: &str) -> Result<(), String> {
    let status = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status();
    status.map(drop).map_err(|error| format!("kill: {error}"))
}

/// Creates a file and the folders above it.
pub fn create(path: &Path) -> Result<File, String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    File::create(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The last lines of a log, for an error message.
pub fn tail(log: &Path) -> String {
    const LINES: usize = 15;
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
