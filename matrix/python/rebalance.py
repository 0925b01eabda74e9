"""Times the rebalances of a classic group of librdkafka members (cargo xtask bench rebalance).

Each scene ends when every member's last assignment was reported and together they are the topic.
Prints a line a scene: its name, a tab, milliseconds.
"""

import sys
import threading
import time

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

MEMBERS = 10
PARTITIONS = 60
TOPIC = "rebalanced"
PATIENCE_S = 60


class Member(threading.Thread):
    def __init__(self, bootstrap):
        super().__init__(daemon=True)
        self.owned = set()
        self.changed_at = 0.0
        self.stopping = False
        self.consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "timed", "auto.offset.reset": "earliest"}
        )

    def assigned(self, _consumer, partitions):
        self.owned = {p.partition for p in partitions}
        self.changed_at = time.monotonic()

    def revoked(self, _consumer, _partitions):
        self.owned = set()

    def run(self):
        self.consumer.subscribe([TOPIC], on_assign=self.assigned, on_revoke=self.revoked)
        while not self.stopping:
            self.consumer.poll(0.01)
        self.consumer.close()

    def stop(self):
        self.stopping = True


def settled(members):
    """When the last of them got its part, once the parts are the whole topic; else None."""
    owned = [set(m.owned) for m in members]
    whole = sum(map(len, owned)) == PARTITIONS and set().union(*owned) == set(range(PARTITIONS))
    return max(m.changed_at for m in members) if whole and all(owned) else None


def timed(name, members, act):
    time.sleep(0.1)
    started = time.monotonic()
    act()
    while time.monotonic() < started + PATIENCE_S:
        done = settled(members)
        if done and done > started:
            print(f"{name}\t{(done - started) * 1000:.0f}", flush=True)
            return
        time.sleep(0.001)
    raise SystemExit(f"{name}: not settled in {PATIENCE_S} s")


def main():
    bootstrap = sys.argv[1]
    topic = NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    # Held by a name: a client that is collected takes its requests with it.
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([topic]).values():
        created.result(timeout=60)
    members = [Member(bootstrap) for _ in range(MEMBERS)]
    timed("all start, ms", members, lambda: [m.start() for m in members])
    time.sleep(2)
    joiner = Member(bootstrap)
    timed("one joins, ms", [*members, joiner], joiner.start)
    time.sleep(2)
    timed("one leaves, ms", members, joiner.stop)
    for member in members:
        member.stop()
    for member in [*members, joiner]:
        member.join(timeout=30)


if __name__ == "__main__":
    main()
