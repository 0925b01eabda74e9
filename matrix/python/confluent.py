"""confluent-kafka, and so librdkafka: the wheel's own, or the one the system has."""

import threading

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import common
from common import emit, offset_list, partition_list


def version():
    emit(f"librdkafka {confluent_kafka.libversion()[0]}")


def create_topic(args):
    admin = AdminClient({"bootstrap.servers": args.bootstrap})
    topic = NewTopic(args.topic, num_partitions=args.partitions, replication_factor=1)
    for created in admin.create_topics([topic]).values():
        created.result(timeout=30)


def produce(args):
    producer = Producer(
        {
            "bootstrap.servers": args.bootstrap,
            "compression.type": args.codec,
            "enable.idempotence": args.idempotent,
            "linger.ms": 5,
        }
    )
    errors = []
    delivered = 0

    def report(error, _message):
        nonlocal delivered
        if error is not None:
            errors.append(error)
        else:
            delivered += 1

    for key, value in common.keyed_records(args):
        producer.produce(args.topic, key=key, value=value, on_delivery=report)
        producer.poll(0)
    unsent = producer.flush(60)
    if errors or unsent:
        raise SystemExit(f"{unsent} unsent, {len(errors)} failed: {errors[:1]}")
    emit(f"produced {delivered}")


def consume(args):
    stopping = threading.Event()
    common.when_input_ends(stopping.set)
    config = {
        "bootstrap.servers": args.bootstrap,
        "group.id": args.group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    if args.protocol:
        # The broker sets the times of this protocol.
        config["group.protocol"] = args.protocol
    else:
        config |= {"session.timeout.ms": args.session_timeout_ms, "heartbeat.interval.ms": 500}
    if args.instance_id:
        config["group.instance.id"] = args.instance_id
    if args.assignor:
        config["partition.assignment.strategy"] = args.assignor
    consumer = Consumer(config)
    progress = Progress(consumer, args.topic)
    consumer.subscribe(
        [args.pattern or args.topic],
        on_assign=lambda _, partitions: emit(f"assigned {partition_list(partitions)}"),
        on_revoke=lambda _, partitions: progress.revoke(partitions),
        on_lost=lambda _, partitions: progress.lose(partitions),
    )
    while not stopping.is_set():
        progress.take(consumer.consume(500, timeout=0.1))
    consumer.close()
    emit("closed")


class Progress:
    """What was read and is not yet committed. A cooperative consumer reads on while its group
    rebalances, so a commit may fail and must then be made before the partition goes."""

    def __init__(self, consumer, topic):
        self.consumer = consumer
        self.topic = topic
        self.uncommitted = {}

    def take(self, messages):
        emit(*(f"error {m.error()}" for m in messages if m.error()))
        read = [m for m in messages if not m.error()]
        emit(*(common.record_line(m.partition(), m.offset(), m.key(), m.value()) for m in read))
        self.uncommitted |= {m.partition(): m.offset() + 1 for m in read}
        self.commit()

    def commit(self):
        if not self.uncommitted:
            return
        offsets = [TopicPartition(self.topic, p, o) for p, o in self.uncommitted.items()]
        try:
            self.consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as failure:
            emit(f"error commit: {failure}")
        else:
            emit(f"committed {offset_list(self.uncommitted)}")
            self.uncommitted.clear()

    def revoke(self, partitions):
        self.commit()
        self.lose(partitions)

    def lose(self, partitions):
        for partition in partitions:
            self.uncommitted.pop(partition.partition, None)
        emit(f"revoked {partition_list(partitions)}")


if __name__ == "__main__":
    args = common.arguments()
    match args.command:
        case "version":
            version()
        case "create-topic":
            create_topic(args)
        case "produce":
            produce(args)
        case "consume":
            consume(args)
