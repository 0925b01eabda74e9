// Times the rebalances of a group of franz-go members: the scenes and the words of
// matrix/python/rebalance.py.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topic    = "rebalanced"
	patience = 60 * time.Second
)

// A member and what it owns.
type member struct {
	lock    sync.Mutex
	owned   map[int32]bool
	changed time.Time
	client  *kgo.Client
}

func (m *member) assigned(_ context.Context, _ *kgo.Client, came map[string][]int32) {
	m.change(came[topic], true)
}

func (m *member) revoked(_ context.Context, _ *kgo.Client, went map[string][]int32) {
	m.change(went[topic], false)
}

func (m *member) change(partitions []int32, owns bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, partition := range partitions {
		if owns {
			m.owned[partition] = true
		} else {
			delete(m.owned, partition)
		}
	}
	m.changed = time.Now()
}

func (m *member) start(bootstrap, protocol string) {
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumerGroup("timed"),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(m.assigned),
		kgo.OnPartitionsRevoked(m.revoked),
		kgo.OnPartitionsLost(m.revoked),
	}
	if protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		log.Fatal(err)
	}
	m.client = client
	go func() {
		for !client.PollFetches(context.Background()).IsClientClosed() {
		}
	}()
}

// When the last of them got its part, once the parts are the whole topic.
func settled(members []*member, partitions int) (last time.Time, done bool) {
	all := map[int32]bool{}
	sum, most, least := 0, 0, partitions
	for _, m := range members {
		m.lock.Lock()
		for partition := range m.owned {
			all[partition] = true
		}
		size := len(m.owned)
		sum, most, least = sum+size, max(most, size), min(least, size)
		if m.changed.After(last) {
			last = m.changed
		}
		m.lock.Unlock()
	}
	return last, sum == partitions && len(all) == partitions && most-least <= 1
}

func timed(name string, members []*member, partitions int, act func()) {
	started := time.Now()
	act()
	for time.Since(started) < patience {
		if last, done := settled(members, partitions); done && last.After(started) {
			fmt.Printf("%s\t%d\n", name, last.Sub(started).Milliseconds())
			return
		}
		time.Sleep(time.Millisecond)
	}
	log.Fatalf("%s: not settled in %v", name, patience)
}

func main() {
	bootstrap, protocol := os.Args[1], os.Args[2]
	count, _ := strconv.Atoi(os.Args[3])
	partitions, _ := strconv.Atoi(os.Args[4])
	pause, _ := strconv.ParseFloat(os.Args[5], 64)
	// No act meets the members' heartbeats at a moment of its choice.
	stand := func() { time.Sleep(time.Duration(pause * (1 + rand.Float64()) * float64(time.Second))) }

	seed, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	if err != nil {
		log.Fatal(err)
	}
	admin, ctx := kadm.NewClient(seed), context.Background()
	if _, err := admin.CreateTopic(ctx, int32(partitions), 1, nil, topic); err != nil {
		log.Fatal(err)
	}
	members := make([]*member, count)
	for n := range members {
		members[n] = &member{owned: map[int32]bool{}}
	}
	timed("all start, ms", members, partitions, func() {
		for _, m := range members {
			m.start(bootstrap, protocol)
		}
	})
	stand()
	joiner := &member{owned: map[int32]bool{}}
	more := append(append([]*member{}, members...), joiner)
	timed("one joins, ms", more, partitions, func() { joiner.start(bootstrap, protocol) })
	stand()
	timed("one leaves, ms", members, partitions, func() { go joiner.client.Close() })
	if protocol == "consumer" {
		stand()
		timed("partitions doubled, ms", members, 2*partitions, func() {
			if _, err := admin.UpdatePartitions(ctx, 2*partitions, topic); err != nil {
				log.Fatal(err)
			}
		})
	}
	for _, m := range members {
		m.client.Close()
	}
}
