"""What the Python clients share of the command language in matrix/README.md."""

import argparse
import os
import sys
import threading


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["version", "create-topic", "produce", "consume"])
    parser.add_argument("--bootstrap")
    parser.add_argument("--topic")
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--first", type=int)
    parser.add_argument("--records", type=int)
    parser.add_argument("--keys", type=int)
    parser.add_argument("--codec")
    parser.add_argument("--idempotent", type=lambda text: text == "true")
    parser.add_argument("--group")
    parser.add_argument("--instance-id")
    parser.add_argument("--assignor")
    parser.add_argument("--session-timeout-ms", type=int)
    parser.add_argument("--protocol")
    parser.add_argument("--pattern")
    return parser.parse_args()


def keyed_records(args):
    """The pairs (key, value) to send: value is the key and its running number."""
    for number in range(args.first, args.first + args.records):
        key = f"k{number % args.keys}"
        yield key.encode(), f"{key}:{number // args.keys}".encode()


def emit(*lines):
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def record_line(partition, offset, key, value):
    return f"record {partition} {offset} {key.decode()} {value.decode()}"


def partition_list(partitions):
    return ",".join(str(p.partition) for p in partitions)


def offset_list(offsets):
    """`offsets` maps a partition's number to its next offset."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(offsets.items()))


def when_input_ends(stop):
    """Calls `stop` once the orchestrator closes our input: the wish for a clean leave."""

    def watch():
        # os.read, since closing sys.stdin under a reader would stall the interpreter's end.
        while os.read(0, 4096):
            pass
        stop()

    threading.Thread(target=watch, daemon=True).start()
