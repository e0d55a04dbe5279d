// Tasks: a job, understood and opened.

package main

import (
	"math"
	"strconv"
	"strings"
)

// work is what one thread does between two clocks. A position counts operations from the first one on.
type work interface {
	// perform does at most `wanted` operations from `position` on, at least one.
	perform(position, wanted uint64) (done, checksum uint64, err error)
	// timed is perform with the time of each operation recorded.
	timed(position, wanted uint64, latencies *histogram) (done, checksum uint64, err error)
	// finish completes what is collected in a buffer, and syncs if that belongs to the measured region.
	finish() error
	// bytes are those received so far, or that reached the file.
	bytes() uint64
	// warm fills the page tables of the span.
	warm() error
	// fetch does one read in the same way and copies its bytes.
	fetch(offset uint64, into []byte) error
	// sync puts what was written on the device.
	sync() error
}

// task is the work of a job: one for each thread, and what it has open.
type task struct {
	works []work
	files []*dataFile
	table *dataFile
	// Whether a `go` is an amount of work; reads last a time.
	fixed bool
}

func openTask(job *job) (*task, error) {
	task := &task{}
	var err error
	switch job.Workload {
	case "random-read", "sequential-read":
		err = task.openReads(job)
	case "scan":
		task.fixed = true
		err = task.openScan(job)
	case "append", "fill":
		task.fixed = true
		err = task.openRecords(job)
	default:
		return nil, refusal("open", job.Path, 1, "the go worker has no methods for the workload %q", job.Workload)
	}
	if err == nil {
		return task, nil
	}
	_ = task.release()
	return nil, err
}

// release unmaps and closes all that the task has open. Of several failures it returns the first.
func (t *task) release() error {
	files := t.files
	if t.table != nil {
		files = append(files, t.table)
	}
	var first error
	for _, file := range files {
		if err := file.close(); err != nil && first == nil {
			first = err
		}
	}
	t.files, t.table = nil, nil
	return first
}

// open opens the file of the job for one more user of it.
func (t *task) open(path string, flags int) (*dataFile, error) {
	file, err := openFile(path, flags)
	if err == nil {
		t.files = append(t.files, file)
	}
	return file, err
}

// unknownMethod is the answer to a method that the worker does not have.
func unknownMethod(job *job, has string) *failure {
	return refusal("open", job.Path, 1, "the go worker has no method %q for %s; it has %s", job.Method, job.Workload, has)
}

// oneThread refuses more than one.
func oneThread(job *job) error {
	if job.Threads == 1 {
		return nil
	}
	return refusal("open", job.Path, 0, "%s is the work of one thread, not of %d", job.Workload, job.Threads)
}

// bufferOf splits `word:buffer=SIZE`. The size is 0 where none is written; `ok` is false where something else is.
func bufferOf(method string) (word string, size uint64, ok bool) {
	word, options, written := strings.Cut(method, ":")
	if !written {
		return word, 0, true
	}
	text, found := strings.CutPrefix(options, "buffer=")
	if !found {
		return word, 0, false
	}
	size, ok = parseSize(text)
	return word, size, ok
}

// parseSize understands `100B`, `64KiB`, `1MiB`, `2GiB`: a whole number above 0 and a binary unit.
func parseSize(text string) (uint64, bool) {
	digits := strings.TrimRight(text, "KMGiB")
	units := map[string]uint64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
	unit, known := units[text[len(digits):]]
	count, err := strconv.ParseUint(digits, 10, 64)
	if !known || err != nil || count == 0 || count > math.MaxInt64/unit {
		return 0, false
	}
	return count * unit, true
}
