// Calls that put written bytes on the device.

package main

import (
	"math"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

// syncCalls are those that a job may name beside the usual one of a method. Each but the last
// follows the writes.
const syncCalls = "fdatasync,fsync,msync,sync_file_range," + openedForSync

// openedForSync is the call of a file whose writes are syncs.
const openedForSync = "O_DSYNC"

// syncInterval is after how many bytes a sync is due within the measured region; MaxUint64: never.
func syncInterval(job *job) (uint64, error) {
	if job.Sync == "none" || job.Sync == "end" || job.Sync == "commit" {
		return math.MaxUint64, nil
	}
	if text, found := strings.CutPrefix(job.Sync, "every:"); found {
		if size, ok := parseSize(text); ok {
			return size, nil
		}
	}
	return 0, refusal("open", job.Path, 1, "the go worker cannot sync by %q", job.Sync)
}

// span is a range of the file, its end exclusive.
type span struct{ from, to uint64 }

// syncer is the call that waits until ranges of the file are on the device, or all of it where the
// call knows no range; nil where writes are syncs, or nothing is synced.
func (f *dataFile) syncer(job *job) (func([2]span) error, error) {
	switch call := job.SyncCall; {
	case call == "fdatasync":
		return func([2]span) error { return f.synced(call, syscall.Fdatasync(int(f.file.Fd())), 0) }, nil
	case call == "fsync":
		return func([2]span) error { return f.synced(call, f.file.Sync(), 0) }, nil
	case call == "sync_file_range":
		return f.eachRange(f.syncFileRange), nil
	case call == "msync" && f.mapping != nil:
		return f.eachRange(f.msync), nil
	case call == openedForSync && f.mapping == nil, job.Sync == "none":
		return nil, nil
	}
	return nil, refusal("open", job.Path, 1, "%s does not sync by %q", job.Method, job.SyncCall)
}

func (f *dataFile) eachRange(sync func(from, to uint64) error) func([2]span) error {
	return func(ranges [2]span) error {
		for _, part := range ranges {
			if part.from < part.to {
				if err := sync(part.from, part.to); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// msync puts a range of the mapping on the device.
func (f *dataFile) msync(from, to uint64) error {
	from -= from % uint64(os.Getpagesize())
	part := f.mapping[from:to]
	_, _, errno := syscall.Syscall(
		syscall.SYS_MSYNC, uintptr(unsafe.Pointer(&part[0])), uintptr(len(part)), syscall.MS_SYNC)
	if errno != 0 {
		return f.synced("msync", errno, from)
	}
	return nil
}

// syncFileRange writes a range and waits for it: WAIT_BEFORE, WRITE and WAIT_AFTER.
func (f *dataFile) syncFileRange(from, to uint64) error {
	const waiting = 1 | 2 | 4
	return f.synced("sync_file_range", syscall.SyncFileRange(int(f.file.Fd()), int64(from), int64(to-from), waiting), from)
}

func (f *dataFile) synced(call string, err error, offset uint64) error {
	if err != nil {
		return failedCall(call, err, f.path, offset)
	}
	return nil
}
