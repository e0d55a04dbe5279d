// Failures: calls that failed, as the conversation carries them.

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"syscall"
)

// failure is a call that failed, as the protocol carries it.
type failure struct {
	Type        string `json:"type"`
	Call        string `json:"call"`
	Errno       uint64 `json:"errno"`
	Path        string `json:"path"`
	Offset      uint64 `json:"offset"`
	Detail      string `json:"detail"`
	Unavailable uint64 `json:"unavailable"`
}

func (f *failure) Error() string { return f.Detail }

// failedCall is a call that failed although it should work everywhere.
func failedCall(call string, err error, path string, offset uint64) *failure {
	var errno syscall.Errno
	errors.As(err, &errno)
	cause := err
	if errno != 0 {
		cause = errno
	}
	return &failure{
		Type: "failed", Call: call, Errno: uint64(errno), Path: path, Offset: offset,
		Detail: fmt.Sprintf("%s at offset %d of %s: %v", call, offset, path, cause),
	}
}

// refusedCall is a call that some kernels, filesystems or policies do not offer; other errors
// remain failures.
func refusedCall(call string, err error, path string) *failure {
	failed := failedCall(call, err, path, 0)
	switch syscall.Errno(failed.Errno) {
	case syscall.EINVAL, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.EPERM, syscall.EACCES, syscall.ENODEV:
		failed.Unavailable = 1
	}
	return failed
}

// refusal is a job that makes no sense: no call was made.
func refusal(call, path string, unavailable uint64, format string, values ...any) *failure {
	return &failure{
		Type: "failed", Call: call, Path: path, Detail: fmt.Sprintf(format, values...), Unavailable: unavailable,
	}
}

// readFailure says why a read of `expected` bytes brought only `received`. At the end of the file
// errno is 0.
func readFailure(call string, err error, path string, offset uint64, expected, received int) *failure {
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return failedCall(call, err, path, offset)
	}
	failed := refusal(call, path, 0,
		"%s at offset %d of %s returned %d of %d bytes", call, offset, path, received, expected)
	failed.Offset = offset
	return failed
}

// guarded does work on files that may be mapped. A fault that the kernel cannot serve becomes a
// failure; any other panic ends the worker with its stack.
func guarded(files []*dataFile, do func() error) (err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if fault, ok := cause.(interface{ Addr() uintptr }); ok {
			for _, file := range files {
				if failed := file.fault(fault.Addr()); failed != nil {
					err = failed
					return
				}
			}
		}
		fmt.Fprintf(os.Stderr, "go worker: panic: %v\n%s", cause, debug.Stack())
		os.Exit(1)
	}()
	return do()
}
