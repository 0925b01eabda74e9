"""Times the rebalances of a group of librdkafka members (cargo xtask bench rebalance, reb-clients).

    rebalance.py BOOTSTRAP PROTOCOL MEMBERS PARTITIONS PAUSE_S

Each scene ends when every member's last assignment was reported and together they are the topic,
in even parts. Prints a line a scene: its name, a tab, milliseconds.
"""

import random
import sys
import threading
import time

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

TOPIC = "rebalanced"
PATIENCE_S = 60


class Member(threading.Thread):
    def __init__(self, bootstrap, protocol):
        super().__init__(daemon=True)
        self.owned = set()
        self.changed_at = 0.0
        self.stopping = False
        self.is_incremental = protocol == "consumer"
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "timed",
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
            }
        )

    def assigned(self, _consumer, partitions):
        came = {p.partition for p in partitions}
        self.owned = self.owned | came if self.is_incremental else came
        self.changed_at = time.monotonic()

    def revoked(self, _consumer, partitions):
        went = {p.partition for p in partitions}
        self.owned = self.owned - went if self.is_incremental else set()
        self.changed_at = time.monotonic()

    def run(self):
        self.consumer.subscribe([TOPIC], on_assign=self.assigned, on_revoke=self.revoked)
        while not self.stopping:
            self.consumer.poll(0.01)
        self.consumer.close()

    def stop(self):
        self.stopping = True


def settled(members, partitions):
    """When the last of them got its part, once the parts are the whole topic; else None."""
    owned = [set(m.owned) for m in members]
    sizes = [len(part) for part in owned]
    is_whole = sum(sizes) == partitions and set().union(*owned) == set(range(partitions))
    is_even = max(sizes) - min(sizes) <= 1
    return max(m.changed_at for m in members) if is_whole and is_even else None


def timed(name, members, partitions, act):
    started = time.monotonic()
    act()
    while time.monotonic() < started + PATIENCE_S:
        done = settled(members, partitions)
        if done and done > started:
            print(f"{name}\t{(done - started) * 1000:.0f}", flush=True)
            return
        time.sleep(0.001)
    raise SystemExit(f"{name}: not settled in {PATIENCE_S} s")


def main():
    bootstrap, protocol, count, partitions, pause = sys.argv[1:]
    count, partitions, pause = int(count), int(partitions), float(pause)

    def stand():
        """No act meets the members' heartbeats at a moment of its choice."""
        time.sleep(pause * (1 + random.random()))

    topic = NewTopic(TOPIC, num_partitions=partitions, replication_factor=1)
    # Held by a name: a client that is collected takes its requests with it.
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([topic]).values():
        created.result(timeout=60)
    members = [Member(bootstrap, protocol) for _ in range(count)]
    timed("all start, ms", members, partitions, lambda: [m.start() for m in members])
    stand()
    joiner = Member(bootstrap, protocol)
    timed("one joins, ms", [*members, joiner], partitions, joiner.start)
    stand()
    timed("one leaves, ms", members, partitions, joiner.stop)
    if protocol == "consumer":
        stand()
        doubled = [NewPartitions(TOPIC, 2 * partitions)]
        grow = lambda: admin.create_partitions(doubled)[TOPIC].result(timeout=60)
        timed("partitions doubled, ms", members, 2 * partitions, grow)
    for member in members:
        member.stop()
    for member in [*members, joiner]:
        member.join(timeout=30)


if __name__ == "__main__":
    main()
