//! Plans, one situation of a data directory at a time.

use super::*;
use crate::config::Registry;
use crate::record::{DeletedRecord, TopicRecord, deleted_key, put, topic_key};
use crate::store::{Change, Entry, Op, Revision};
use proptest::prelude::*;
use std::sync::Arc;

const ME: NodeId = NodeId(1);
const OLD: TopicId = TopicId([1; 16]);
const NEW: TopicId = TopicId([2; 16]);
const ALIEN: TopicId = TopicId([9; 16]);
const HEX: &str = "0102030405060708090a0b0c0d0e0f10";

/// Topic `t` with two partitions here and one elsewhere, and an earlier `t` being deleted.
fn image() -> Image {
    let replicas = vec![vec![ME], vec![ME], vec![NodeId(2)]];
    let deleted = DeletedRecord { name: "gone".into(), partitions: 1, pending: vec![1] };
    let older = DeletedRecord { name: "t".into(), partitions: 1, pending: vec![1] };
    image_of(vec![
        put(topic_key("t"), &TopicRecord { id: NEW, replicas }),
        put(deleted_key(OLD), &older),
        put(deleted_key(TopicId([3; 16])), &deleted),
    ])
}

fn image_of(ops: Vec<Op>) -> Image {
    let registry = Arc::new(Registry::new(&[], &[], Default::default()).unwrap());
    let changes: Vec<_> = ops.into_iter().filter_map(change).collect();
    Image::empty(ME, registry).after(Revision(1), &changes).unwrap()
}

fn change(op: Op) -> Option<Change> {
    let Op::Put { key, value, session } = op else { return None };
    Some(Change::Put(Entry { key, value, revision: Revision(1), session }))
}

fn found(folder: &str, topic_id: Option<TopicId>) -> Found {
    Found { folder: folder.into(), topic_id }
}

fn check(folders: &[Found], expected: &[&str]) {
    let told: Vec<_> = plan(&image(), ME, folders)
        .into_iter()
        .map(|action| match action {
            Action::Delete { folder } => format!("delete {folder}"),
            Action::Remove { folder } => format!("remove {folder}"),
            Action::SetAside { folder, .. } => format!("set aside {folder}"),
            Action::Open { at, .. } => format!("open {at}"),
            Action::Create { at, .. } => format!("create {at}"),
        })
        .collect();
    assert_eq!(told, expected);
}

#[test]
fn what_the_image_shows_is_opened_or_made() {
    check(&[], &["create t-0", "create t-1"]);
    check(&[found("t-1", Some(NEW))], &["open t-1", "create t-0"]);
    // A crash between making the folder and its metadata: there is no record in it yet.
    check(&[found("t-0", None)], &["open t-0", "create t-1"]);
}

/// Issue 3: a recreated topic inherits nothing, also if the broker died before it cleared away.
#[test]
fn a_folder_of_the_deleted_namesake_gives_way() {
    check(&[found("t-0", Some(OLD))], &["delete t-0", "create t-0", "create t-1"]);
}

#[test]
fn a_deletion_is_resumed_wherever_it_stopped() {
    let renamed = format!("gone-0.{HEX}-delete");
    check(&[found(&renamed, None)], &[&format!("remove {renamed}"), "create t-0", "create t-1"]);
    let fresh = TopicId([3; 16]);
    check(&[found("gone-0", Some(fresh))], &["delete gone-0", "create t-0", "create t-1"]);
    check(&[found("gone-0", None)], &["delete gone-0", "create t-0", "create t-1"]);
}

/// Data nobody can explain is never removed.
#[test]
fn strangers_are_set_aside_and_foreign_folders_left_alone() {
    let strangers = [
        found("t-0", Some(ALIEN)),
        found("other-0", Some(ALIEN)),
        found("other-1", None),
        found("t-2", Some(NEW)),
        found("t-9", Some(NEW)),
    ];
    let aside = ["t-0", "other-0", "other-1", "t-2", "t-9"].map(|name| format!("set aside {name}"));
    let mut expected: Vec<_> = aside.iter().map(String::as_str).collect();
    expected.extend(["create t-0", "create t-1"]);
    check(&strangers, &expected);
    let foreign = ["meta", "lost+found", ".lock", "x-01", "x-1a", "-0", "notes-new"];
    let stray = format!("t-0.{HEX}-stray");
    let foreign: Vec<_> =
        foreign.into_iter().chain([&*stray]).map(|name| found(name, None)).collect();
    check(&foreign, &["create t-0", "create t-1"]);
}

/// A topic's own name may look like a marked one.
#[test]
fn marks_are_told_from_topic_names() {
    let at = |topic: &str, partition| Name::Partition(TopicPartition::new(topic, partition));
    assert_eq!(parse("a-delete-0"), at("a-delete", 0));
    assert_eq!(parse("t-7"), at("t", 7));
    assert_eq!(parse(&format!("t-7.{HEX}-delete")), Name::Deletion);
    assert_eq!(parse(&format!("t-7.{HEX}-stray")), Name::Stray);
    assert_eq!(parse("t-7.zz-delete"), Name::Foreign);
    assert_eq!(parse("t-2147483648"), Name::Foreign);
}

proptest! {
    #[test]
    fn names_go_there_and_back(
        topic in "[a-zA-Z0-9._-]{1,249}",
        partition in 0..i32::MAX,
        unique: [u8; 16],
    ) {
        prop_assume!(topic != "." && topic != "..");
        let at = TopicPartition::new(&*topic, partition);
        prop_assert_eq!(parse(&folder_name(&at)), Name::Partition(at.clone()));
        let doomed = deletion_name(&at, unique);
        prop_assert!(doomed.len() <= 255);
        prop_assert_eq!(parse(&doomed), Name::Deletion);
        prop_assert_eq!(parse(&stray_name(&at, unique)), Name::Stray);
    }

    #[test]
    fn any_folder_is_judged_without_panic(
        folder in ".{0,80}",
        id in prop::option::of(any::<[u8; 16]>()),
    ) {
        let actions = plan(&image(), ME, &[Found { folder, topic_id: id.map(TopicId) }]);
        prop_assert!(actions.len() >= 2);
    }
}
