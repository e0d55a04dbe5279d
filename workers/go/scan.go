// Scans: the whole span, front to back.

package main

import (
	"bufio"
	"io"
	"os"
	"syscall"
)

// scanner is a way to scan. A pass consumes the span by pieces of which all but the last are whole
// pages where words of pages are touched, and whole words where words are added, so that the
// checksum does not depend on their size.
type scanner interface {
	pass() (checksum uint64, err error)
}

// passes are the operations of a scanner.
type passes struct {
	scanner   scanner
	file      *dataFile
	spanBytes uint64
	pageBytes int
	done      uint64
}

func (t *task) openScan(job *job, method *method) error {
	word, size := method.word, method.buffer
	if err := oneThread(job); err != nil {
		return err
	}
	if job.PageBytes == 0 {
		return refusal("open", job.Path, 0, "page_bytes of a job that reads is above 0")
	}
	if size == 0 {
		size = defaultBuffer
	}
	if err := refusePiece(job, size); err != nil {
		return err
	}
	file, err := t.open(job.Path, os.O_RDONLY)
	if err != nil {
		return err
	}
	if word == "mmap" {
		if err := file.mapBytes(job.SpanBytes, syscall.PROT_READ); err != nil {
			return err
		}
	}
	var scanner scanner
	switch job.Consume {
	case "touch":
		scanner = scannerFor(word, job, file, int(size), touch{pageBytes: int(job.PageBytes)})
	case "sum":
		scanner = scannerFor(word, job, file, int(size), sum{})
	default:
		scanner = scannerFor(word, job, file, int(size), lines{})
	}
	t.works = []work{&passes{scanner: scanner, file: file, spanBytes: job.SpanBytes, pageBytes: int(job.PageBytes)}}
	return nil
}

// refusePiece says why pieces of a size cannot be consumed as the job asks.
func refusePiece(job *job, size uint64) error {
	// bufio makes a smaller buffer this large.
	const bufioLeast = 16
	multiple, why := uint64(1), ""
	switch job.Consume {
	case "touch":
		multiple, why = job.PageBytes, "one word of each page is touched"
	case "sum":
		multiple, why = 8, "words of 8 bytes are added"
	case "lines":
	default:
		return refusal("open", job.Path, 1, "the go worker cannot consume by %q", job.Consume)
	}
	if size < bufioLeast {
		return refusal("open", job.Path, 1, "the buffer of %s has %d bytes; bufio has none below %d", job.Method, size, bufioLeast)
	}
	if size%multiple != 0 {
		return refusal("open", job.Path, 1, "the buffer of %s has %d bytes: it is no multiple of %d, and %s",
			job.Method, size, multiple, why)
	}
	return nil
}

func scannerFor[C consumer](word string, job *job, file *dataFile, size int, consume C) scanner {
	switch word {
	case "mmap":
		return &pieces[mapped, C]{reads[mapped, C]{mapped{file.mapping}, memory(size), consume, job}, job.SpanBytes}
	case "pread":
		return &pieces[called, C]{reads[called, C]{called{file.file, job.Path}, memory(size), consume, job}, job.SpanBytes}
	}
	reader := bufio.NewReaderSize(file.file, size)
	// The buffer's pages are made before the clock starts: a read fills them, and the pass begins
	// anew.
	_, _ = reader.Peek(size)
	return &bufioScan[C]{file, reader, size, job.SpanBytes, consume}
}

type pieces[S source, C consumer] struct {
	reads[S, C]
	spanBytes uint64
}

// Timed region: for each piece: get(buffer, offset); total += consume(buffer).
func (s *pieces[S, C]) pass() (uint64, error) {
	total, source, buffer, consume := uint64(0), s.source, s.buffer, s.consume
	for offset := uint64(0); offset < s.spanBytes; offset += uint64(len(buffer)) {
		piece := buffer[:min(uint64(len(buffer)), s.spanBytes-offset)]
		if err := source.get(piece, offset); err != nil {
			return 0, err
		}
		total += consume.of(piece)
	}
	return total, nil
}

type bufioScan[C consumer] struct {
	file      *dataFile
	reader    *bufio.Reader
	size      int
	spanBytes uint64
	consume   C
}

// Timed region: for each full buffer: Peek; consume; Discard.
func (s *bufioScan[C]) pass() (uint64, error) {
	if _, err := s.file.file.Seek(0, io.SeekStart); err != nil {
		return 0, failedCall("lseek", err, s.file.path, 0)
	}
	total, reader, size, consume := uint64(0), s.reader, uint64(s.size), s.consume
	reader.Reset(s.file.file)
	for offset := uint64(0); offset < s.spanBytes; offset += size {
		wanted := int(min(size, s.spanBytes-offset))
		piece, err := reader.Peek(wanted)
		if len(piece) != wanted {
			return 0, readFailure("read", err, s.file.path, offset, wanted, len(piece))
		}
		total += consume.of(piece)
		// What was peeked at can be discarded.
		_, _ = reader.Discard(wanted)
	}
	return total, nil
}

func (w *passes) perform(_, wanted uint64) (uint64, uint64, error) {
	total := uint64(0)
	for pass := uint64(0); pass < wanted; pass++ {
		checksum, err := w.scanner.pass()
		if err != nil {
			return 0, 0, err
		}
		total += checksum
	}
	w.done += wanted
	return wanted, total, nil
}

func (w *passes) timed(position, wanted uint64, _ *histogram) (uint64, uint64, error) {
	return w.perform(position, wanted)
}

func (w *passes) begin(*request) {}
func (w *passes) finish() error  { return nil }
func (w *passes) sync() error    { return nil }
func (w *passes) bytes() uint64  { return w.done * w.spanBytes }

func (w *passes) warm() error {
	w.file.warm(w.pageBytes)
	return nil
}

func (w *passes) fetch(offset uint64, into []byte) error {
	return refusal("verify", w.file.path, 0, "there is no read of %d bytes at offset %d in a scan", len(into), offset)
}
