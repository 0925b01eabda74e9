//! `docs/register-protocol.md` cannot rot: its session is written by a test, its table names tests
//! that exist, and it has a row for every statement.
//!
//! `OTTLA_REWRITE=1 cargo test -p ottla-cli --test register` writes the session anew.

use std::fs;
use std::path::{Path, PathBuf};

fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(relative)
}

fn read(relative: &str) -> String {
    let path = path(relative);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Holds the page's block of this name, from `<!-- NAME -->` on, against `expected`.
pub(crate) fn check_block(name: &str, expected: &str) {
    let page = read(PAGE);
    let opening = format!("<!-- {name} -->\n\n```text\n");
    let (before, rest) = page.split_once(&opening).expect("the page has the block");
    let (block, after) = rest.split_once("```\n").expect("the block ends");
    if std::env::var_os("OTTLA_REWRITE").is_some() {
        let expected = expected.trim_start();
        let page = format!("{before}{opening}{expected}```\n{after}");
        fs::write(path(PAGE), page).expect("the page can be written");
        return;
    }
    assert!(block.trim() == expected.trim(), "stale, the session is:\n{expected}");
}

#[test]
fn every_statement_has_a_row_and_every_test_in_it_exists() {
    let page = read(PAGE);
    let sources: Vec<String> = SOURCES.iter().map(|source| read(source)).collect();
    for number in 1..=38 {
        let start = format!("| S{number} |");
        let row = page.lines().find(|line| line.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("S{number} has no row"));
        let proof = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let tests: Vec<_> = proof.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "{row}");
        for test in tests {
            let found = match test.strip_suffix(".txt") {
                Some(_) => path(SCENARIOS).join(test).is_file(),
                None => sources.iter().any(|source| source.contains(&format!("fn {test}("))),
            };
            assert!(found, "S{number}: there is no test {test}");
        }
    }
}

const PAGE: &str = "docs/register-protocol.md";
const SCENARIOS: &str = "crates/group/tests/scenarios";
/// Where the tests are that the table names.
const SOURCES: &[&str] = &[
    "crates/cli/tests/register/death.rs",
    "crates/cli/tests/register/failover.rs",
    "crates/cli/tests/register/hostile.rs",
    "crates/cli/tests/register/steady.rs",
    "crates/cli/tests/register/transcript.rs",
    "crates/client/tests/it/examples.rs",
    "crates/client/tests/it/register.rs",
    "crates/client/tests/it/sockets.rs",
    "crates/group/src/member/tests/register.rs",
    "crates/group/src/message/register/tests.rs",
    "crates/wire/src/convert/tests/register.rs",
];
