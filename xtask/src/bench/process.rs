//! What the operating system counts of a process: memory held and CPU time spent.

use std::fs;

/// Linux counts CPU time in these ticks for every program, whatever its own timer.
const TICKS_PER_SECOND: f64 = 100.0;

/// Resident memory in MiB.
pub fn resident_mib(id: u32) -> Result<f64, String> {
    let status = read(&format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kib.map(|kib| kib / 1024.0).ok_or_else(|| format!("no VmRSS of process {id}"))
}

/// CPU seconds spent so far, in user and system mode together.
pub fn cpu_seconds(id: u32) -> Result<f64, String> {
    let stat = read(&format!("/proc/{id}/stat"))?;
    // The command's name may hold spaces; fields are counted from behind its closing bracket.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks: Vec<f64> =
        after.split_whitespace().skip(11).take(2).filter_map(|word| word.parse().ok()).collect();
    match ticks[..] {
        [user, system] => Ok((user + system) / TICKS_PER_SECOND),
        _ => Err(format!("no CPU time of process {id}")),
    }
}

/// The machine in a line.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.and_then(|text| text.split_once(':')).map_or("?", |(_, name)| name.trim());
    format!("{cores} cores, {model}")
}

/// The load of the last minute, as the operating system says it.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}
