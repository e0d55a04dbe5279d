// Tasks: a job, understood and opened.

package main

import (
	"os"
	"syscall"
)

// work is what one thread does between two clocks. A position counts operations from the first one
// on.
type work interface {
	// begin is called before the clock of a sample.
	begin(request *request)
	// perform does at most `wanted` operations from `position` on, at least one.
	perform(position, wanted uint64) (done, checksum uint64, err error)
	// timed is perform with the time of each operation recorded.
	timed(position, wanted uint64, latencies *histogram) (done, checksum uint64, err error)
	// finish completes what is collected in a buffer, and syncs if that belongs to the measured
	// region.
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
	// True if a `go` is an amount of work; reads last a time.
	fixed bool
	// Durations of syncs within the measured region; nil where nothing is written.
	syncs *histogram
}

func openTask(job *job) (*task, error) {
	method, err := parseMethod(job)
	if err != nil {
		return nil, err
	}
	task := &task{}
	switch job.Workload {
	case "random-read", "sequential-read":
		err = task.openReads(job, method)
	case "scan":
		task.fixed = true
		err = task.openScan(job, method)
	default:
		task.fixed = true
		err = task.openRecords(job, method)
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

// openTable opens the table of a job and maps it.
func (t *task) openTable(job *job) error {
	var err error
	if t.table, err = openFile(job.TablePath, os.O_RDONLY); err != nil {
		return err
	}
	return t.table.mapBytes(job.TableReads*8, syscall.PROT_READ)
}

// oneThread refuses more than one.
func oneThread(job *job) error {
	if job.Threads == 1 {
		return nil
	}
	return refusal("open", job.Path, 0, "%s is the work of one thread, not of %d", job.Workload, job.Threads)
}
