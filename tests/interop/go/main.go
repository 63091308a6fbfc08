// Clients of franz-go. Each scenario prints one line, name=what it saw; tests say what that is.
//
// Names of topics, groups and transactional ids are that of the scenario, after a prefix.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const scenarioLimit = 60 * time.Second

// A stage is what a scenario works with: a name for its topic and group that is its own.
type stage struct {
	context.Context
	bootstrap string
	name      string
	admin     *kadm.Client
}

type scenario func(stage) (string, error)

var scenarios = map[string]scenario{
	"codecs":       codecs,
	"acks":         acks,
	"topics":       topics,
	"transactions": transactions,
	"copied":       copied,
	"classic":      classic,
	"consumer":     consumer,
	"moved":        moved,
	"shared":       shared,
	"judged":       judged,
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: franz-go BOOTSTRAP PREFIX SCENARIO...")
		os.Exit(2)
	}
	for _, name := range os.Args[3:] {
		run, isKnown := scenarios[name]
		if !isKnown {
			fmt.Fprintf(os.Stderr, "there is no scenario %s\n", name)
			os.Exit(2)
		}
		said, err := play(os.Args[1], os.Args[2]+name, run)
		if err != nil {
			said = fmt.Sprintf("%s; failed: %v", said, err)
		}
		fmt.Printf("%s=%s\n", name, said)
	}
}

func play(bootstrap, name string, run scenario) (string, error) {
	limited, cancel := context.WithTimeout(context.Background(), scenarioLimit)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	if err != nil {
		return "", err
	}
	defer client.Close()
	return run(stage{limited, bootstrap, name, kadm.NewClient(client)})
}

// client returns a client of the stage's broker.
func (s stage) client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.bootstrap)}, options...)...)
}

func (s stage) createTopic(name string, partitions int32) error {
	_, err := s.admin.CreateTopic(s, partitions, 1, nil, name)
	return err
}

// produce sends count records to a topic with partitions of a fixed number, one after the other.
func (s stage) produce(topic string, partitions, count int, options ...kgo.Opt) error {
	options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	producer, err := s.client(options...)
	if err != nil {
		return err
	}
	defer producer.Close()
	return producer.ProduceSync(s, numbered(topic, partitions, count)...).FirstErr()
}

func numbered(topic string, partitions, count int) []*kgo.Record {
	records := make([]*kgo.Record, count)
	for i := range records {
		value := []byte(fmt.Sprint(i))
		records[i] = &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: value}
	}
	return records
}

// read polls until count records came, and returns them.
func (s stage) read(client *kgo.Client, count int) ([]*kgo.Record, error) {
	var found []*kgo.Record
	for len(found) < count {
		fetches := client.PollFetches(s)
		if err := fetches.Err0(); err != nil {
			return found, err
		}
		found = append(found, fetches.Records()...)
	}
	return found, nil
}
