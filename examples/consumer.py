"""Reads `orders` as a member of the group `billing`. Start it twice and watch the partitions move.

    pip install kafka-python && python examples/consumer.py [BOOTSTRAP]
"""
import signal
import sys

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.errors import KafkaConnectionError


class Tell(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        if revoked:
            print("gives up", sorted(p.partition for p in revoked), flush=True)

    def on_partitions_assigned(self, assigned):
        print("now owns", sorted(p.partition for p in assigned), flush=True)


bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
consumer = KafkaConsumer(
    bootstrap_servers=bootstrap,
    group_id="billing",
    auto_offset_reset="earliest",
    # This client's own default lets it stay away for 30 s after the broker is back.
    reconnect_backoff_max_ms=1000,
)
consumer.subscribe(["orders"], listener=Tell())
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
try:
    while True:
        try:
            polled = consumer.poll(timeout_ms=1000)
        except KafkaConnectionError as error:
            # The broker is away. The client looks for it again with the next poll.
            print("waiting for the broker:", error, flush=True)
            continue
        for record in (record for records in polled.values() for record in records):
            value = record.value.decode()
            print(f"partition {record.partition} offset {record.offset}: {value}", flush=True)
except (KeyboardInterrupt, SystemExit):
    consumer.close()
