// Reads by the offset table.

package main

import (
	"encoding/binary"
	"os"
	"syscall"
)

// reader is a way to read, bound to a file and one thread's buffer.
type reader interface {
	// begin sets which word of a page touch takes, before each sample.
	begin(touchAt uint64)
	// read does the reads at `entries`, little-endian offsets XOR the mask and whole operations, and
	// consumes their bytes. The checksum of the first read counts `weight` times, that of each further
	// one 2 times more.
	read(entries []byte, mask, weight uint64) (checksum uint64, err error)
	fetch(offset uint64, into []byte) error
}

// tableReads are a reader and its thread's part of the offset table.
type tableReads struct {
	reader     reader
	file       *dataFile
	part       []byte
	firstRead  uint64 // position of the part's first read in the whole table
	opEntries  uint64 // bytes of the table for one operation
	opBytes    uint64
	operations uint64 // in the part
	pieces     tablePieces
	pageBytes  int
	done       uint64
}

func (t *task) openReads(job *job, method *method) error {
	if job.Threads == 0 || job.ReadBytes == 0 || job.ReadsPerOp == 0 || job.PageBytes == 0 {
		return refusal("open", job.Path, 0, "threads, read_bytes, reads_per_op and page_bytes of a job of reads are above 0")
	}
	if job.Dependent == 1 && job.ReadBytes < 8 {
		return refusal("dependent read", job.Path, 1,
			"dependent reads need 8 bytes of data to follow, not the %d that a read has", job.ReadBytes)
	}
	operations := job.TableReads / job.ReadsPerOp / job.Threads
	if operations == 0 {
		return refusal("open", job.TablePath, 0, "a table of %d reads has no operation of %d for each of %d threads",
			job.TableReads, job.ReadsPerOp, job.Threads)
	}
	if err := t.openTable(job); err != nil {
		return err
	}
	opEntries := job.ReadsPerOp * 8
	for thread := uint64(0); thread < job.Threads; thread++ {
		if thread == 0 || job.Descriptor == "per-thread" {
			if err := t.openRead(job, method); err != nil {
				return err
			}
		}
		file := t.files[len(t.files)-1]
		reader, err := newReader(job, file)
		if err != nil {
			return err
		}
		part := operations * opEntries
		t.works = append(t.works, &tableReads{
			reader: reader, file: file, part: t.table.mapping[thread*part : (thread+1)*part],
			firstRead: thread * operations * job.ReadsPerOp,
			opEntries: opEntries, opBytes: job.ReadsPerOp * job.ReadBytes, operations: operations,
			pieces:    newTablePieces(operations, job.PieceReads/job.ReadsPerOp),
			pageBytes: int(job.PageBytes),
		})
	}
	return nil
}

// openRead opens the file for reading, and maps and advises it where the method says so.
func (t *task) openRead(job *job, method *method) error {
	file, err := t.open(job.Path, os.O_RDONLY)
	if err != nil || method.word != "mmap" {
		return err
	}
	if err := file.mapBytes(job.SpanBytes, syscall.PROT_READ); err != nil {
		return err
	}
	for _, option := range method.options {
		if err := file.advise(option); err != nil {
			return err
		}
	}
	return nil
}

func newReader(job *job, file *dataFile) (reader, error) {
	page := int(job.PageBytes)
	switch {
	case job.Consume == "touch" && job.TouchLast == 1:
		return readerFor(job, file, touchLast{touch{pageBytes: page}}), nil
	case job.Consume == "touch":
		return readerFor(job, file, touch{pageBytes: page}), nil
	case job.Consume == "sum":
		return readerFor(job, file, sum{}), nil
	case job.Consume == "lines":
		return readerFor(job, file, lines{}), nil
	}
	return nil, refusal("open", job.Path, 1, "the go worker cannot consume by %q", job.Consume)
}

func readerFor[C consumer](job *job, file *dataFile, consume C) reader {
	if file.mapping != nil {
		return readerFrom(job, mapped{file.mapping}, consume)
	}
	return readerFrom(job, called{file.file, job.Path}, consume)
}

func readerFrom[S source, C consumer](job *job, source S, consume C) reader {
	reads := reads[S, C]{source, memory(int(job.ReadBytes)), consume, job}
	if job.Dependent == 1 {
		return &chain[S, C]{reads, int(job.ReadsPerOp) * 8}
	}
	return &reads
}

// source is where bytes come from. Loops are compiled for each, as for each consumer.
type source interface {
	mapped | called
	// get does one read, as long as `into`.
	get(into []byte, offset uint64) error
}

// mapped copies out of a mapping.
type mapped struct{ mapping []byte }

func (m mapped) get(into []byte, offset uint64) error {
	copy(into, m.mapping[offset:offset+uint64(len(into))])
	return nil
}

// called reads by os.File.ReadAt.
type called struct {
	file *os.File
	path string
}

