//! The pages of `docs/` that are made from tables in the code, held against those tables.
//! `OTTLA_REWRITE=1 cargo test -p ottla-broker --test docs` writes them anew.

use ottla_broker::config::{Config, GROUP_SETTINGS, SETTINGS, Setting};
use ottla_cluster::config::{self, Registry};
use ottla_wire::{APIS, Api, Versions};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

#[test]
fn compatibility_page_is_the_table_of_apis() {
    check("compatibility.md", &compatibility());
}

#[test]
fn configuration_page_is_the_table_of_settings() {
    check("configuration.md", &configuration());
}

fn check(page: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    if std::env::var_os("OTTLA_REWRITE").is_some() {
        std::fs::write(&path, expected).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/{page} is stale: OTTLA_REWRITE=1 cargo test --test docs");
}

fn compatibility() -> String {
    let mut page = String::from(
        "# Compatibility\n\n\
         Made from the table in `crates/wire/src/api.rs`, which also answers ApiVersions.\n\
         Reference: Apache Kafka 4.4.\n\n\
         A request in a version that is not accepted is answered as Kafka does: ApiVersions with\n\
         its version 0 and UNSUPPORTED_VERSION, anything else with a closed connection.\n\n\
         ## Served\n\n| key | API | accepted | advertised |\n|---|---|---|---|\n",
    );
    for api in APIS.iter().filter(|api| api.served) {
        let (accepted, advertised) = (range(api.accepted), range(api.advertised));
        let _ = writeln!(page, "{} {accepted} | {advertised} |", row(api));
    }
    page += "\n## Known, and not served\n\nNot advertised; the connection is closed.\n\n";
    page += "| key | API | versions in Kafka 4.4 |\n|---|---|---|\n";
    for api in APIS.iter().filter(|api| !api.served) {
        let _ = writeln!(page, "{} {} |", row(api), range(api.accepted));
    }
    page += "\n## Settings of consumer groups\n\n\
             Kafka's `group.consumer.*` settings are served under their names \
             (`configuration.md`), but for two that could\nnot take effect here and are refused: \
             `group.consumer.assignor.offload.enable`, because assignments are always \
             computed in\nslices between which every other group is heard, and \
             `group.consumer.regex.refresh.interval.ms`, because patterns are\nmatched whenever \
             topics change and never by the clock. `group.consumer.assignors` takes the \
             built-in ones by name,\nno classes. Defaults that differ are said there.\n";
    page
}

fn row(api: &Api) -> String {
    format!("| {} | {} |", api.key.number(), api.key)
}

fn range(versions: Versions) -> String {
    let Versions { min, max } = versions;
    if min == max { min.to_string() } else { format!("{min}-{max}") }
}

fn configuration() -> String {
    let mut page = String::from(
        "# Configuration\n\n\
         Made from the tables of settings in the code. A value comes from a flag, else from the \
         environment, else from\nthe file given by `--config` (TOML), else it is the default. \
         `node.id` is `OTTLA_NODE_ID` in the environment,\n`node.id = 1` in the file and \
         `--set node.id=1` on the command line. An unknown name is an error.\n\n\
         Names are Kafka's where Kafka has the setting; the others are marked *ours*.\n\n\
         ## Broker\n\n",
    );
    let defaults = Config::default();
    for setting in SETTINGS {
        page += &section(setting, &defaults);
    }
    let registry = Registry::new(&[], &[], BTreeMap::new()).expect("nothing to refuse");
    page += "## Defaults of topics\n\nAlso changed while brokers run, for one or for all, unless \
             marked *fixed*.\n\n";
    page += &table(registry.broker_settings());
    page += "\n## Topics\n\nSet when a topic is created or changed. Any other setting of Kafka's \
             is refused by name.\n\n";
    page += &table(registry.topic_settings());
    page += "\n## Groups\n\nSet for one group at any time (the GROUP resource of AlterConfigs; \
             `kafka-configs --entity-type groups`). The times of consumer groups also keep within \
             `group.consumer.min.*` and\n`group.consumer.max.*` of the broker.\n\n";
    page += &table(GROUP_SETTINGS.iter());
    page
}

fn table(settings: impl Iterator<Item = &'static config::Setting>) -> String {
    let mut table = String::from("| name | type | default | |\n|---|---|---|---|\n");
    for setting in settings {
        let (name, default) = (setting.name, setting.default.unwrap_or("none"));
        let kind = format!("{:?}", setting.kind).to_lowercase();
        let fixed = if setting.scope == config::Scope::ReadOnly { ", fixed" } else { "" };
        let bounds = bounds(setting.check);
        let _ =
            writeln!(table, "| `{name}` | {kind}{fixed}{bounds} | `{default}` | {} |", setting.doc);
    }
    table
}

fn bounds(check: config::Check) -> String {
    match check {
        config::Check::Any => String::new(),
        config::Check::AtLeast(least) => format!(", at least {least}"),
        config::Check::Between(least, most) => format!(", {least} to {most}"),
        config::Check::Ratio => ", 0 to 1".into(),
        config::Check::OneOf(known) => format!(": {}", known.join(", ")),
        config::Check::Only(only, why) => format!(", {only} alone: {why}"),
    }
}

fn section(setting: &Setting, defaults: &Config) -> String {
    let ours = if setting.ours { ", ours" } else { "" };
    let bounds = match setting.bounds() {
        bounds if bounds.is_empty() => String::new(),
        bounds => format!(", {bounds}"),
    };
    let value = match setting.value(defaults) {
        value if value.is_empty() => "empty".to_owned(),
        value => format!("`{value}`"),
    };
    let doc: Vec<&str> = setting.doc.lines().map(str::trim).collect();
    let (name, kind, doc) = (setting.name, setting.kind, doc.join("\n").trim().to_owned());
    format!("### `{name}`\n\n{kind}{bounds}{ours}; default {value}\n\n{doc}\n\n")
}
