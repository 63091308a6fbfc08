package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// codecs sends records in each codec to a partition of its own, and counts what comes back whole.
func codecs(s stage) (string, error) {
	all := []kgo.CompressionCodec{
		kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(),
		kgo.ZstdCompression(),
	}
	if err := s.createTopic(s.name, int32(len(all))); err != nil {
		return "", err
	}
	const each = 200
	for partition, codec := range all {
		producer, err := s.client(
			kgo.ProducerBatchCompression(codec), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		)
		if err != nil {
			return "", err
		}
		records := numbered(s.name, 1, each)
		for _, record := range records {
			record.Partition = int32(partition)
			record.Key = []byte("key")
			record.Headers = []kgo.RecordHeader{{Key: "header", Value: record.Value}}
		}
		err = producer.ProduceSync(s, records...).FirstErr()
		producer.Close()
		if err != nil {
			return "", err
		}
	}
	reader, err := s.client(kgo.ConsumeTopics(s.name))
	if err != nil {
		return "", err
	}
	defer reader.Close()
	found, err := s.read(reader, each*len(all))
	whole := make([]int, len(all))
	for _, record := range found {
		isWhole := string(record.Key) == "key" && len(record.Headers) == 1 &&
			string(record.Headers[0].Value) == fmt.Sprint(record.Offset) &&
			string(record.Value) == fmt.Sprint(record.Offset)
		if isWhole {
			whole[record.Partition]++
		}
	}
	return fmt.Sprint(whole), err
}

// acks sends a record with each of them, and says at which offsets they are.
func acks(s stage) (string, error) {
	if err := s.createTopic(s.name, 1); err != nil {
		return "", err
	}
	for _, acks := range []kgo.Acks{kgo.NoAck(), kgo.LeaderAck(), kgo.AllISRAcks()} {
		options := []kgo.Opt{kgo.RequiredAcks(acks)}
		if acks != kgo.AllISRAcks() {
			options = append(options, kgo.DisableIdempotentWrite())
		}
		if err := s.produce(s.name, 1, 1, options...); err != nil {
			return "", err
		}
	}
	ends, err := s.admin.ListEndOffsets(s, s.name)
	end, _ := ends.Lookup(s.name, 0)
	return fmt.Sprint(end.Offset), err
}

// topics creates, describes, enlarges and deletes a topic, and trims its records.
func topics(s stage) (string, error) {
	var said []string
	note := func(what any, err error) {
		if err != nil {
			what = short(err)
		}
		said = append(said, fmt.Sprint(what))
	}
	note("created", s.createTopic(s.name, 2))
	note("created", s.createTopic(s.name, 2))
	note("produced", s.produce(s.name, 2, 10))
	_, err := s.admin.UpdatePartitions(s, 3, s.name)
	note("enlarged", err)
	details, err := s.admin.ListTopics(s, s.name)
	note(len(details[s.name].Partitions), err)
	configs, err := s.admin.DescribeTopicConfigs(s, s.name)
	for _, each := range configs[0].Configs {
		if each.Key == "cleanup.policy" {
			note(each.MaybeValue(), err)
		}
	}
	_, err = s.admin.DeleteTopic(s, s.name)
	note("deleted", err)
	_, err = s.admin.DeleteTopic(s, s.name)
	note("deleted", err)
	return strings.Join(said, ", "), nil
}

func short(err error) string {
	var refused *kerr.Error
	if errors.As(err, &refused) {
		return refused.Message
	}
	return err.Error()
}

// transactions commits every second one, and reads what is committed.
func transactions(s stage) (string, error) {
	if err := s.createTopic(s.name, 1); err != nil {
		return "", err
	}
	producer, err := s.client(kgo.TransactionalID(s.name), kgo.DefaultProduceTopic(s.name))
	if err != nil {
		return "", err
	}
	defer producer.Close()
	for i := range 4 {
		if err := producer.BeginTransaction(); err != nil {
			return "", err
		}
		value := []byte(fmt.Sprint(i))
		if err := producer.ProduceSync(s, &kgo.Record{Value: value}).FirstErr(); err != nil {
			return "", err
		}
		if err := producer.EndTransaction(s, kgo.TransactionEndTry(i%2 == 0)); err != nil {
			return "", err
		}
	}
	reader, err := s.client(
		kgo.ConsumeTopics(s.name), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	if err != nil {
		return "", err
	}
	defer reader.Close()
	found, err := s.read(reader, 2)
	return values(found), err
}

func values(records []*kgo.Record) string {
	found := make([]string, len(records))
	for i, record := range records {
		found[i] = string(record.Value)
	}
	return strings.Join(found, " ")
}

// copied takes records from one topic to another, exactly once, though each second try is given up.
func copied(s stage) (string, error) {
	const count, partitions = 300, 3
	target := s.name + "-target"
	for _, topic := range []string{s.name, target} {
		if err := s.createTopic(topic, partitions); err != nil {
			return "", err
		}
	}
	if err := s.produce(s.name, partitions, count); err != nil {
		return "", err
	}
	if err := copyAll(s, target, count); err != nil {
		return "", err
	}
	reader, err := s.client(
		kgo.ConsumeTopics(target), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	if err != nil {
		return "", err
	}
	defer reader.Close()
	found, err := s.read(reader, count)
	distinct := map[string]bool{}
	for _, record := range found {
		distinct[string(record.Value)] = true
	}
	if err != nil {
		return "", err
	}
	sum, err := s.committed()
	return fmt.Sprintf("%d records, %d distinct, committed to %d", len(found), len(distinct), sum), err
}

func copyAll(s stage, target string, count int) error {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(s.bootstrap), kgo.TransactionalID(s.name), kgo.ConsumerGroup(s.name),
		kgo.ConsumeTopics(s.name), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		return err
	}
	defer session.Close()
	for done, try := 0, 0; done < count; try++ {
		fetches := session.PollRecords(s, count/5)
		if err := fetches.Err0(); err != nil {
			return err
		}
		if err := session.Begin(); err != nil {
			return err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			session.Produce(s, &kgo.Record{Topic: target, Value: record.Value}, nil)
		})
		isCommitted, err := session.End(s, kgo.TransactionEndTry(try%2 == 1))
		if err != nil {
			return err
		}
		if isCommitted {
			done += fetches.NumRecords()
		}
	}
	return nil
}
