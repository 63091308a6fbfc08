package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const partitions = 6

// A member polls on until it leaves, and knows what it owns and has read.
type member struct {
	client *kgo.Client
	ended  chan struct{}

	mu    sync.Mutex
	owned map[int32]bool
	read  map[string]int
}

func (s stage) join(options ...kgo.Opt) (*member, error) {
	joined := &member{
		ended: make(chan struct{}), owned: map[int32]bool{}, read: map[string]int{},
	}
	forget := func(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
		joined.own(gone[s.name], false)
	}
	client, err := s.client(append(options,
		kgo.ConsumerGroup(s.name), kgo.ConsumeTopics(s.name), kgo.AutoCommitInterval(100*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) {
			joined.own(got[s.name], true)
		}),
		kgo.OnPartitionsRevoked(forget), kgo.OnPartitionsLost(forget),
	)...)
	if err != nil {
		return nil, err
	}
	joined.client = client
	go joined.poll(s)
	return joined, nil
}

func (m *member) own(partitions []int32, isOwned bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, partition := range partitions {
		if isOwned {
			m.owned[partition] = true
		} else {
			delete(m.owned, partition)
		}
	}
}

func (m *member) poll(s stage) {
	defer close(m.ended)
	for {
		fetches := m.client.PollFetches(s)
		if fetches.IsClientClosed() || s.Err() != nil {
			return
		}
		m.mu.Lock()
		fetches.EachRecord(func(record *kgo.Record) { m.read[string(record.Value)]++ })
		m.mu.Unlock()
	}
}

func (m *member) owns() []int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []int32
	for partition := range m.owned {
		found = append(found, partition)
	}
	return found
}

func (m *member) leave() {
	m.client.Close()
	<-m.ended
}

// settle waits until the members own so many partitions each, in ascending order, and none twice.
func settle(s stage, among []*member, sizes ...int) error {
	for s.Err() == nil {
		found, seen := []int{}, map[int32]bool{}
		for _, each := range among {
			owned := each.owns()
			found = append(found, len(owned))
			for _, partition := range owned {
				seen[partition] = true
			}
		}
		slices.Sort(found)
		if slices.Equal(found, sizes) && len(seen) == partitions {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("the members never owned %v", sizes)
}

func classic(s stage) (string, error) {
	const count = 60
	if err := s.prepare(count); err != nil {
		return "", err
	}
	return s.comeAndGo(count)
}

func consumer(s stage) (string, error) {
	const count = 60
	if err := s.prepare(count); err != nil {
		return "", err
	}
	return s.comeAndGo(count, nextGeneration()...)
}

func nextGeneration() []kgo.Opt {
	return []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())}
}

func (s stage) prepare(count int) error {
	if err := s.createTopic(s.name, partitions); err != nil {
		return err
	}
	return s.produce(s.name, partitions, count)
}

// comeAndGo has a second member join and the first one leave, and says what the broker tells.
func (s stage) comeAndGo(count int, options ...kgo.Opt) (string, error) {
	first, err := s.join(options...)
	if err != nil {
		return "", err
	}
	if err := settle(s, []*member{first}, partitions); err != nil {
		return "", err
	}
	for s.Err() == nil && first.readOnce() < count {
		time.Sleep(20 * time.Millisecond)
	}
	second, err := s.join(options...)
	if err != nil {
		return "", err
	}
	if err := settle(s, []*member{first, second}, 3, 3); err != nil {
		return "", err
	}
	said := s.told()
	first.leave()
	if err := settle(s, []*member{second}, partitions); err != nil {
		return said, err
	}
	second.leave()
	sum, err := s.committed()
	again := second.readOnce()
	_, deletion := s.admin.DeleteGroup(s, s.name)
	return fmt.Sprintf("%s; read %d, again %d, committed %d, deleted %v",
		said, first.readOnce(), again, sum, deletion == nil), err
}

func (m *member) readOnce() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.read)
}

// committed returns the sum of the group's offsets.
func (s stage) committed() (int64, error) {
	offsets, err := s.admin.FetchOffsets(s, s.name)
	var sum int64
	offsets.Each(func(each kadm.OffsetResponse) { sum += each.At })
	return sum, err
}

// told returns how kadm lists and describes the group of the stage.
func (s stage) told() string {
	for _, kind := range []string{"classic", "consumer", "share"} {
		listed, err := s.admin.ListGroupsByType(s, []string{kind})
		if err != nil {
			return err.Error()
		}
		if _, isThere := listed[s.name]; !isThere {
			continue
		}
		return kind + " " + s.described(kind)
	}
	return "listed nowhere"
}

func (s stage) described(kind string) string {
	switch kind {
	case "classic":
		all, err := s.admin.DescribeGroups(s, s.name)
		one := all[s.name]
		return fmt.Sprint(one.State, " ", one.Protocol, " ", len(one.Members), firstOf(err, one.Err))
	case "consumer":
		all, err := s.admin.DescribeConsumerGroups(s, s.name)
		one := all[s.name]
		return fmt.Sprint(one.State, " ", one.AssignorName, " ", len(one.Members), firstOf(err, one.Err))
	default:
		all, err := s.admin.DescribeShareGroups(s, s.name)
		one := all[s.name]
		return fmt.Sprint(one.GroupState, " ", one.Assignor, " ", len(one.Members), firstOf(err, one.Err))
	}
}

func firstOf(all ...error) string {
	for _, each := range all {
		if each != nil {
			return " " + each.Error()
		}
	}
	return ""
}

// moved has a member of the new protocol join one of the classic protocol, which then leaves.
func moved(s stage) (string, error) {
	if err := s.prepare(0); err != nil {
		return "", err
	}
	old, err := s.join()
	if err != nil {
		return "", err
	}
	if err := settle(s, []*member{old}, partitions); err != nil {
		return "", err
	}
	before := s.told()
	modern, err := s.join(nextGeneration()...)
	if err != nil {
		return before, err
	}
	if err := settle(s, []*member{old, modern}, 3, 3); err != nil {
		return before, err
	}
	mixed := s.told()
	old.leave()
	if err := settle(s, []*member{modern}, partitions); err != nil {
		return mixed, err
	}
	after := s.told()
	modern.leave()
	return before + ", " + mixed + ", " + after, nil
}

// earliest has the share group of the stage begin at the start of its topic.
func (s stage) earliest() error {
	value := "earliest"
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "share.auto.offset.reset", &value
	group := kmsg.NewIncrementalAlterConfigsRequestResource()
	group.ResourceType, group.ResourceName = kmsg.ConfigResourceTypeGroupConfig, s.name
	group.Configs = append(group.Configs, config)
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	request.Resources = append(request.Resources, group)
	client, err := s.client()
	if err != nil {
		return err
	}
	defer client.Close()
	response, err := request.RequestWith(s, client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.Resources[0].ErrorCode)
}
