// Reading and producing as fast as franz-go goes: a speed program (matrix/README.md).
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	if len(os.Args) != 8 {
		fail("usage: read|write BROKERS TOPIC PARTITIONS WARM RECORDS BYTES")
	}
	input := bufio.NewReader(os.Stdin)
	for phase, word := range []string{"warm", "done"} {
		count, began := number(5+phase), time.Now()
		if os.Args[1] == "read" {
			read(os.Args[2], os.Args[3], int32(number(4)), count)
		} else {
			write(os.Args[2], os.Args[3], count, int(number(7)))
		}
		fmt.Println(word, count, time.Since(began).Seconds())
		_, _ = input.ReadString('\n')
	}
}

// Reads so many records, every partition's in order and without a gap.
func read(brokers, topic string, partitions int32, count int64) {
	offsets := map[int32]kgo.Offset{}
	for i := range partitions {
		offsets[i] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}))
	check(err)
	defer client.Close()
	next := make([]int64, partitions)
	var done int64
	var size int
	for done < count {
		fetches := client.PollFetches(context.Background())
		for _, err := range fetches.Errors() {
			check(err.Err)
		}
		fetches.EachPartition(func(partition kgo.FetchTopicPartition) {
			for _, record := range partition.Records {
				if record.Offset != next[record.Partition] {
					fail("out of order")
				}
				next[record.Partition]++
				size += len(record.Value)
				done++
			}
		})
	}
	if size == 0 {
		fail("nothing but empty records")
	}
}

// Produces so many records, and waits until each is stored.
func write(brokers, topic string, count int64, size int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.DefaultProduceTopic(topic),
		kgo.ProducerLinger(5*time.Millisecond), kgo.ProducerBatchMaxBytes(16384),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(100_000))
	check(err)
	defer client.Close()
	value := bytes.Repeat([]byte("x"), size)
	var stored atomic.Int64
	for range count {
		client.Produce(context.Background(), &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			check(err)
			stored.Add(1)
		})
	}
	check(client.Flush(context.Background()))
	if stored.Load() != count {
		fail("not all is stored")
	}
}

func number(index int) int64 {
	value, err := strconv.ParseInt(os.Args[index], 10, 64)
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fail(err.Error())
	}
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
