"""Reads `orders` as a member of the group `billing`. Start it twice and watch the partitions move.

    pip install kafka-python && python examples/consumer.py [BOOTSTRAP]
"""
import signal
import sys

from kafka import ConsumerRebalanceListener, KafkaConsumer


class Tell(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        print("gives up", sorted(p.partition for p in revoked), flush=True)

    def on_partitions_assigned(self, assigned):
        print("now owns", sorted(p.partition for p in assigned), flush=True)


bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
consumer = KafkaConsumer(
    bootstrap_servers=bootstrap, group_id="billing", auto_offset_reset="earliest"
)
consumer.subscribe(["orders"], listener=Tell())
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
try:
    for record in consumer:
        print(f"partition {record.partition} offset {record.offset}: {record.value.decode()}")
except (KeyboardInterrupt, SystemExit):
    consumer.close()
