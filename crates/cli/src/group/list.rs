//! `ottla group list`.

use super::Outcome;
use crate::print::{self, Report, Table};
use crate::progress;
use crate::session::Session;
use clap::Args;
use ottla_client::admin::{GroupFilter, GroupListing};
use serde::Serialize;

/// List groups.
///
/// Exit code 0, with an empty list if there are none.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ottla group list
  ottla group list --state stable --state empty
  ottla group list --type consumer --output json | jq -r '.[].group'")]
pub(super) struct Arguments {
    /// Only groups in this state, such as stable, empty or preparingrebalance; may be repeated
    #[arg(long = "state", value_name = "STATE")]
    states: Vec<String>,
    /// Only groups that speak this protocol: classic or consumer; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
}

pub(super) async fn run(session: &Session, arguments: Arguments) -> Outcome {
    let admin = session.admin()?;
    let filter = GroupFilter { states: arguments.states, types: arguments.types };
    let groups = admin.list_groups(filter);
    let groups = progress::during(&session.asking("asking for the groups"), groups).await?;
    print::report(session.output, &Listing(groups.iter().map(line).collect()))
}

#[derive(Serialize)]
struct Listing(Vec<Line>);

#[derive(Serialize)]
struct Line {
    group: String,
    r#type: String,
    protocol_type: String,
    state: String,
}

fn line(group: &GroupListing) -> Line {
    Line {
        group: group.group.to_string(),
        r#type: group.kind.clone(),
        protocol_type: group.protocol_type.clone(),
        state: group.state.clone(),
    }
}

impl Report for Listing {
    fn text(&self) -> String {
        let mut table = Table::new(["GROUP", "TYPE", "PROTOCOL TYPE", "STATE"]);
        for Line { group, r#type, protocol_type, state } in &self.0 {
            table.row([group, r#type, protocol_type, state].map(|text| text.as_str().into()));
        }
        table.text()
    }
}
