/* Reading and producing as fast as librdkafka goes: a speed program (matrix/README.md). */

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PARTITIONS_MAX 1024
#define BATCH 10000

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char error[512];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK) fail(error);
}

/* Reads so many records, every partition's in order and without a gap. */
static void read_all(const char *brokers, const char *topic, int partitions, long count) {
    static rd_kafka_message_t *messages[BATCH];
    static int64_t next[PARTITIONS_MAX];
    char error[512];
    long done = 0;
    size_t bytes = 0;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", brokers);
    set(conf, "group.id", "speed");
    set(conf, "enable.auto.commit", "false");
    set(conf, "enable.auto.offset.store", "false");
    set(conf, "auto.offset.reset", "earliest");
    rd_kafka_t *consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
    if (!consumer) fail(error);
    rd_kafka_poll_set_consumer(consumer);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
    for (int i = 0; i < partitions; i++) {
        rd_kafka_topic_partition_list_add(list, topic, i)->offset = 0;
        next[i] = 0;
    }
    if (rd_kafka_assign(consumer, list)) fail("cannot assign");
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(consumer);
    while (done < count) {
        ssize_t found = rd_kafka_consume_batch_queue(queue, 1000, messages, BATCH);
        if (found < 0) fail("cannot consume");
        for (ssize_t i = 0; i < found; i++) {
            rd_kafka_message_t *message = messages[i];
            if (message->err) fail(rd_kafka_message_errstr(message));
            if (message->offset != next[message->partition]++) fail("out of order");
            bytes += message->len;
            rd_kafka_message_destroy(message);
        }
        done += found;
    }
    if (!bytes) fail("nothing but empty records");
    rd_kafka_queue_destroy(queue);
    rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
}

static void delivered(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque) {
    (void)producer;
    if (message->err) fail(rd_kafka_err2str(message->err));
    ++*(long *)opaque;
}

/* Produces so many records, and waits until each is stored. */
static void write_all(const char *brokers, const char *topic, long count, size_t bytes) {
    char error[512];
    long stored = 0;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", brokers);
    set(conf, "enable.idempotence", "true");
    set(conf, "linger.ms", "5");
    set(conf, "batch.size", "16384");
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    rd_kafka_conf_set_opaque(conf, &stored);
    rd_kafka_t *producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
    if (!producer) fail(error);
    rd_kafka_topic_t *to = rd_kafka_topic_new(producer, topic, NULL);
    char *value = malloc(bytes);
    memset(value, 'x', bytes);
    for (long i = 0; i < count;) {
        if (!rd_kafka_produce(to, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, value, bytes, NULL, 0,
                              NULL)) {
            i++;
        } else if (rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            rd_kafka_poll(producer, 100);
        } else {
            fail(rd_kafka_err2str(rd_kafka_last_error()));
        }
        if (i % 1000 == 0) rd_kafka_poll(producer, 0);
    }
    rd_kafka_flush(producer, 60000);
    if (stored != count) fail("not all is stored");
    free(value);
    rd_kafka_topic_destroy(to);
    rd_kafka_destroy(producer);
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "version")) {
        printf("librdkafka %s\n", rd_kafka_version_str());
        return 0;
    }
    if (argc != 8) fail("usage: read|write BROKERS TOPIC PARTITIONS WARM RECORDS BYTES");
    for (int phase = 0; phase < 2; phase++) {
        long count = atol(argv[5 + phase]);
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        if (!strcmp(argv[1], "read")) {
            read_all(argv[2], argv[3], atoi(argv[4]), count);
        } else {
            write_all(argv[2], argv[3], count, (size_t)atol(argv[7]));
        }
        clock_gettime(CLOCK_MONOTONIC, &to);
        double seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
        printf("%s %ld %f\n", phase ? "done" : "warm", count, seconds);
        fflush(stdout);
        getchar();
    }
    return 0;
}
