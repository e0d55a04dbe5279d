// Records: append and fill. Their content, and the jobs that write them.

package main

import (
	"math"
	"os"
	"syscall"
)

// supply is what records hold: pieces of a source that stays in the CPU's nearest caches.
type supply struct {
	source []byte
	record int
	period int
	// Start of the next record in the source; below the period.
	from int
	// From the start of a record to that of the next: the record's size modulo the period.
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
// Timed region: for each record: copy(into, source[from:from+record]); from = (from + record) mod
// period.
func (s *supply) fill(into []byte) {
	source, record, period, from, step := s.source, s.record, s.period, s.from, s.step
	for ; len(into) >= record; into = into[record:] {
		copy(into[:record], source[from:from+record])
		from += step
		if from >= period {
			from -= period
		}
	}
	s.from = from
}

// next is the next record.
func (s *supply) next() []byte {
	record := s.source[s.from : s.from+s.record]
	s.from += s.step
	if s.from >= s.period {
		s.from -= s.period
	}
	return record
}

// at is the record at an offset of the file.
func (s *supply) at(offset uint64) []byte {
	from := offset % uint64(s.period)
	return s.source[from : from+uint64(s.record)]
}

// recordWriter is a way to write records, in order.
type recordWriter interface {
	append(count uint64) error
	// flush puts what is collected into the file.
	flush() error
}

// records are the operations of a recordWriter, and where they go.
type records struct {
	writer    recordWriter
	target    *target
	path      string
	fileBytes uint64
	next      uint64
	end       uint64
}

func (t *task) openRecords(job *job, method *method) error {
	if job.Sync != "commit" {
		if err := oneThread(job); err != nil {
			return err
		}
	}
	if err := refuseRecords(job, method.buffer); err != nil {
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
	isUpdate, flags := job.Workload == "update", os.O_WRONLY
	if method.word == "mmap" || isUpdate {
		flags = os.O_RDWR
	}
	if method.word != "mmap" && job.SyncCall == openedForSync {
		flags |= syscall.O_DSYNC
	}
	file, err := t.open(job.Path, flags)
	if err != nil {
		return err
	}
	target := &target{
		ringBytes: job.FileBytes / job.RecordBytes * job.RecordBytes,
		syncBytes: syncBytes, syncs: newHistogram(), anywhere: isUpdate,
	}
	switch method.word {
	case "mmap":
		if err := file.mapBytes(job.FileBytes, syscall.PROT_READ|syscall.PROT_WRITE); err != nil {
			return err
		}
		if isUpdate && len(method.options) > 0 {
			if err := file.advise(method.options[0]); err != nil {
				return err
			}
		}
		target.sink = mapping{file}
	case "pwrite":
		target.sink = writeAt{file}
	default:
		target.sink = &write{file: file}
	}
	if target.syncRanges, err = file.syncer(job); err != nil {
		return err
	}
	if job.SyncCall == openedForSync {
		target.sink, target.syncBytes = &syncedWrites{sink: target.sink, syncs: target.syncs}, math.MaxUint64
	}
	t.syncs = target.syncs
	if job.Sync == "commit" {
		return t.openCommits(job, method, target, supply)
	}
	if isUpdate {
		return t.openUpdates(job, file, target, supply)
	}
	writer := newWriter(method, file, target, supply)
	t.works = []work{
		&records{writer: writer, target: target, path: job.Path, fileBytes: job.FileBytes, end: job.Records},
	}
	return nil
}

func newWriter(method *method, file *dataFile, target *target, supply *supply) recordWriter {
	switch {
	case method.word == "bufio":
		return newBufioRecords(target, supply, int(method.buffer))
	case method.buffer > 0:
		whole := int(method.buffer) / supply.record * supply.record
		return &collectedRecords{target: target, supply: supply, buffer: memory(whole)}
	case method.word == "mmap":
		return &storedRecords{target: target, supply: supply, mapping: file.mapping}
	}
	return &calledRecords{target: target, supply: supply}
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
	return w.target.syncRest()
}

func (w *records) begin(*request) {}
func (w *records) bytes() uint64  { return w.target.written }
func (w *records) warm() error    { return nil }
func (w *records) sync() error    { return w.target.syncRanges([2]span{{0, w.fileBytes}}) }

func (w *records) fetch(offset uint64, into []byte) error {
	return refusal("verify", w.path, 0,
		"there is no read of %d bytes at offset %d where records are written", len(into), offset)
}
