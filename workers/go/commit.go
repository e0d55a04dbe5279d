// Commits: each record is on the device before its thread writes the next one.

package main

import (
	"math"
	"sync"
)

// commitThreads are the most threads that commit together.
const commitThreads = 256

// log is what the threads of a job of commits share. Those that have written a record wait for a
// sync that began after it; if none is under way, one of them syncs for all (group commit).
type log struct {
	target *target
	supply *supply
	job    *job
	// stream is held from taking a record to the end of its write where writes go to the file's
	// position; else nil.
	stream *sync.Mutex

	mutex   sync.Mutex
	changed *sync.Cond
	// The next record that nobody has taken, and how many are committed.
	next, committed uint64
	// Range of records that no sync has begun for.
	unsynced span
	// Syncs that began, and that ended. One is under way where they differ.
	begun, ended uint64
	failed       bool
}

// commits are what one thread writes to the log.
type commits struct {
	log     *log
	written uint64
}

func (t *task) openCommits(job *job, method *method, target *target, supply *supply) error {
	if method.buffer > 0 {
		return refusal("open", job.Path, 1, "%s collects records, and with commit none may stay in a buffer", job.Method)
	}
	log := &log{target: target, supply: supply, job: job, unsynced: span{math.MaxUint64, 0}}
	log.changed = sync.NewCond(&log.mutex)
	if method.word == "write" {
		log.stream = new(sync.Mutex)
	}
	for thread := uint64(0); thread < job.Threads; thread++ {
		t.works = append(t.works, &commits{log: log})
	}
	return nil
}

// commitFor is one thread's part of a sample of commits. There are no gaps: each record is timed.
func (c *jobThreads) commitFor(member *member, request *request) error {
	member.part = c.newPart()
	member.latencies.reset()
	work, part := member.work.(*commits), &member.part
	written := work.written
	c.rendezvous.wait()
	part.begun = now()
	deadline := addSaturating(part.begun, request.SampleNs)
	err := guarded(c.task.files, func() error {
		for clock := part.begun; clock < deadline; {
			begun, err := work.commit()
			if err != nil || begun == 0 {
				return err
			}
			clock = now()
			member.latencies.record(clock - begun)
			part.stalls.note(1, clock-begun)
			part.operations++
		}
		return nil
	})
	part.ended = now()
	part.bytes = work.written - written
	if err != nil {
		work.log.fail()
	}
	return err
}

// fail has threads that wait for others return.
func (l *log) fail() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.failed = true
	l.changed.Broadcast()
}

// commit writes the next record, waits until it is on the device, and returns when the write began;
// 0: there is none.
func (w *commits) commit() (uint64, error) {
	l := w.log
	if l.stream != nil {
		l.stream.Lock()
	}
	index, taken := l.take()
	begun := now()
	var err error
	if taken {
		err = l.write(index)
	}
	if l.stream != nil {
		l.stream.Unlock()
	}
	if err != nil || !taken {
		return 0, err
	}
	w.written += l.job.RecordBytes
	return begun, l.wait(index)
}

func (l *log) slots() uint64 { return l.target.ringBytes / l.job.RecordBytes }

// take is the next record; none after the last, or where another thread failed. Those of a pass
// over the ring wait for all records of the pass before.
func (l *log) take() (uint64, bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for l.next < l.job.Records && !l.failed {
		if l.next-l.next%l.slots() <= l.committed {
			l.next++
			return l.next - 1, true
		}
		l.changed.Wait()
	}
	return 0, false
}

func (l *log) offset(index uint64) uint64 { return index % l.slots() * l.job.RecordBytes }

func (l *log) write(index uint64) error {
	from := index * l.job.RecordBytes % l.job.SourcePeriod
	return l.target.sink.put(l.supply.source[from:from+l.job.RecordBytes], l.offset(index))
}

// wait waits for a sync that begins after the record was written, or does it.
func (l *log) wait(index uint64) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.target.syncRanges != nil {
		offset := l.offset(index)
		l.unsynced.from = min(l.unsynced.from, offset)
		l.unsynced.to = max(l.unsynced.to, offset+l.job.RecordBytes)
		for needed := l.begun + 1; l.ended < needed && !l.failed; {
			if l.begun > l.ended {
				l.changed.Wait()
			} else if err := l.sync(); err != nil {
				return err
			}
		}
	}
	l.committed++
	if l.committed%l.slots() == 0 {
		l.changed.Broadcast()
	}
	return nil
}

// sync syncs all that was written so far. The lock is held before and after, not meanwhile.
func (l *log) sync() error {
	ranges := [2]span{l.unsynced}
	l.unsynced = span{math.MaxUint64, 0}
	l.begun++
	l.mutex.Unlock()
	begun := now()
	err := l.target.syncRanges(ranges)
	took := now() - begun
	l.mutex.Lock()
	l.ended++
	l.target.syncs.record(took)
	l.changed.Broadcast()
	return err
}

func (w *commits) perform(position, _ uint64) (uint64, uint64, error) {
	return 0, 0, refusal("append", w.log.job.Path, 0, "record %d was asked for; threads take the next one", position)
}

func (w *commits) timed(position, wanted uint64, _ *histogram) (uint64, uint64, error) {
	return w.perform(position, wanted)
}

func (w *commits) begin(*request) {}
func (w *commits) finish() error  { return nil }
func (w *commits) bytes() uint64  { return w.written }
func (w *commits) warm() error    { return nil }
func (w *commits) sync() error    { return nil }

func (w *commits) fetch(offset uint64, into []byte) error {
	return refusal("verify", w.log.job.Path, 0,
		"there is no read of %d bytes at offset %d where records are written", len(into), offset)
}
