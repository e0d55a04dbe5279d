// Threads: goroutines that wait for orders, alive from `open` to `close`.

package main

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// member is one of them.
type member struct {
	work      work
	latencies *histogram
	orders    chan func(*member) error
	answers   chan error
	part      part
}

// part is what one thread did in a sample. Clocks are pairs of begin and end.
type part struct {
	operations        uint64
	begun, ended      uint64
	latencyOperations uint64
	latencyBegun      uint64
	latencyEnded      uint64
	bytes             uint64
	checksum          uint64
	stalls            stalls
}

type jobThreads struct {
	members    []*member
	ended      sync.WaitGroup
	rendezvous barrier
	// True if any thread had batches of several operations.
	batched atomic.Bool
	job     *job
	task    *task
}

func (c *jobThreads) newPart() part { return part{stalls: stalls{stallNs: c.job.StallNs}} }

func startThreads(job *job, task *task) *jobThreads {
	threads := &jobThreads{job: job, task: task}
	threads.rendezvous.start(len(task.works))
	for _, work := range task.works {
		member := &member{
			work: work, latencies: newHistogram(),
			orders: make(chan func(*member) error), answers: make(chan error, 1),
		}
		threads.members = append(threads.members, member)
		threads.ended.Add(1)
		go func() {
			defer threads.ended.Done()
			debug.SetPanicOnFault(true)
			for order := range member.orders {
				member.answers <- guarded(task.files, func() error { return order(member) })
			}
		}()
	}
	return threads
}

// orderAll has all threads do something, and returns the first failure.
func (c *jobThreads) orderAll(order func(*member) error) error {
	for _, member := range c.members {
		member.orders <- order
	}
	var first error
	for _, member := range c.members {
		if err := <-member.answers; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// sample has every thread do its part, and adds up what they did.
func (c *jobThreads) sample(request *request) (*sample, error) {
	c.batched.Store(false)
	order := func(member *member) error { return c.readFor(member, request) }
	if c.job.Sync == "commit" {
		order = func(member *member) error { return c.commitFor(member, request) }
	} else if c.task.fixed {
		order = func(member *member) error { return c.doFixed(member, request) }
	}
	if err := c.orderAll(order); err != nil {
		return nil, err
	}
	total, checksum := &sample{Type: "sample"}, uint64(0)
	begun, ended := uint64(math.MaxUint64), uint64(0)
	latencyBegun, latencyEnded := uint64(math.MaxUint64), uint64(0)
	latencies := newHistogram()
	for _, member := range c.members {
		part := &member.part
		begun, ended = min(begun, part.begun), max(ended, part.ended)
		if part.latencyOperations > 0 {
			latencyBegun = min(latencyBegun, part.latencyBegun)
			latencyEnded = max(latencyEnded, part.latencyEnded)
		}
		total.Operations += part.operations
		total.LatencyOperations += part.latencyOperations
		total.ThreadOperations = append(total.ThreadOperations, part.operations+part.latencyOperations)
		total.Bytes += part.bytes
		total.Stalls += part.stalls.count
		total.StallLongestNs = max(total.StallLongestNs, part.stalls.longestNs)
		checksum += part.checksum
		latencies.add(member.latencies)
	}
	total.ElapsedNs = ended - begun
	if latencyEnded > latencyBegun {
		total.LatencyElapsedNs = latencyEnded - latencyBegun
	}
	total.Checksum = fmt.Sprintf("%016x", checksum)
	total.LatencyNs, total.LatencyCounts = latencies.recorded()
	if c.task.syncs != nil {
		total.SyncNs, total.SyncCounts = c.task.syncs.recorded()
	}
	return total, nil
}

// handOver has the first thread do single reads and puts their bytes into the hand-over memory.
func (c *jobThreads) handOver(offsets []uint64) error {
	job := c.job
	handover, err := openFile(job.HandoverPath, os.O_RDWR)
	if err != nil {
		return err
	}
	buffer := make([]byte, job.ReadBytes)
	first := c.members[0]
	first.orders <- func(member *member) error {
		for index, offset := range offsets {
			if err := member.work.fetch(offset, buffer); err != nil {
				return err
			}
			destination := uint64(index) * job.ReadBytes
			if _, err := handover.file.WriteAt(buffer, int64(destination)); err != nil {
				return failedCall("pwrite", err, job.HandoverPath, destination)
			}
		}
		return nil
	}
	err = <-first.answers
	if closing := handover.close(); err == nil {
		err = closing
	}
	return err
}

// close syncs if the job says so, ends the threads, unmaps and closes. It returns what the sync
// took.
func (c *jobThreads) close() (uint64, error) {
	syncNs := uint64(0)
	if c.task.fixed && c.job.Sync == "end" {
		started := now()
		if err := c.orderAll(func(member *member) error { return member.work.sync() }); err != nil {
			return 0, err
		}
		syncNs = now() - started
	}
	for _, member := range c.members {
		close(member.orders)
	}
	c.ended.Wait()
	return syncNs, c.task.release()
}

// barrier is where threads wait for each other, again and again.
type barrier struct {
	mutex   sync.Mutex
	arrived *sync.Cond
	threads int
	waiting int
	round   uint64
}

func (b *barrier) start(threads int) {
	b.threads = threads
	b.arrived = sync.NewCond(&b.mutex)
}

func (b *barrier) wait() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	round := b.round
	b.waiting++
	if b.waiting == b.threads {
		b.waiting = 0
		b.round++
		b.arrived.Broadcast()
		return
	}
	for round == b.round {
		b.arrived.Wait()
	}
}
