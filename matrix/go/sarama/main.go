// sarama.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"ottla.dev/matrix"
)

func main() {
	matrix.Run(matrix.Commands{
		Module:      "github.com/IBM/sarama",
		CreateTopic: createTopic,
		Produce:     produce,
		Consume:     consume,
	})
}

func config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	return config
}

func createTopic(args matrix.Args) error {
	admin, err := sarama.NewClusterAdmin([]string{args.Bootstrap}, config())
	if err != nil {
		return err
	}
	defer admin.Close()
	detail := &sarama.TopicDetail{NumPartitions: int32(args.Partitions), ReplicationFactor: 1}
	return admin.CreateTopic(args.Topic, detail, false)
}

func produce(args matrix.Args) error {
	config := config()
	if err := config.Producer.Compression.UnmarshalText([]byte(args.Codec)); err != nil {
		return err
	}
	config.Producer.Idempotent = args.Idempotent
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Flush.Frequency = 5 * time.Millisecond
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer([]string{args.Bootstrap}, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	messages := make([]*sarama.ProducerMessage, 0, args.Records)
	for _, record := range matrix.KeyedRecords(args) {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: args.Topic,
			Key:   sarama.ByteEncoder(record.Key),
			Value: sarama.ByteEncoder(record.Value),
		})
	}
	return producer.SendMessages(messages)
}

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":      sarama.NewBalanceStrategyRange,
	"roundrobin": sarama.NewBalanceStrategyRoundRobin,
	"sticky":     sarama.NewBalanceStrategySticky,
}

func consume(ctx context.Context, args matrix.Args) error {
	config := config()
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Session.Timeout = args.SessionTimeout
	config.Consumer.Group.Rebalance.Timeout = args.SessionTimeout
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	config.Consumer.Group.InstanceId = args.InstanceID
	// Commits wait behind fetches on the one connection.
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Consumer.Return.Errors = true
	if strategy, known := strategies[args.Assignor]; known {
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy()}
	}
	group, err := sarama.NewConsumerGroup([]string{args.Bootstrap}, args.Group, config)
	if err != nil {
		return err
	}
	go func() {
		for err := range group.Errors() {
			matrix.Emit(fmt.Sprintf("error %v", err))
		}
	}()
	for ctx.Err() == nil {
		err := group.Consume(ctx, []string{args.Topic}, &handler{topic: args.Topic})
		if err != nil && !errors.Is(err, context.Canceled) {
			matrix.Emit(fmt.Sprintf("error %v", err))
		}
	}
	return group.Close()
}

// handler lives for one generation; its claims run side by side.
type handler struct {
	topic string
	mutex sync.Mutex
	// What was read and not yet committed, as next offsets.
	uncommitted map[int]int64
}

func (h *handler) Setup(session sarama.ConsumerGroupSession) error {
	h.uncommitted = map[int]int64{}
	matrix.EmitPartitions("owns", session.Claims()[h.topic])
	go h.commitNowAndThen(session)
	return nil
}

func (h *handler) Cleanup(session sarama.ConsumerGroupSession) error {
	h.commit(session)
	matrix.EmitPartitions[int32]("owns", nil)
	return nil
}

func (h *handler) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for {
		select {
		case first, open := <-claim.Messages():
			if !open {
				return nil
			}
			h.handle(session, waiting(first, claim.Messages()))
		case <-session.Context().Done():
			return nil
		}
	}
}

// waiting is `first` and what already lies behind it in the channel.
func waiting(
	first *sarama.ConsumerMessage, more <-chan *sarama.ConsumerMessage,
) []*sarama.ConsumerMessage {
	batch := []*sarama.ConsumerMessage{first}
	for len(batch) < 1000 {
		select {
		case message, open := <-more:
			if !open {
				return batch
			}
			batch = append(batch, message)
		default:
			return batch
		}
	}
	return batch
}

func (h *handler) handle(
	session sarama.ConsumerGroupSession, messages []*sarama.ConsumerMessage,
) {
	lines := make([]string, 0, len(messages))
	for _, m := range messages {
		lines = append(lines, matrix.RecordLine(int(m.Partition), m.Offset, m.Key, m.Value))
	}
	matrix.Emit(lines...)
	last := messages[len(messages)-1]
	h.mutex.Lock()
	defer h.mutex.Unlock()
	session.MarkMessage(last, "")
	h.uncommitted[int(last.Partition)] = last.Offset + 1
}

func (h *handler) commitNowAndThen(session sarama.ConsumerGroupSession) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			h.commit(session)
		case <-session.Context().Done():
			return
		}
	}
}

func (h *handler) commit(session sarama.ConsumerGroupSession) {
	h.mutex.Lock()
	committed := h.uncommitted
	h.uncommitted = map[int]int64{}
	h.mutex.Unlock()
	if len(committed) > 0 {
		session.Commit()
		matrix.EmitCommitted(committed)
	}
}