func (c called) get(into []byte, offset uint64) error {
	if received, err := c.file.ReadAt(into, int64(offset)); received != len(into) {
		return readFailure("pread", err, c.path, offset, len(into), received)
	}
	return nil
}

// reads are independent ones.
type reads[S source, C consumer] struct {
	source  S
	buffer  []byte
	consume C
	job     *job
}

func (r *reads[S, C]) begin(touchAt uint64) {
	switch consume := any(&r.consume).(type) {
	case *touch:
		consume.at = int(touchAt)
	case *touchLast:
		consume.touch.at = int(touchAt)
	}
}

// Timed region: for each entry: offset = entry ^ mask; offset <= last; get(buffer, offset); total
// += weight * consume(buffer); weight += 2.
func (r *reads[S, C]) read(entries []byte, mask, weight uint64) (uint64, error) {
	total, source, buffer, consume, last := uint64(0), r.source, r.buffer, r.consume, r.job.SpanBytes-r.job.ReadBytes
	for ; len(entries) >= 8; entries = entries[8:] {
		offset := binary.LittleEndian.Uint64(entries) ^ mask
		if offset > last {
			return 0, astray(r.job, offset)
		}
		if err := source.get(buffer, offset); err != nil {
			return 0, err
		}
		total += weight * consume.of(buffer)
		weight += 2
	}
	return total, nil
}

func (r *reads[S, C]) fetch(offset uint64, into []byte) error { return r.source.get(into, offset) }

// chain are dependent reads: each but the first of an operation is at its entry XOR the first word
// of the read before it. A loop of its own, so that independent reads pay nothing for it.
type chain[S source, C consumer] struct {
	reads[S, C]
	opEntries int
}

// Timed region: for each operation: link = 0; for each entry: offset = entry ^ mask ^ link; offset
// <= last; get(buffer, offset); link = buffer's first word; total += weight * consume(buffer);
// weight += 2.
func (r *chain[S, C]) read(entries []byte, mask, weight uint64) (uint64, error) {
	total, source, buffer, consume, last := uint64(0), r.source, r.buffer, r.consume, r.job.SpanBytes-r.job.ReadBytes
	for len(entries) > 0 {
		operation, link := entries[:r.opEntries], uint64(0)
		entries = entries[r.opEntries:]
		for ; len(operation) >= 8; operation = operation[8:] {
			offset := binary.LittleEndian.Uint64(operation) ^ mask ^ link
			if offset > last {
				return 0, astray(r.job, offset)
			}
			if err := source.get(buffer, offset); err != nil {
				return 0, err
			}
			link = binary.LittleEndian.Uint64(buffer)
			total += weight * consume.of(buffer)
			weight += 2
		}
	}
	return total, nil
}

// astray is the failure of a read that was led to where none fits into the span.
func astray(job *job, offset uint64) error {
	failed := refusal("read by the table", job.Path, 0,
		"the data of %s led to offset %d, past the %d bytes that are read: they are not those that the offset table was "+
			"made of", job.Path, offset, job.SpanBytes)
	failed.Offset = offset
	return failed
}

func (w *tableReads) begin(request *request) {
	w.pieces.begin(request.FirstOperation)
	w.reader.begin(request.TouchAt)
}

// perform goes on to the end of the part at most. The weight of a read is 2 * its position in the
// table + 1.
func (w *tableReads) perform(position, wanted uint64) (uint64, uint64, error) {
	done, total := uint64(0), uint64(0)
	for wanted = min(wanted, w.operations-position%w.operations); done < wanted; {
		start, count := (position+done)%w.operations, w.pieces.count(position+done, wanted-done)
		entries := w.part[start*w.opEntries : (start+count)*w.opEntries]
		checksum, err := w.reader.read(entries, w.pieces.mask, 2*(w.firstRead+start*w.opEntries/8)+1)
		if err != nil {
			return 0, 0, err
		}
		w.pieces.sum += checksum
		total += checksum
		done += count
	}
	w.done += done
	return done, total, nil
}

func (w *tableReads) timed(position, wanted uint64, latencies *histogram) (uint64, uint64, error) {
	done, total := uint64(0), uint64(0)
	before := now()
	for ; done < wanted; done++ {
		_, checksum, err := w.perform(position+done, 1)
		if err != nil {
			return 0, 0, err
		}
		total += checksum
		after := now()
		latencies.record(after - before)
		before = after
	}
	return done, total, nil
}

func (w *tableReads) finish() error { return nil }
func (w *tableReads) sync() error   { return nil }
func (w *tableReads) bytes() uint64 { return w.done * w.opBytes }

func (w *tableReads) warm() error {
	w.file.warm(w.pageBytes)
	return nil
}

func (w *tableReads) fetch(offset uint64, into []byte) error { return w.reader.fetch(offset, into) }
