package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const silence = 700 * time.Millisecond

// shareClient returns a member of the share group that has the stage's name.
func (s stage) shareClient(options ...kgo.Opt) (*kgo.Client, error) {
	return s.client(append(options, kgo.ShareGroup(s.name), kgo.ConsumeTopics(s.name))...)
}

// shared has two members take the records of a topic, each of them once.
func shared(s stage) (string, error) {
	const count = 2000
	if err := s.prepareShare(4, count); err != nil {
		return "", err
	}
	seen := map[string]int{}
	var members []*kgo.Client
	for range 2 {
		each, err := s.shareClient(kgo.ShareMaxRecords(50))
		if err != nil {
			return "", err
		}
		members = append(members, each)
	}
	said := ""
	for s.Err() == nil && len(seen) < count {
		for _, each := range members {
			for _, record := range s.pollBriefly(each) {
				seen[string(record.Value)]++
			}
		}
	}
	for _, each := range members {
		if err := each.FlushAcks(s); err != nil {
			return "", err
		}
	}
	said = s.told()
	most := 0
	for _, times := range seen {
		most = max(most, times)
	}
	for _, each := range members {
		each.Close()
	}
	return fmt.Sprintf("%s; %d records, each %d time", said, len(seen), most), nil
}

func (s stage) prepareShare(partitions, count int) error {
	if err := s.createTopic(s.name, int32(partitions)); err != nil {
		return err
	}
	if err := s.earliest(); err != nil {
		return err
	}
	return s.produce(s.name, partitions, count)
}

func (s stage) pollBriefly(client *kgo.Client) []*kgo.Record {
	brief, cancel := context.WithTimeout(s, 50*time.Millisecond)
	defer cancel()
	return client.PollFetches(brief).Records()
}

// judged accepts, releases and rejects a third each; what was released comes again, and no more.
func judged(s stage) (string, error) {
	if err := s.prepareShare(1, 9); err != nil {
		return "", err
	}
	client, err := s.shareClient()
	if err != nil {
		return "", err
	}
	defer client.Close()
	verdicts := []kgo.AckStatus{kgo.AckAccept, kgo.AckRelease, kgo.AckReject}
	first, err := s.judge(client, 9, verdicts...)
	if err != nil {
		return first, err
	}
	again, err := s.judge(client, 3, kgo.AckAccept)
	if err != nil {
		return first + ", " + again, err
	}
	quiet, cancel := context.WithTimeout(s, silence)
	defer cancel()
	rest := client.PollFetches(quiet).Records()
	return fmt.Sprintf("%s, %s, %d more", first, again, len(rest)), nil
}

// judge takes count records, acknowledges them in turn as told, and returns values and deliveries.
func (s stage) judge(client *kgo.Client, count int, verdicts ...kgo.AckStatus) (string, error) {
	var said []string
	for len(said) < count {
		fetches := client.PollFetches(s)
		if err := fetches.Err0(); err != nil {
			return strings.Join(said, " "), err
		}
		for _, record := range fetches.Records() {
			record.Ack(verdicts[len(said)%len(verdicts)])
			said = append(said, fmt.Sprintf("%sx%d", record.Value, record.DeliveryCount()))
		}
		if err := client.FlushAcks(s); err != nil {
			return strings.Join(said, " "), err
		}
	}
	return strings.Join(said, " "), nil
}
