// Files, mappings, memory and the clock.

package main

import (
	"math"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// dataFile is an open file and, for some methods, its mapping.
type dataFile struct {
	path    string
	file    *os.File
	mapping []byte
}

func openFile(path string, flags int) (*dataFile, error) {
	file, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, failedCall("open", err, path, 0)
	}
	return &dataFile{path: path, file: file}, nil
}

// mapBytes maps the file's first bytes, shared.
func (f *dataFile) mapBytes(length uint64, protection int) error {
	if length == 0 || length > math.MaxInt64 {
		return refusal("mmap", f.path, 0, "%d bytes of %s cannot be mapped", length, f.path)
	}
	mapping, err := syscall.Mmap(int(f.file.Fd()), 0, int(length), protection, syscall.MAP_SHARED)
	if err != nil {
		return refusedCall("mmap", err, f.path)
	}
	f.mapping = mapping
	return nil
}

// advise is madvise(2) of the whole mapping, as an option says.
func (f *dataFile) advise(option string) error {
	call := "madvise(MADV_" + strings.ToUpper(option) + ")"
	value, known := advice[option]
	if !known {
		return refusal(call, f.path, 1, "the go worker does not know what %q advises", option)
	}
	if err := syscall.Madvise(f.mapping, value); err != nil {
		return refusedCall(call, err, f.path)
	}
	return nil
}

// warmed keeps what page tables are warmed with from being optimised away.
var warmed atomic.Uint64

// warm reads one byte of each page of the mapping, if there is one.
func (f *dataFile) warm(pageBytes int) {
	total := uint64(0)
	for at := 0; at < len(f.mapping); at += pageBytes {
		total += uint64(f.mapping[at])
	}
	warmed.Add(total)
}

// fault is the failure of an access at an address of the mapping; nil: the address is elsewhere.
func (f *dataFile) fault(address uintptr) *failure {
	if len(f.mapping) == 0 {
		return nil
	}
	start := uintptr(unsafe.Pointer(&f.mapping[0]))
	if address < start || address-start >= uintptr(len(f.mapping)) {
		return nil
	}
	offset := uint64(address - start)
	failed := refusal("mmap", f.path, 0,
		"an access to the mapping of %s at offset %d cannot be served (SIGBUS): the file ends before, its filesystem is "+
			"full, or the device failed", f.path, offset)
	failed.Offset = offset
	return failed
}

// close unmaps and closes.
func (f *dataFile) close() error {
	if f.mapping != nil {
		mapping := f.mapping
		f.mapping = nil
		if err := syscall.Munmap(mapping); err != nil {
			return failedCall("munmap", err, f.path, 0)
		}
	}
	if err := f.file.Close(); err != nil {
		return failedCall("close", err, f.path, 0)
	}
	return nil
}

// memory is a buffer whose pages are there, so that no fault falls into a timed region.
func memory(length int) []byte {
	buffer := make([]byte, length)
	for at := 0; at < length; at += 4096 {
		buffer[at] = 1
		buffer[at] = 0
	}
	return buffer
}

// epoch is what times count from.
var epoch = time.Now()

// now is the monotonic clock in nanoseconds.
func now() uint64 { return uint64(time.Since(epoch)) }

// addSaturating is a deadline: a time that never comes stays the largest.
func addSaturating(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
