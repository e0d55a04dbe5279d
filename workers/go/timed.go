// Samples that last a time: reads by the table.

package main

import (
	"bytes"
	"math"
	"os"
)

// Operations of the latency phase between two looks at the bounds, at most.
const timedBatch = 256

// budget ends a phase when storage has read enough for this process.
type budget struct {
	counters *os.File // /proc/self/io; nil: no bound, or the kernel does not count
	text     [512]byte
	end      uint64
	nextNs   uint64
	checkNs  uint64 // each look costs a system call
}

var readBytesLine = []byte("\nread_bytes: ")

func newBudget(bytes, checkNs uint64) *budget {
	b := &budget{end: math.MaxUint64, checkNs: checkNs}
	if bytes == 0 {
		return b
	}
	counters, err := os.Open("/proc/self/io")
	if err != nil {
		return b
	}
	b.counters = counters
	if begin, ok := b.readBytes(); ok {
		b.end = begin + bytes
	}
	return b
}

// readBytes is what storage has read for the process.
func (b *budget) readBytes() (uint64, bool) {
	length, _ := b.counters.ReadAt(b.text[:], 0)
	at := bytes.Index(b.text[:length], readBytesLine)
	if at < 0 {
		return 0, false
	}
	value := uint64(0)
	for _, digit := range b.text[at+len(readBytesLine) : length] {
		if digit < '0' || digit > '9' {
			break
		}
		value = value*10 + uint64(digit-'0')
	}
	return value, true
}

func (b *budget) isSpent(nowNs uint64) bool {
	if b.counters == nil || nowNs < b.nextNs {
		return false
	}
	b.nextNs = nowNs + b.checkNs
	read, ok := b.readBytes()
	return ok && read >= b.end
}

func (b *budget) close() {
	if b.counters != nil {
		_ = b.counters.Close()
	}
}

// readFor is one thread's part of a sample of reads. All threads are in the same phase.
func (c *jobThreads) readFor(member *member, request *request) error {
	member.part = c.newPart()
	member.latencies.reset()
	received := member.work.bytes()
	member.work.begin(request)
	checkNs := c.job.DeviceCheckNs
	budget, rest := newBudget(c.job.ThroughputDeviceBytes, checkNs), newBudget(0, checkNs)
	defer func() { budget.close(); rest.close() }()
	c.rendezvous.wait()
	// Guarded, so that a thread whose access faults still comes to where the others wait for it.
	err := guarded(c.task.files, func() error {
		batched, err := throughput(member, request, budget, c.job)
		if batched {
			c.batched.Store(true)
		}
		return err
	})
	c.rendezvous.wait()
	if err != nil {
		return err
	}
	if c.batched.Load() && request.LatencyNs > 0 {
		member.latencies.reset()
		rest = newBudget(c.job.LatencyDeviceBytes, checkNs)
		if err := latency(member, request, rest, c.job.MaxThreadOperations); err != nil {
			return err
		}
	}
	member.part.bytes = member.work.bytes() - received
	return nil
}

// throughput reads the clock once a batch. It returns whether any batch had several operations:
// then their times are no latencies.
func throughput(member *member, request *request, budget *budget, job *job) (bool, error) {
	maxOperations, batchMinNs, batchMaxNs := job.ThroughputOperations, job.BatchMinNs, job.BatchMaxNs
	if maxOperations == 0 {
		maxOperations = math.MaxUint64
	}
	work, latencies, part, position := member.work, member.latencies, &member.part, request.FirstOperation
	batch, batched, operations, checksum := uint64(1), false, uint64(0), uint64(0)
	part.begun = now()
	deadline := addSaturating(part.begun, request.SampleNs)
	for before := part.begun; ; {
		wanted := min(batch, maxOperations-operations)
		done, sum, err := work.perform(position+operations, wanted)
		if err != nil {
			return batched, err
		}
		checksum += sum
		after := now()
		took := after - before
		part.stalls.note(done, took)
		operations += done
		if batch == 1 {
			latencies.record(took)
		}
		if after >= deadline || operations == maxOperations || budget.isSpent(after) {
			break
		}
		if done == batch && took < batchMinNs {
			batch, batched = batch*2, true
		} else if batch > 1 && took > batchMaxNs {
			batch /= 2
		}
		before = after
	}
	part.ended = now()
	part.operations, part.checksum = operations, checksum
	return batched, nil
}

// latency goes on where throughput ended, with a clock around each operation.
func latency(member *member, request *request, budget *budget, maxOperations uint64) error {
	work, part := member.work, &member.part
	position := request.FirstOperation + part.operations
	left := uint64(math.MaxUint64)
	if maxOperations > 0 {
		left = maxOperations - min(maxOperations, part.operations)
	}
	batch := uint64(8)
	part.latencyBegun = now()
	after := part.latencyBegun
	deadline := addSaturating(after, request.LatencyNs)
	for after < deadline && part.latencyOperations < left && !budget.isSpent(after) {
		wanted := min(batch, left-part.latencyOperations)
		done, checksum, err := work.timed(position+part.latencyOperations, wanted, member.latencies)
		if err != nil {
			return err
		}
		part.checksum += checksum
		part.latencyOperations += done
		before := after
		after = now()
		// Short batches keep to the deadline.
		if after-before < request.LatencyNs/16 {
			batch = min(batch*2, timedBatch)
		}
	}
	part.latencyEnded = after
	return nil
}
