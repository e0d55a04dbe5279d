// Records: append and fill.

package main

import (
	"bufio"
	"io"
	"math"
	"os"
	"strings"
	"syscall"
)

// supply is what records hold: pieces of a source that stays in the CPU's nearest caches.
type supply struct {
	source []byte
	record int
	period int
	// Where in the source the next record begins; below the period.
	place int
	// From one record's place to the next one's: the record's size modulo the period.
	step int
}

// readSupply reads the source of a job: the period and a record more.
func readSupply(job *job) (*supply, error) {
	file, err := openFile(job.SourcePath, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	source := memory(int(job.SourcePeriod + job.RecordBytes))
	received, err := file.file.ReadAt(source, 0)
	if received != len(source) {
		err = readFailure("pread", err, job.SourcePath, 0, len(source), received)
		_ = file.close()
		return nil, err
	}
	if err := file.close(); err != nil {
		return nil, err
	}
	record, period := int(job.RecordBytes), int(job.SourcePeriod)
	return &supply{source: source, record: record, period: period, step: record % period}, nil
}

// fill puts the next records into `into`, whose length is a multiple of the record.
//
// Timed region: for each record: copy(into, source[place:place+record]); place = (place + record) mod period.
func (s *supply) fill(into []byte) {
	source, record, period, place, step := s.source, s.record, s.period, s.place, s.step
	for ; len(into) >= record; into = into[record:] {
		copy(into[:record], source[place:place+record])
		place += step
		if place >= period {
			place -= period
		}
	}
	s.place = place
}

// ring is the cursor in the file, what got there, and when a sync is due.
type ring struct {
	cursor    uint64
	ringBytes uint64
	written   uint64
	unsynced  uint64
	// A sync is due when so much is unsynced; MaxUint64 without syncs within the measured region.
	syncBytes uint64
}

// room is how much lies between the cursor and the end of the ring; never 0.
func (r *ring) room() uint64 { return r.ringBytes - r.cursor }

// advance moves the cursor by bytes that reached the file, at most to the end of the ring, which is its start. It returns
// whether a sync is due.
func (r *ring) advance(length uint64) bool {
	r.cursor += length
	if r.cursor == r.ringBytes {
		r.cursor = 0
	}
	r.written += length
	r.unsynced += length
	return r.unsynced >= r.syncBytes
}

// owesSync is whether the measured region ends with a sync.
func (r *ring) owesSync() bool { return r.syncBytes != math.MaxUint64 && r.unsynced > 0 }

// recordWriter is a way to write records, in order.
type recordWriter interface {
	append(count uint64) error
	// flush puts what is collected into the file.
	flush() error
	// syncUnsynced waits until what was not synced yet is on the device.
	syncUnsynced() error
	// syncAll waits until all of the file is.
	syncAll() error
	progress() *ring
}

// records are the operations of a recordWriter.
type records struct {
	writer recordWriter
	path   string
	next   uint64
	end    uint64
}

func (t *task) openRecords(job *job, method *method) error {
	word, size := method.word, method.buffer
	if err := oneThread(job); err != nil {
		return err
	}
	if err := refuseRecords(job, size); err != nil {
		return err
	}
	syncBytes, err := syncInterval(job)
	if err != nil {
		return err
	}
	supply, err := readSupply(job)
	if err != nil {
		return err
	}
	file, err := t.open(job.Path, os.O_RDWR)
	if err != nil {
		return err
	}
	ring := ring{ringBytes: job.FileBytes / job.RecordBytes * job.RecordBytes, syncBytes: syncBytes}
	var writer recordWriter
	if word == "bufio" {
		writer = newBufioRecords(supply, file, ring, int(size))
	} else if err := file.mapBytes(job.FileBytes, syscall.PROT_READ|syscall.PROT_WRITE); err != nil {
		return err
	} else if size > 0 {
		buffer := memory(int(size / job.RecordBytes * job.RecordBytes))
		writer = &collectedRecords{mappedRing: mappedRing{file, ring}, supply: supply, buffer: buffer}
	} else {
		writer = &straightRecords{mappedRing: mappedRing{file, ring}, supply: supply}
	}
	t.works = []work{&records{writer: writer, path: job.Path, end: job.Records}}
	return nil
}

// refuseRecords says why records cannot be written; `size` is that of the buffer, 0 without one.
func refuseRecords(job *job, size uint64) error {
	if job.RecordBytes == 0 || job.SourcePeriod == 0 {
		return refusal("open", job.Path, 0, "record_bytes and source_period of a job that writes are above 0")
	}
	if job.RecordBytes > job.FileBytes {
		return refusal("open", job.Path, 0, "a record of %d bytes does not fit into %s, which has %d",
			job.RecordBytes, job.Path, job.FileBytes)
	}
	if size > 0 && size < job.RecordBytes {
		return refusal("open", job.Path, 0,
			"a record of %d bytes does not fit into the buffer of %s, which has %d; buffer=%dB and more is accepted",
			job.RecordBytes, job.Method, size, job.RecordBytes)
	}
	return nil
}

// syncInterval is after how many bytes a sync is due within the measured region; MaxUint64: never.
func syncInterval(job *job) (uint64, error) {
	if job.Sync == "none" || job.Sync == "end" {
		return math.MaxUint64, nil
	}
	if text, found := strings.CutPrefix(job.Sync, "every:"); found {
		if size, ok := parseSize(text); ok {
			return size, nil
		}
	}
	return 0, refusal("open", job.Path, 1, "the go worker cannot sync by %q", job.Sync)
}

// mappedRing is a ring in a mapping.
type mappedRing struct {
	file *dataFile
	ring ring
}

func (m *mappedRing) progress() *ring { return &m.ring }

func (m *mappedRing) syncUnsynced() error {
	cursor, unsynced, end := m.ring.cursor, m.ring.unsynced, m.ring.ringBytes
	m.ring.unsynced = 0
	if unsynced >= end {
		return m.file.msync(0, end)
	}
	if unsynced <= cursor {
		return m.file.msync(cursor-unsynced, cursor)
	}
	if err := m.file.msync(end-(unsynced-cursor), end); err != nil || cursor == 0 {
		return err
	}
	return m.file.msync(0, cursor)
}

func (m *mappedRing) syncAll() error { return m.file.msync(0, uint64(len(m.file.mapping))) }

// straightRecords are copied to where they come to lie.
type straightRecords struct {
	mappedRing
	supply *supply
}

// Timed region: supply.fill for each stretch, which ends at the end of the ring or where a sync is due.
func (w *straightRecords) append(count uint64) error {
	record := uint64(w.supply.record)
	for left := count * record; left > 0; {
		stretch := min(left, w.ring.room())
		if due := w.ring.syncBytes - w.ring.unsynced; due < stretch {
			stretch = min(stretch, (due+record-1)/record*record)
		}
		w.supply.fill(w.file.mapping[w.ring.cursor : w.ring.cursor+stretch])
		left -= stretch
		if w.ring.advance(stretch) {
			if err := w.syncUnsynced(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *straightRecords) flush() error { return nil }

// collectedRecords are collected in a buffer that holds whole records.
type collectedRecords struct {
	mappedRing
	supply *supply
	buffer []byte
	filled int
}

// Timed region: for each stretch: if the buffer is full: copy it to the mapping; supply.fill of what it has room for.
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

// flush copies the buffer to the mapping; where the end of the ring lies between, the second part to its start.
func (w *collectedRecords) flush() error {
	due := false
	for rest := w.buffer[:w.filled]; len(rest) > 0; {
		length := min(uint64(len(rest)), w.ring.room())
		copy(w.file.mapping[w.ring.cursor:], rest[:length])
		due = w.ring.advance(length) || due
		rest = rest[length:]
	}
	w.filled = 0
	if due {
		return w.syncUnsynced()
	}
	return nil
}

// bufioRecords go through a bufio.Writer, which writes its buffer when it is full; a record may go on in the next.
type bufioRecords struct {
	supply *supply
	writer *bufio.Writer
	under  *ringFile
}

// ringFile is what the bufio.Writer writes to: the file, begun again at the end of the ring.
type ringFile struct {
	file *dataFile
	ring ring
}

func newBufioRecords(supply *supply, file *dataFile, ring ring, size int) *bufioRecords {
	under := &ringFile{file, ring}
	writer := bufio.NewWriterSize(under, size)
	// The buffer's pages are made before the clock starts.
	free := writer.AvailableBuffer()
	free = free[:cap(free)]
	for at := 0; at < len(free); at += 4096 {
		free[at] = 1
	}
	return &bufioRecords{supply, writer, under}
}

// Write puts bytes at the cursor; where the end of the ring lies between, the second part at its start.
func (f *ringFile) Write(all []byte) (int, error) {
	due := false
	for rest := all; len(rest) > 0; {
		length := min(uint64(len(rest)), f.ring.room())
		written, err := f.file.file.Write(rest[:length])
		if uint64(written) != length {
			return len(all) - len(rest), failedCall("write", err, f.file.path, f.ring.cursor)
		}
		due = f.ring.advance(length) || due
		rest = rest[length:]
		if f.ring.cursor == 0 {
			if _, err := f.file.file.Seek(0, io.SeekStart); err != nil {
				return len(all) - len(rest), failedCall("lseek", err, f.file.path, 0)
			}
		}
	}
	if due {
		f.ring.unsynced = 0
		return len(all), f.file.fdatasync()
	}
	return len(all), nil
}

// Timed region: for each record: writer.Write(source[place:place+record]); place = (place + record) mod period.
func (w *bufioRecords) append(count uint64) error {
	source, record, period, step := w.supply.source, w.supply.record, w.supply.period, w.supply.step
	place, writer := w.supply.place, w.writer
	for ; count > 0; count-- {
		if _, err := writer.Write(source[place : place+record]); err != nil {
			return err
		}
		place += step
		if place >= period {
			place -= period
		}
	}
	w.supply.place = place
	return nil
}

func (w *bufioRecords) flush() error { return w.writer.Flush() }

func (w *bufioRecords) syncUnsynced() error {
	w.under.ring.unsynced = 0
	return w.under.file.fdatasync()
}

func (w *bufioRecords) syncAll() error  { return w.under.file.fdatasync() }
func (w *bufioRecords) progress() *ring { return &w.under.ring }

func (w *records) perform(position, wanted uint64) (uint64, uint64, error) {
	if position != w.next {
		return 0, 0, refusal("append", w.path, 0,
			"record %d was asked for where record %d is next; they are written in order", position, w.next)
	}
	wanted = min(wanted, w.end-position)
	if err := w.writer.append(wanted); err != nil {
		return 0, 0, err
	}
	w.next += wanted
	return wanted, 0, nil
}

func (w *records) timed(position, wanted uint64, _ *histogram) (uint64, uint64, error) {
	return w.perform(position, wanted)
}

func (w *records) finish() error {
	if err := w.writer.flush(); err != nil {
		return err
	}
	if w.writer.progress().owesSync() {
		return w.writer.syncUnsynced()
	}
	return nil
}

func (w *records) bytes() uint64 { return w.writer.progress().written }
func (w *records) warm() error   { return nil }
func (w *records) sync() error   { return w.writer.syncAll() }

func (w *records) fetch(offset uint64, into []byte) error {
	return refusal("verify", w.path, 0, "there is no read of %d bytes at offset %d where records are written", len(into), offset)
}
