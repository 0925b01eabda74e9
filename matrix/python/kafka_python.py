"""kafka-python."""

import threading

import kafka
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

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


class Listener(ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned):
        emit(f"assigned {partition_list(assigned)}")

    def on_partitions_revoked(self, revoked):
        emit(f"revoked {partition_list(revoked)}")


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
    consumer.subscribe([args.topic], listener=Listener())
    while not stopping.is_set():
        polled = consumer.poll(timeout_ms=100)
        if polled:
            handle(consumer, polled)
    consumer.close(autocommit=False)
    emit("closed")


def handle(consumer, polled):
    emit(
        *(
            common.record_line(r.partition, r.offset, r.key, r.value)
            for records in polled.values()
            for r in records
        )
    )
    consumer.commit()
    emit(f"committed {offset_list({p.partition: r[-1].offset + 1 for p, r in polled.items()})}")


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
