"""Writes one keyed record every 200 ms to the topic `orders`. Any Kafka client would do.

    pip install kafka-python && python examples/producer.py [BOOTSTRAP]
"""
import itertools
import sys
import time

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import TopicAlreadyExistsError

bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"

try:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic("orders", num_partitions=6, replication_factor=1)])
except TopicAlreadyExistsError:
    pass

producer = KafkaProducer(
    bootstrap_servers=bootstrap,
    acks="all",
    linger_ms=5,
    # What was sent while the broker was away is sent again, and written once.
    enable_idempotence=True,
    # This client's own default lets it stay away for 30 s after the broker is back.
    reconnect_backoff_max_ms=1000,
)
for number in itertools.count():
    key = f"customer-{number % 20}"
    where = producer.send("orders", key=key.encode(), value=f"order {number}".encode()).get()
    print(f"order {number} of {key} -> partition {where.partition} offset {where.offset}", flush=True)
    time.sleep(0.2)
