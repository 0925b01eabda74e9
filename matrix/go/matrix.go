// Package matrix is what the Go clients share of the command language in matrix/README.md.
package matrix

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"time"
)

// Args holds every flag of the language; a command reads those it knows.
type Args struct {
	Command        string
	Bootstrap      string
	Topic          string
	Partitions     int
	First          int
	Records        int
	Keys           int
	Codec          string
	Idempotent     bool
	Group          string
	InstanceID     string
	Assignor       string
	SessionTimeout time.Duration
	Protocol       string
	Pattern        string
}

// Commands are one client's implementations.
type Commands struct {
	Module      string
	CreateTopic func(Args) error
	Produce     func(Args) error
	Consume     func(context.Context, Args) error
}

// Run parses the command line and runs the command it names. The context handed to Consume ends
// when the orchestrator closes our input: the wish for a clean leave.
func Run(commands Commands) {
	args := parse()
	var err error
	switch args.Command {
	case "version":
		Emit(moduleVersion(commands.Module))
	case "create-topic":
		err = commands.CreateTopic(args)
	case "produce":
		if err = commands.Produce(args); err == nil {
			Emit(fmt.Sprintf("produced %d", args.Records))
		}
	case "consume":
		ctx, stop := context.WithCancel(context.Background())
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
		if err = commands.Consume(ctx, args); err == nil {
			Emit("closed")
		}
	default:
		err = fmt.Errorf("unknown command %q", args.Command)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// Record is one keyed record to send; Value is the key and its running number.
type Record struct{ Key, Value []byte }

// KeyedRecords are the records a produce command asks for.
func KeyedRecords(args Args) []Record {
	records := make([]Record, 0, args.Records)
	for number := args.First; number < args.First+args.Records; number++ {
		key := fmt.Sprintf("k%d", number%args.Keys)
		value := fmt.Sprintf("%s:%d", key, number/args.Keys)
		records = append(records, Record{[]byte(key), []byte(value)})
	}
	return records
}

var output struct {
	sync.Mutex
	*bufio.Writer
}

// Emit writes whole lines at once, from any goroutine.
func Emit(lines ...string) {
	output.Lock()
	defer output.Unlock()
	if output.Writer == nil {
		output.Writer = bufio.NewWriterSize(os.Stdout, 1<<16)
	}
	for _, line := range lines {
		_, _ = output.WriteString(line)
		_ = output.WriteByte('\n')
	}
	_ = output.Flush()
}

// RecordLine is the event for one record read.
func RecordLine(partition int, offset int64, key, value []byte) string {
	return fmt.Sprintf("record %d %d %s %s", partition, offset, key, value)
}

// EmitPartitions says `event` of the partitions.
func EmitPartitions[P ~int | ~int32](event string, partitions []P) {
	numbers := make([]string, 0, len(partitions))
	for _, partition := range partitions {
		numbers = append(numbers, fmt.Sprint(partition))
	}
	Emit(event + " " + strings.Join(numbers, ","))
}

// EmitCommitted says which next offsets were committed, by partition.
func EmitCommitted(offsets map[int]int64) {
	pairs := make([]string, 0, len(offsets))
	for partition, offset := range offsets {
		pairs = append(pairs, fmt.Sprintf("%d:%d", partition, offset))
	}
	sort.Strings(pairs)
	Emit("committed " + strings.Join(pairs, ","))
}

func parse() Args {
	var args Args
	flags := flag.NewFlagSet("client", flag.ExitOnError)
	flags.StringVar(&args.Bootstrap, "bootstrap", "", "")
	flags.StringVar(&args.Topic, "topic", "", "")
	flags.IntVar(&args.Partitions, "partitions", 0, "")
	flags.IntVar(&args.First, "first", 0, "")
	flags.IntVar(&args.Records, "records", 0, "")
	flags.IntVar(&args.Keys, "keys", 0, "")
	flags.StringVar(&args.Codec, "codec", "none", "")
	idempotent := flags.String("idempotent", "false", "")
	flags.StringVar(&args.Group, "group", "", "")
	flags.StringVar(&args.InstanceID, "instance-id", "", "")
	flags.StringVar(&args.Assignor, "assignor", "", "")
	flags.StringVar(&args.Protocol, "protocol", "", "")
	flags.StringVar(&args.Pattern, "pattern", "", "")
	timeout := flags.Int("session-timeout-ms", 6000, "")
	args.Command = os.Args[1]
	_ = flags.Parse(os.Args[2:])
	args.Idempotent = *idempotent == "true"
	args.SessionTimeout = time.Duration(*timeout) * time.Millisecond
	return args
}

func moduleVersion(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return module[strings.LastIndexByte(module, '/')+1:] + " " + dependency.Version
		}
	}
	return module + " of unknown version"
}
