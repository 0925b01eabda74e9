"""kafka-python."""

import threading

import kafka
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import CommitFailedError, RebalanceInProgressError

import common
from common import emit, offset_list, partition_list

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def create_topic(args):
    admin = KafkaAdminClient(bootstrap_servers=args.bootstrap)
    admin.create_topics([NewTopic(args.topic, args.partitions, 1)])
    admin.close()


def produce(args):
    producer = KafkaProducer(
        bootstrap_servers=args.bootstrap,
        compression_type=None if args.codec == "none" else args.codec,
        enable_idempotence=args.idempotent,
        acks="all",
        linger_ms=5,
    )
    sends = [
        producer.send(args.topic, key=key, value=value)
        for key, value in common.keyed_records(args)
    ]
    producer.flush()
    for send in sends:
        send.get(timeout=60)
    producer.close()
    emit(f"produced {len(sends)}")


class Progress(ConsumerRebalanceListener):
    """What was read and is not yet committed. A cooperative consumer reads on while its group
    rebalances, so a commit may fail and must then be made before the partition goes."""

    def __init__(self, consumer):
        self.consumer = consumer
        self.uncommitted = {}

    def take(self, polled):
        emit(
            *(
                common.record_line(r.partition, r.offset, r.key, r.value)
                for records in polled.values()
                for r in records
            )
        )
        self.uncommitted |= {p.partition: r[-1].offset + 1 for p, r in polled.items()}
        self.commit()

    def commit(self):
        if not self.uncommitted:
            return
        try:
            self.consumer.commit()
        except (CommitFailedError, RebalanceInProgressError) as failure:
            emit(f"error commit: {failure}")
        else:
            emit(f"committed {offset_list(self.uncommitted)}")
            self.uncommitted.clear()

    def on_partitions_assigned(self, assigned):
        emit(f"assigned {partition_list(assigned)}")

    def on_partitions_revoked(self, revoked):
        self.commit()
        self.on_partitions_lost(revoked)

    def on_partitions_lost(self, lost):
        for partition in lost:
            self.uncommitted.pop(partition.partition, None)
        emit(f"revoked {partition_list(lost)}")


def consume(args):
    stopping = threading.Event()
    common.when_input_ends(stopping.set)
    options = {"group_instance_id": args.instance_id} if args.instance_id else {}
    if args.assignor:
        options["partition_assignment_strategy"] = [ASSIGNORS[args.assignor]]
    consumer = KafkaConsumer(
        bootstrap_servers=args.bootstrap,
        group_id=args.group,
        session_timeout_ms=args.session_timeout_ms,
        heartbeat_interval_ms=500,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        **options,
    )
    progress = Progress(consumer)
    consumer.subscribe([args.topic], listener=progress)
    while not stopping.is_set():
        progress.take(consumer.poll(timeout_ms=100))
    consumer.close(autocommit=False)
    emit("closed")


if __name__ == "__main__":
    args = common.arguments()
    match args.command:
        case "version":
            emit(f"kafka-python {kafka.__version__}")
        case "create-topic":
            create_topic(args)
        case "produce":
            produce(args)
        case "consume":
            consume(args)
