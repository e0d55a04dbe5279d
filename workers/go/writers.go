// Ways to write records, and what they write to.

package main

import (
	"bufio"
	"io"
	"math"
	"sync"
)

// sink is where bytes go.
type sink interface {
	// put puts bytes at an offset of the file.
	put(bytes []byte, offset uint64) error
}

// target is a sink with the cursor in the ring, what got there, and when a sync is due.
type target struct {
	sink      sink
	cursor    uint64
	ringBytes uint64
	written   uint64
	unsynced  uint64
	// A sync is due when so much is unsynced; MaxUint64 without syncs within the measured region.
	syncBytes uint64
	// See [dataFile.syncer].
	syncRanges func([2]span) error
	// Durations of the syncs within the measured region.
	syncs *histogram
	// True if records are anywhere, so that a sync covers all.
	anywhere bool
}

// put puts bytes at the cursor; where the end of the ring lies between, the second part at its
// start.
func (t *target) put(all []byte) error {
	due := false
	for rest := all; len(rest) > 0; {
		length := min(uint64(len(rest)), t.room())
		if err := t.sink.put(rest[:length], t.cursor); err != nil {
			return err
		}
		due = t.advance(length) || due
		rest = rest[length:]
	}
	if due {
		return t.sync()
	}
	return nil
}

// room is how much lies between the cursor and the end of the ring; never 0.
func (t *target) room() uint64 { return t.ringBytes - t.cursor }

// advance moves the cursor by bytes that reached the file, at most to the end of the ring, which is
// its start. It returns whether a sync is due.
func (t *target) advance(length uint64) bool {
	t.cursor += length
	if t.cursor == t.ringBytes {
		t.cursor = 0
	}
	return t.count(length)
}

// count counts bytes that reached the file. It returns whether a sync is due.
func (t *target) count(length uint64) bool {
	t.written += length
	t.unsynced += length
	return t.unsynced >= t.syncBytes
}

// sync waits until what was not synced yet is on the device: in two parts where the end of the ring
// lies between.
func (t *target) sync() error {
	cursor, unsynced, end := t.cursor, t.unsynced, t.ringBytes
	ranges := [2]span{{end - (unsynced - cursor), end}, {0, cursor}}
	if unsynced >= end || t.anywhere {
		ranges = [2]span{{0, end}}
	} else if unsynced <= cursor {
		ranges = [2]span{{cursor - unsynced, cursor}}
	}
	begun := now()
	if err := t.syncRanges(ranges); err != nil {
		return err
	}
	t.syncs.record(now() - begun)
	t.unsynced = 0
	return nil
}

// syncRest syncs what is left at the end of the measured region, if syncs belong to it.
func (t *target) syncRest() error {
	if t.syncBytes == math.MaxUint64 || t.unsynced == 0 {
		return nil
	}
	return t.sync()
}

// mapping is the sink of mmap.
type mapping struct{ file *dataFile }

func (m mapping) put(bytes []byte, offset uint64) error {
	copy(m.file.mapping[offset:], bytes)
	return nil
}

// writeAt is the sink of pwrite.
type writeAt struct{ file *dataFile }

func (w writeAt) put(bytes []byte, offset uint64) error {
	if _, err := w.file.file.WriteAt(bytes, int64(offset)); err != nil {
		return failedCall("pwrite", err, w.file.path, offset)
	}
	return nil
}

// write is the sink of write and bufio: at the file's position, which is moved where that is not
// the offset.
type write struct {
	file     *dataFile
	position uint64
}

func (w *write) put(bytes []byte, offset uint64) error {
	if offset != w.position {
		if _, err := w.file.file.Seek(int64(offset), io.SeekStart); err != nil {
			return failedCall("lseek", err, w.file.path, offset)
		}
	}
	if _, err := w.file.file.Write(bytes); err != nil {
		return failedCall("write", err, w.file.path, offset)
	}
	w.position = offset + uint64(len(bytes))
	return nil
}

// syncedWrites is a sink whose writes are syncs, several at once with commits.
type syncedWrites struct {
	sink
	mutex sync.Mutex
	syncs *histogram
}

func (s *syncedWrites) put(bytes []byte, offset uint64) error {
	begun := now()
	if err := s.sink.put(bytes, offset); err != nil {
		return err
	}
	took := now() - begun
	s.mutex.Lock()
	s.syncs.record(took)
	s.mutex.Unlock()
	return nil
}

// storedRecords are copied to where they come to lie in the mapping.
type storedRecords struct {
	target  *target
	supply  *supply
	mapping []byte
}

// Timed region: supply.fill for each piece, which ends at the end of the ring or where a sync is
// due.
func (w *storedRecords) append(count uint64) error {
	target, record := w.target, uint64(w.supply.record)
	for left := count * record; left > 0; {
		piece := min(left, target.room())
		if due := target.syncBytes - target.unsynced; due < piece {
			piece = min(piece, (due+record-1)/record*record)
		}
		w.supply.fill(w.mapping[target.cursor : target.cursor+piece])
		left -= piece
		if target.advance(piece) {
			if err := target.sync(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *storedRecords) flush() error { return nil }

// calledRecords are a call each.
type calledRecords struct {
	target *target
	supply *supply
}

// Timed region: for each record: sink.put(source[from:from+record], cursor); from = (from + record)
// mod period.
func (w *calledRecords) append(count uint64) error {
	for ; count > 0; count-- {
		if err := w.target.put(w.supply.next()); err != nil {
			return err
		}
	}
	return nil
}

func (w *calledRecords) flush() error { return nil }

// collectedRecords are collected in a buffer that holds whole records.
type collectedRecords struct {
	target *target
	supply *supply
	buffer []byte
	filled int
}

// Timed region: for each piece: if the buffer is full: target.put of it; supply.fill of what it has
// room for.
func (w *collectedRecords) append(count uint64) error {
	for left := count * uint64(w.supply.record); left > 0; {
		if w.filled == len(w.buffer) {
			if err := w.flush(); err != nil {
				return err
			}
		}
		length := int(min(uint64(len(w.buffer)-w.filled), left))
		w.supply.fill(w.buffer[w.filled : w.filled+length])
		w.filled += length
		left -= uint64(length)
	}
	return nil
}

func (w *collectedRecords) flush() error {
	filled := w.filled
	w.filled = 0
	return w.target.put(w.buffer[:filled])
}

// bufioRecords go through a bufio.Writer, which writes its buffer when it is full; a record may go
// on in the next.
type bufioRecords struct {
	supply *supply
	writer *bufio.Writer
}

func newBufioRecords(target *target, supply *supply, size int) *bufioRecords {
	writer := bufio.NewWriterSize(target, size)
	// The buffer's pages are made before the clock starts.
	free := writer.AvailableBuffer()
	free = free[:cap(free)]
	for at := 0; at < len(free); at += 4096 {
		free[at] = 1
	}
	return &bufioRecords{supply, writer}
}

// Write is put, for the bufio.Writer.
func (t *target) Write(all []byte) (int, error) {
	if err := t.put(all); err != nil {
		return 0, err
	}
	return len(all), nil
}

// Timed region: for each record: writer.Write(source[from:from+record]); from = (from + record) mod
// period.
func (w *bufioRecords) append(count uint64) error {
	for ; count > 0; count-- {
		if _, err := w.writer.Write(w.supply.next()); err != nil {
			return err
		}
	}
	return nil
}

func (w *bufioRecords) flush() error { return w.writer.Flush() }
