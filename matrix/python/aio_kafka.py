"""aiokafka."""

import asyncio

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import CommitFailedError

import common
from common import emit, offset_list, partition_list

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


async def create_topic(args):
    admin = AIOKafkaAdminClient(bootstrap_servers=args.bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(args.topic, args.partitions, 1)])
    await admin.close()


async def produce(args):
    producer = AIOKafkaProducer(
        bootstrap_servers=args.bootstrap,
        compression_type=None if args.codec == "none" else args.codec,
        enable_idempotence=args.idempotent,
        acks="all",
        linger_ms=5,
    )
    async with producer:
        sends = [
            await producer.send(args.topic, key=key, value=value)
            for key, value in common.keyed_records(args)
        ]
        await asyncio.gather(*sends)
    emit(f"produced {len(sends)}")


class Listener(ConsumerRebalanceListener):
    """Holds a rebalance back until the batch in hand is committed: the consumer fetches and
    rebalances in tasks of its own, unlike clients that do both inside a poll."""

    def __init__(self, batch_in_hand):
        self.batch_in_hand = batch_in_hand

    async def on_partitions_assigned(self, assigned):
        emit(f"assigned {partition_list(assigned)}")

    async def on_partitions_revoked(self, revoked):
        async with self.batch_in_hand:
            emit(f"revoked {partition_list(revoked)}")


async def consume(args):
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    common.when_input_ends(lambda: loop.call_soon_threadsafe(stopping.set))
    batch_in_hand = asyncio.Lock()
    options = {"group_instance_id": args.instance_id} if args.instance_id else {}
    if args.assignor:
        options["partition_assignment_strategy"] = [ASSIGNORS[args.assignor]]
    consumer = AIOKafkaConsumer(
        bootstrap_servers=args.bootstrap,
        group_id=args.group,
        session_timeout_ms=args.session_timeout_ms,
        heartbeat_interval_ms=500,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        **options,
    )
    consumer.subscribe([args.topic], listener=Listener(batch_in_hand))
    async with consumer:
        while not stopping.is_set():
            polled = await consumer.getmany(timeout_ms=100)
            if polled:
                async with batch_in_hand:
                    await handle(consumer, polled)
    emit("closed")


async def handle(consumer, polled):
    emit(
        *(
            common.record_line(r.partition, r.offset, r.key, r.value)
            for records in polled.values()
            for r in records
        )
    )
    offsets = {partition: records[-1].offset + 1 for partition, records in polled.items()}
    try:
        await consumer.commit(offsets)
    except CommitFailedError as error:
        emit(f"error {error}")
        return
    emit(f"committed {offset_list({p.partition: offset for p, offset in offsets.items()})}")


if __name__ == "__main__":
    args = common.arguments()
    match args.command:
        case "version":
            emit(f"aiokafka {aiokafka.__version__}")
        case "create-topic":
            asyncio.run(create_topic(args))
        case "produce":
            asyncio.run(produce(args))
        case "consume":
            asyncio.run(consume(args))
