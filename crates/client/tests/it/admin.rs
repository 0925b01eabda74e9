//! The administrator against a real broker.

use crate::harness::{admin, bootstrap, topic, unique};
use crate::proxy::{Line, Proxy};
use ottla_client::admin::{ConfigOp, ConfigResource, ConfigSource, GroupFilter};
use ottla_client::{
    Admin, AdminConfig, CommittedOffset, ErrorCode, ErrorKind, NewTopic, Offset, OffsetSpec,
    TopicPartition,
};
use std::time::Duration;

#[tokio::test]
async fn topics_are_created_described_grown_and_deleted() {
    let (admin, name) = (admin(), unique("admin-topics"));
    let created = admin.create_topic(NewTopic::new(&name, 2)).await.unwrap();
    assert_eq!(created.partitions, Some(2));
    let again = admin.create_topic(NewTopic::new(&name, 2)).await.unwrap_err();
    assert_eq!(again.code(), Some(ErrorCode::TopicAlreadyExists));
    assert_eq!(again.kind(), ErrorKind::Refused);

    admin.create_partitions(&name, 5).await.unwrap();
    let described = loop {
        let described = admin.describe_topics([&name]).await.unwrap().remove(0).1.unwrap();
        if described.partitions.len() == 5 {
            break described;
        }
    };
    assert_eq!(described.id, created.id);
    assert!(described.partitions.iter().all(|partition| partition.leader.is_some()));
    assert!(admin.list_topics().await.unwrap().iter().any(|topic| *topic.name == name));

    admin.delete_topic(&name).await.unwrap();
    // Kafka's brokers learn of it a moment after the controller said it was done.
    let gone = loop {
        let mut described = admin.describe_topics([&name]).await.unwrap();
        if let (_, Err(gone)) = described.remove(0) {
            break gone;
        }
    };
    assert_eq!(gone.code(), Some(ErrorCode::UnknownTopicOrPartition));
}

#[tokio::test]
async fn settings_are_read_and_altered() {
    let (admin, name) = (admin(), topic("admin-configs", 1).await);
    let resource = ConfigResource::topic(&name);
    let value = async || {
        let entries = admin.describe_configs(&resource).await.unwrap();
        let entry = entries.into_iter().find(|entry| entry.name == "retention.ms").unwrap();
        (entry.value, entry.source)
    };
    let set = ConfigOp::Set("retention.ms".into(), "86400000".into());
    let outcomes = admin.alter_configs([(resource.clone(), vec![set])]).await.unwrap();
    assert!(outcomes[0].1.is_ok());
    assert_eq!(value().await, (Some("86400000".into()), ConfigSource::Topic));
    let unset = ConfigOp::Unset("retention.ms".into());
    admin.alter_configs([(resource.clone(), vec![unset])]).await.unwrap();
    assert_ne!(value().await.1, ConfigSource::Topic);

    let wrong = ConfigOp::Set("retention.ms".into(), "soon".into());
    let outcomes = admin.alter_configs([(resource.clone(), vec![wrong])]).await.unwrap();
    assert_eq!(outcomes[0].1.as_ref().unwrap_err().code(), Some(ErrorCode::InvalidConfig));
}

#[tokio::test]
async fn a_groups_offsets_are_set_listed_and_deleted() {
    let (admin, name, group) = (admin(), topic("admin-offsets", 2).await, unique("admin-group"));
    let partition = |index| TopicPartition::new(&*name, index);
    let offset = |at| CommittedOffset { metadata: "note".into(), ..CommittedOffset::new(at) };
    let offsets = [(partition(0), offset(Offset(3))), (partition(1), offset(Offset(9)))];
    let outcomes = admin.alter_group_offsets(&group, offsets.clone()).await.unwrap();
    assert!(outcomes.iter().all(|(_, outcome)| outcome.is_ok()), "{outcomes:?}");
    assert_eq!(admin.list_group_offsets(&group).await.unwrap(), offsets);

    let described = admin.describe_group(&group).await.unwrap();
    assert_eq!((described.state.as_str(), described.members.len()), ("Empty", 0));
    let empty = GroupFilter { states: vec!["Empty".into()], ..Default::default() };
    let listed = admin.list_groups(empty).await.unwrap();
    assert!(listed.iter().any(|listing| *listing.group == group));

    admin.delete_group_offsets(&group, [partition(0)]).await.unwrap();
    let left = admin.list_group_offsets(&group).await.unwrap();
    assert_eq!(left, [(partition(1), offset(Offset(9)))]);
    admin.delete_group(&group).await.unwrap();
    let gone = admin.describe_group(&group).await.unwrap_err();
    assert_eq!(gone.code(), Some(ErrorCode::GroupIdNotFound));
}

#[tokio::test]
async fn offsets_are_looked_up_and_unknown_partitions_are_errors() {
    let (admin, name) = (admin(), topic("admin-list-offsets", 1).await);
    let known = TopicPartition::new(&*name, 0);
    let unknown = TopicPartition::new(&*name, 7);
    let wanted = [(unknown.clone(), OffsetSpec::Latest), (known.clone(), OffsetSpec::Earliest)];
    let found = admin.list_offsets(wanted).await.unwrap();
    assert_eq!(found[0].0, unknown);
    let error = found[0].1.as_ref().unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UnknownTopicOrPartition));
    assert_eq!(found[1].1.as_ref().unwrap().offset, Some(Offset(0)));
    let deleted = admin.delete_records([(known, Offset(-1))]).await.unwrap();
    assert_eq!(*deleted[0].1.as_ref().unwrap(), Offset(0));
}

#[tokio::test]
async fn the_cluster_is_described() {
    let cluster = admin().describe_cluster().await.unwrap();
    assert!(cluster.cluster_id.is_some());
    let port = bootstrap().rsplit_once(':').unwrap().1.to_owned();
    assert_eq!(cluster.brokers[0].port.to_string(), port);
}

#[tokio::test]
async fn a_cluster_that_is_not_there_is_a_retriable_error_in_time() {
    let config = AdminConfig::new("127.0.0.1:1").default_api_timeout(Duration::from_millis(300));
    let error = Admin::new(config).unwrap().list_topics().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Retriable);
}

/// A call ends when its time is over, also in the middle of a request that could go on for longer.
#[tokio::test]
async fn a_call_is_cut_at_its_time_though_a_request_may_take_longer() {
    let proxy = Proxy::start().await;
    let config = AdminConfig::new(proxy.address()).default_api_timeout(Duration::from_secs(2));
    let admin = Admin::new(config.request_timeout(Duration::from_secs(600))).unwrap();
    admin.create_topic(NewTopic::new("cut", 1)).await.unwrap();
    admin.list_groups(GroupFilter::default()).await.unwrap();
    proxy.set(Line::BlackHole);
    let calls = async {
        let described = admin.describe_topics(["cut"]).await.map(drop);
        let created = admin.create_topic(NewTopic::new("late", 1)).await.map(drop);
        let listed = admin.list_groups(GroupFilter::default()).await.map(drop);
        [described, created, listed, admin.describe_group("none").await.map(drop)]
    };
    let outcomes = tokio::time::timeout(Duration::from_secs(60), calls).await.unwrap();
    for outcome in outcomes {
        assert!(outcome.unwrap_err().is_retriable());
    }
}
