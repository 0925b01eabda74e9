// segmentio/kafka-go. Its Reader tells nobody which partitions it holds, so this uses the
// ConsumerGroup that the Reader is built on.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"ottla.dev/matrix"
)

func main() {
	matrix.Run(matrix.Commands{
		Module:      "github.com/segmentio/kafka-go",
		CreateTopic: createTopic,
		Produce:     produce,
		Consume:     consume,
	})
}

func createTopic(args matrix.Args) error {
	client := &kafka.Client{Addr: kafka.TCP(args.Bootstrap)}
	topic := kafka.TopicConfig{
		Topic: args.Topic, NumPartitions: args.Partitions, ReplicationFactor: 1,
	}
	response, err := client.CreateTopics(context.Background(),
		&kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{topic}})
	if err != nil {
		return err
	}
	return response.Errors[args.Topic]
}

var codecs = map[string]kafka.Compression{
	"none":   0,
	"gzip":   kafka.Gzip,
	"snappy": kafka.Snappy,
	"lz4":    kafka.Lz4,
	"zstd":   kafka.Zstd,
}

func produce(args matrix.Args) error {
	writer := &kafka.Writer{
		Addr:         kafka.TCP(args.Bootstrap),
		Topic:        args.Topic,
		Balancer:     &kafka.Hash{},
		BatchSize:    1000,
		BatchTimeout: 5 * time.Millisecond,
		RequiredAcks: kafka.RequireAll,
		Compression:  codecs[args.Codec],
	}
	messages := make([]kafka.Message, 0, args.Records)
	for _, record := range matrix.KeyedRecords(args) {
		messages = append(messages, kafka.Message{Key: record.Key, Value: record.Value})
	}
	if err := writer.WriteMessages(context.Background(), messages...); err != nil {
		return err
	}
	return writer.Close()
}

var balancers = map[string]kafka.GroupBalancer{
	"range":      kafka.RangeGroupBalancer{},
	"roundrobin": kafka.RoundRobinGroupBalancer{},
}

func consume(ctx context.Context, args matrix.Args) error {
	config := kafka.ConsumerGroupConfig{
		ID:                args.Group,
		Brokers:           []string{args.Bootstrap},
		Topics:            []string{args.Topic},
		SessionTimeout:    args.SessionTimeout,
		RebalanceTimeout:  args.SessionTimeout,
		HeartbeatInterval: 500 * time.Millisecond,
		StartOffset:       kafka.FirstOffset,
	}
	if balancer, known := balancers[args.Assignor]; known {
		config.GroupBalancers = []kafka.GroupBalancer{balancer}
	}
	group, err := kafka.NewConsumerGroup(config)
	if err != nil {
		return err
	}
	for {
		generation, err := group.Next(ctx)
		if errors.Is(err, context.Canceled) {
			return group.Close()
		}
		if err != nil {
			matrix.Emit(fmt.Sprintf("error %v", err))
			continue
		}
		start(generation, args)
	}
}

// start reads each partition of the generation until it ends; Next waits for that.
func start(generation *kafka.Generation, args matrix.Args) {
	var partitions []int
	for _, assignment := range generation.Assignments[args.Topic] {
		partitions = append(partitions, assignment.ID)
		generation.Start(func(ctx context.Context) {
			if err := read(ctx, generation, args, assignment); err != nil {
				matrix.Emit(fmt.Sprintf("error %v", err))
			}
		})
	}
	matrix.EmitPartitions("owns", partitions)
}

func read(
	ctx context.Context, generation *kafka.Generation, args matrix.Args,
	assignment kafka.PartitionAssignment,
) error {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:   []string{args.Bootstrap},
		Topic:     args.Topic,
		Partition: assignment.ID,
		MaxWait:   100 * time.Millisecond,
	})
	defer reader.Close()
	if err := reader.SetOffset(assignment.Offset); err != nil {
		return err
	}
	for {
		batch, err := fetch(ctx, reader)
		if len(batch) > 0 {
			if err := handle(generation, batch); err != nil {
				return err
			}
		}
		if errors.Is(err, kafka.ErrGenerationEnded) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// fetch waits for one message and takes what comes within a moment of it.
func fetch(ctx context.Context, reader *kafka.Reader) ([]kafka.Message, error) {
	first, err := reader.ReadMessage(ctx)
	if err != nil {
		return nil, err
	}
	batch := []kafka.Message{first}
	moment, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	for len(batch) < 1000 {
		message, err := reader.ReadMessage(moment)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			return batch, err
		}
		batch = append(batch, message)
	}
	return batch, nil
}

func handle(generation *kafka.Generation, batch []kafka.Message) error {
	lines := make([]string, 0, len(batch))
	for _, m := range batch {
		lines = append(lines, matrix.RecordLine(m.Partition, m.Offset, m.Key, m.Value))
	}
	matrix.Emit(lines...)
	last := batch[len(batch)-1]
	next := map[int]int64{last.Partition: last.Offset + 1}
	if err := generation.CommitOffsets(map[string]map[int]int64{last.Topic: next}); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	matrix.EmitCommitted(next)
	return nil
}
