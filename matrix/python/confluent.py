"""confluent-kafka, and so librdkafka: the wheel's own, or the one the system has."""

import threading

import confluent_kafka
from confluent_kafka import Consumer, Producer
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
        "session.timeout.ms": args.session_timeout_ms,
        "heartbeat.interval.ms": 500,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    if args.instance_id:
        config["group.instance.id"] = args.instance_id
    if args.assignor:
        config["partition.assignment.strategy"] = args.assignor
    consumer = Consumer(config)
    consumer.subscribe(
        [args.topic],
        on_assign=lambda _, partitions: emit(f"assigned {partition_list(partitions)}"),
        on_revoke=lambda _, partitions: emit(f"revoked {partition_list(partitions)}"),
    )
    while not stopping.is_set():
        messages = consumer.consume(500, timeout=0.1)
        if messages:
            handle(consumer, messages)
    consumer.close()
    emit("closed")


def handle(consumer, messages):
    failed = [m.error() for m in messages if m.error()]
    read = [m for m in messages if not m.error()]
    emit(*(f"error {error}" for error in failed))
    emit(*(common.record_line(m.partition(), m.offset(), m.key(), m.value()) for m in read))
    if read:
        consumer.commit(asynchronous=False)
        emit(f"committed {offset_list({m.partition(): m.offset() + 1 for m in read})}")


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
