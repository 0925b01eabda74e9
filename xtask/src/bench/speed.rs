//! One run of a speed program (`matrix/README.md`): it warms up, then what it does is counted
//! between its two lines. A run that says nothing for too long is killed.

use super::process::cpu_seconds;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Seconds and CPU-seconds of the measured phase. Each phase, and the program's end, must come
/// within `limit` of what was before.
pub fn run(command: Command, limit: Duration) -> Result<(f64, f64), String> {
    let mut program = Program::start(command, limit)?;
    let (_, cpu_before) = program.phase("warm")?;
    program.go_on()?;
    let (seconds, cpu) = program.phase("done")?;
    program.end()?;
    Ok((seconds, cpu - cpu_before))
}

/// The process, which does not outlive this.
struct Program {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    limit: Duration,
}

impl Program {
    fn start(mut command: Command, limit: Duration) -> Result<Self, String> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("cannot start: {error}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("no output")?;
        let (sender, lines) = mpsc::channel();
        // Ends with the process's output, and no wait for a line is longer than its limit.
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            let _ = lines.map(|line| sender.send(line)).take_while(Result::is_ok).count();
        });
        Ok(Self { child, input, lines, limit })
    }

    /// The seconds it says, and the CPU time its process had used by then.
    fn phase(&mut self, word: &str) -> Result<(f64, f64), String> {
        let line = self.lines.recv_timeout(self.limit).map_err(|error| match error {
            RecvTimeoutError::Timeout => self.too_long(&format!("before `{word}`")),
            RecvTimeoutError::Disconnected => format!("it ended before `{word}`"),
        })?;
        let cpu = cpu_seconds(self.child.id())?;
        let rest = line.strip_prefix(word).ok_or(format!("it said `{line}`"))?;
        let seconds = rest.split_whitespace().nth(1).and_then(|seconds| seconds.parse().ok());
        Ok((seconds.ok_or("it said no seconds")?, cpu))
    }

    fn go_on(&mut self) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("no input")?;
        input.write_all(b"\n").map_err(|error| error.to_string())
    }

    /// Closes its input, upon which it ends, and with it its output.
    fn end(mut self) -> Result<(), String> {
        self.input = None;
        match self.lines.recv_timeout(self.limit) {
            Err(RecvTimeoutError::Disconnected) => Ok(()),
            Err(RecvTimeoutError::Timeout) => Err(self.too_long("after `done`")),
            Ok(line) => Err(format!("it said `{line}` after `done`")),
        }
    }

    fn too_long(&self, when: &str) -> String {
        format!("killed: it said nothing for {} s {when}", self.limit.as_secs())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn shell(script: &str, limit: Duration) -> Result<(f64, f64), String> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, limit)
    }

    #[test]
    fn what_its_second_line_says_is_counted() {
        let said = shell(
            "echo warm 1 0.5; read line; echo done 2 1.5; read line",
            Duration::from_secs(60),
        );
        assert_eq!(said.map(|(seconds, _)| seconds), Ok(1.5));
    }

    /// A Java producer hung in one of three runs, and the bench with it.
    #[test]
    fn a_run_that_hangs_is_killed_and_named() {
        let begun = Instant::now();
        let limit = Duration::from_millis(300);
        let hung = shell("echo warm 1 0.5; read line; exec sleep 600", limit);
        assert_eq!(hung, Err("killed: it said nothing for 0 s before `done`".into()));
        assert!(begun.elapsed() < Duration::from_secs(300));
    }

    #[test]
    fn a_run_that_fails_is_no_figure() {
        let failed = shell("exit 3", Duration::from_secs(60));
        assert_eq!(failed, Err("it ended before `warm`".into()));
    }
}
