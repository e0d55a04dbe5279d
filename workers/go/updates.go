// Updates: blocks at the offsets of a table, each after others that are read.

package main

import "encoding/binary"

// updates are the blocks of a job in the order of its table.
type updates struct {
	*records
	sink   sink
	supply *supply
	// The way to read the blocks between; nil without any.
	reader reader
	// Little-endian offsets: for each update those of the blocks read before it, then its own.
	table []byte
	// Bytes of the table for the reads before one update.
	readEntries int
}

// openUpdates opens the order of a job whose file is open.
func (t *task) openUpdates(job *job, file *dataFile, target *target, supply *supply) error {
	if job.TableReads != job.Records*(job.ReadsPerOp+1) {
		return refusal("open", job.Path, 0, "a table of %d accesses is not one of %d updates and %d reads before each",
			job.TableReads, job.Records, job.ReadsPerOp)
	}
	if err := t.openTable(job); err != nil {
		return err
	}
	updates := &updates{
		records: &records{target: target, path: job.Path, fileBytes: job.FileBytes, end: job.Records},
		sink:    target.sink, supply: supply, table: t.table.mapping, readEntries: int(job.ReadsPerOp) * 8,
	}
	if job.ReadsPerOp > 0 {
		reading := *job
		reading.ReadBytes, reading.SpanBytes = job.RecordBytes, job.FileBytes
		reader, err := newReader(&reading, file)
		if err != nil {
			return err
		}
		updates.reader = reader
	}
	t.works = []work{updates}
	return nil
}

func (w *updates) begin(request *request) {
	if w.reader != nil {
		w.reader.begin(request.TouchAt)
	}
}

// Timed region: for each update: reader.read of the blocks before it; put(source[offset mod
// period:], offset); sync when due.
func (w *updates) perform(position, wanted uint64) (uint64, uint64, error) {
	wanted = min(wanted, w.end-position)
	target, record, reads, total := w.target, uint64(w.supply.record), w.readEntries, uint64(0)
	for index := position; index < position+wanted; index++ {
		entries := w.table[int(index)*(reads+8):]
		if reads > 0 {
			checksum, err := w.reader.read(entries[:reads], 0, 2*index*uint64(reads/8)+1)
			if err != nil {
				return 0, 0, err
			}
			total += checksum
		}
		offset := binary.LittleEndian.Uint64(entries[reads:])
		if offset > w.fileBytes-record {
			return 0, 0, refusal("update", w.path, 0, "offset %d of the table leaves no room for a block in the file", offset)
		}
		if err := w.sink.put(w.supply.at(offset), offset); err != nil {
			return 0, 0, err
		}
		if target.count(record) {
			if err := target.sync(); err != nil {
				return 0, 0, err
			}
		}
	}
	return wanted, total, nil
}

func (w *updates) timed(position, wanted uint64, _ *histogram) (uint64, uint64, error) {
	return w.perform(position, wanted)
}

func (w *updates) finish() error { return w.target.syncRest() }
