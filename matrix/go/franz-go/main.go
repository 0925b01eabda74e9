// franz-go.
package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla.dev/matrix"
)

func main() {
	matrix.Run(matrix.Commands{
		Module:      "github.com/twmb/franz-go",
		CreateTopic: createTopic,
		Produce:     produce,
		Consume:     consume,
	})
}

func createTopic(args matrix.Args) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(args.Bootstrap))
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(
		context.Background(), int32(args.Partitions), 1, nil, args.Topic)
	return err
}

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func produce(args matrix.Args) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(args.Bootstrap),
		kgo.DefaultProduceTopic(args.Topic),
		kgo.ProducerBatchCompression(codecs[args.Codec]),
		kgo.ProducerLinger(5 * time.Millisecond),
	}
	if !args.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx := context.Background()
	var once sync.Once
	var failure error
	for _, record := range matrix.KeyedRecords(args) {
		client.Produce(ctx, kgo.KeySliceRecord(record.Key, record.Value),
			func(_ *kgo.Record, err error) {
				if err != nil {
					once.Do(func() { failure = err })
				}
			})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	return failure
}

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func consume(ctx context.Context, args matrix.Args) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(args.Bootstrap),
		kgo.ConsumerGroup(args.Group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(args.SessionTimeout),
		kgo.RebalanceTimeout(args.SessionTimeout),
		kgo.HeartbeatInterval(500 * time.Millisecond),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(emitter("assigned", args.Topic)),
		kgo.OnPartitionsRevoked(emitter("revoked", args.Topic)),
		kgo.OnPartitionsLost(emitter("revoked", args.Topic)),
	}
	if args.Pattern != "" {
		// It joins once it knows a topic that matches, and by itself looks every five minutes.
		options = append(options, kgo.ConsumeTopics(args.Pattern), kgo.ConsumeRegex(),
			kgo.MetadataMaxAge(6*time.Second))
	} else {
		options = append(options, kgo.ConsumeTopics(args.Topic))
	}
	if args.Protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	}
	if args.InstanceID != "" {
		options = append(options, kgo.InstanceID(args.InstanceID))
	}
	if args.Assignor != "" {
		options = append(options, kgo.Balancers(balancers[args.Assignor]))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, 1000)
		fetches.EachError(func(_ string, _ int32, err error) {
			if ctx.Err() == nil {
				matrix.Emit(fmt.Sprintf("error %v", err))
			}
		})
		if records := fetches.Records(); len(records) > 0 {
			handle(client, records)
		}
		client.AllowRebalance()
	}
	return nil
}

func handle(client *kgo.Client, records []*kgo.Record) {
	lines := make([]string, 0, len(records))
	next := map[int]int64{}
	for _, r := range records {
		lines = append(lines, matrix.RecordLine(int(r.Partition), r.Offset, r.Key, r.Value))
		next[int(r.Partition)] = r.Offset + 1
	}
	matrix.Emit(lines...)
	// Not the polling context: what was read is committed also when the wish to leave is there.
	if err := client.CommitRecords(context.Background(), records...); err != nil {
		matrix.Emit(fmt.Sprintf("error commit: %v", err))
		return
	}
	matrix.EmitCommitted(next)
}

func emitter(event, topic string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		matrix.EmitPartitions(event, partitions[topic])
	}
}
