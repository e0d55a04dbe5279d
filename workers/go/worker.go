// The Go worker of pagewise: reads and writes a file in the ways that Go programs do, as ../PROTOCOL.md (version 5) says.
//
// Go 1.21 or newer, the standard library alone: `CGO_ENABLED=0 go build -o worker worker.go`.
//
//	random-read, sequential-read
//	  mmap, mmap:random      syscall.Mmap, copied to a buffer of the thread; random: MADV_RANDOM of the whole span
//	  pread                  os.File.ReadAt into a buffer of the thread
//	scan
//	  mmap                   copied out of the mapping in pieces of 64 KiB
//	  pread                  os.File.ReadAt of pieces of 64 KiB
//	  bufio[:buffer=SIZE]    bufio.Reader (64 KiB unless said otherwise), by Peek and Discard
//	append
//	  mmap[:buffer=SIZE]     records copied into the mapping; with a buffer collected there first, whole records only
//	  bufio[:buffer=SIZE]    bufio.Writer (64 KiB unless said otherwise) over the file
//	fill
//	  mmap[:buffer=SIZE]     as append
//
// Threads are plain goroutines, as in a Go program, and GOMAXPROCS is what the environment says. A page fault in a mapping
// keeps the processor (P) of its goroutine; a read call gives it away. A fault that the kernel cannot serve (SIGBUS: the
// file has become shorter, or there is no room for it) is caught and told as `failed` of the call `mmap`.
//
// A failed call is told as `failed`. Anything else that goes wrong is a defect: stack trace on stderr, status 1. Times are
// nanoseconds of the monotonic clock, sizes bytes, words little-endian. Timed regions allocate nothing.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// ---------------------------------------------------------------------------------------------------------------------
// The conversation
// ---------------------------------------------------------------------------------------------------------------------

const (
	protocolVersion = 5
	workerVersion   = "1.0"
	// Bytes of one copy or call of a scan, and of a bufio buffer.
	defaultBuffer = 64 << 10
)

// hello is the first line. Where a method takes `buffer=SIZE`, one size stands for all.
type hello struct {
	Type           string `json:"type"`
	Protocol       int    `json:"protocol"`
	Worker         string `json:"worker"`
	Version        string `json:"version"`
	Practice       int    `json:"practice"`
	RandomRead     string `json:"random-read"`
	SequentialRead string `json:"sequential-read"`
	Scan           string `json:"scan"`
	Append         string `json:"append"`
	Fill           string `json:"fill"`
}

// job is what `open` carries; see ../PROTOCOL.md.
type job struct {
	Method              string `json:"method"`
	Workload            string `json:"workload"`
	Path                string `json:"path"`
	FileBytes           uint64 `json:"file_bytes"`
	SpanBytes           uint64 `json:"span_bytes"`
	Threads             uint64 `json:"threads"`
	Descriptor          string `json:"descriptor"`
	TablePath           string `json:"table_path"`
	TableReads          uint64 `json:"table_reads"`
	ReadBytes           uint64 `json:"read_bytes"`
	ReadsPerOp          uint64 `json:"reads_per_op"`
	Consume             string `json:"consume"`
	PageBytes           uint64 `json:"page_bytes"`
	TouchLast           uint64 `json:"touch_last"`
	Dependent           uint64 `json:"dependent"`
	WarmPageTables      uint64 `json:"warm_page_tables"`
	MaxThreadOperations uint64 `json:"max_thread_operations"`
	MaxDeviceBytes      uint64 `json:"max_device_bytes"`
	RecordBytes         uint64 `json:"record_bytes"`
	Records             uint64 `json:"records"`
	Sync                string `json:"sync"`
	SourcePath          string `json:"source_path"`
	SourcePeriod        uint64 `json:"source_period"`
	GapSeed             uint64 `json:"gap_seed"`
	HandoverPath        string `json:"handover_path"`
	HeartbeatNs         uint64 `json:"heartbeat_ns"`
}

// request is any line that pagewise sends; what a message does not have stays 0.
type request struct {
	Type string `json:"type"`
	job
	FirstOperation uint64   `json:"first_operation"`
	SampleNs       uint64   `json:"sample_ns"`
	LatencyNs      uint64   `json:"latency_ns"`
	IdleNs         uint64   `json:"idle_ns"`
	Offsets        []uint64 `json:"offsets"`
}

type opened struct {
	Type    string `json:"type"`
	SetupNs uint64 `json:"setup_ns"`
}

type ready struct {
	Type     string `json:"type"`
	WarmupNs uint64 `json:"warmup_ns"`
}

// beats are how late heartbeats came, as `idled` and `sample` carry them.
type beats struct {
	Kinds   string   `json:"heartbeat_kinds,omitempty"`
	Buckets []uint64 `json:"heartbeat_buckets,omitempty"`
	Ns      []uint64 `json:"heartbeat_ns,omitempty"`
	Counts  []uint64 `json:"heartbeat_counts,omitempty"`
}

type idled struct {
	Type string `json:"type"`
	beats
}

type sample struct {
	Type              string   `json:"type"`
	Operations        uint64   `json:"operations"`
	ElapsedNs         uint64   `json:"elapsed_ns"`
	LatencyOperations uint64   `json:"latency_operations"`
	LatencyElapsedNs  uint64   `json:"latency_elapsed_ns"`
	ThreadOperations  []uint64 `json:"thread_operations"`
	Bytes             uint64   `json:"bytes"`
	Checksum          string   `json:"checksum"`
	LatencyNs         []uint64 `json:"latency_ns"`
	LatencyCounts     []uint64 `json:"latency_counts"`
	Stalls            uint64   `json:"stalls"`
	StallLongestNs    uint64   `json:"stall_longest_ns"`
	beats
}

type verified struct {
	Type  string `json:"type"`
	Reads uint64 `json:"reads"`
}

type closed struct {
	Type       string `json:"type"`
	TeardownNs uint64 `json:"teardown_ns"`
	SyncNs     uint64 `json:"sync_ns"`
}

// talk is the two ends of the conversation.
type talk struct {
	requests *bufio.Reader
	replies  *json.Encoder
}

func main() {
	replies, err := takeStdout()
	if err != nil {
		die("stdout cannot be had: %v", err)
	}
	encoder := json.NewEncoder(replies)
	encoder.SetEscapeHTML(false)
	talk := &talk{bufio.NewReader(os.Stdin), encoder}
	reads := "mmap,mmap:random,pread"
	talk.say(hello{
		Type: "hello", Protocol: protocolVersion, Worker: "go",
		Version:    workerVersion + " " + runtime.Version(),
		RandomRead: reads, SequentialRead: reads,
		Scan:   "mmap,pread,bufio,bufio:buffer=64KiB",
		Append: "mmap,mmap:buffer=64KiB,bufio,bufio:buffer=64KiB",
		Fill:   "mmap,mmap:buffer=64KiB",
	})
	for {
		request := talk.next()
		if request == nil {
			return
		}
		if request.Type != "open" {
			die("not of the protocol: %q where a job is to be opened", request.Type)
		}
		err := serve(talk, &request.job)
		if err == nil {
			continue
		}
		var failed *failure
		if !errors.As(err, &failed) {
			die("%v", err)
		}
		talk.say(failed)
		return
	}
}

// takeStdout keeps the conversation's descriptor for itself and points descriptor 1 to stderr, so that nothing else in the
// process can say anything to pagewise.
func takeStdout() (*os.File, error) {
	own, err := syscall.Dup(1)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(own)
	if err := syscall.Dup3(2, 1, 0); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(own), "conversation"), nil
}

// die ends the worker with a sentence on stderr, whose end pagewise shows.
func die(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "go worker: "+format+"\n", values...)
	os.Exit(1)
}

// next is the next request; nil at the end of stdin.
func (t *talk) next() *request {
	line, err := t.requests.ReadBytes('\n')
	if err == io.EOF && len(line) == 0 {
		return nil
	}
	if err != nil {
		die("stdin ended within a line: %v", err)
	}
	request := new(request)
	if err := json.Unmarshal(line, request); err != nil {
		die("not of the protocol: %v", err)
	}
	return request
}

// say sends a line with one write(2).
func (t *talk) say(reply any) {
	if err := t.replies.Encode(reply); err != nil {
		die("nobody listens: %v", err)
	}
}

// serve does one job, from `open` to `closed`.
func serve(talk *talk, job *job) error {
	started := now()
	task, err := openTask(job)
	if err != nil {
		return err
	}
	crew := startCrew(job, task)
	talk.say(opened{"opened", now() - started})
	started = now()
	if job.WarmPageTables == 1 {
		if err := crew.orderAll(func(member *member) error { return member.work.warm() }); err != nil {
			return err
		}
	}
	var heart *heart
	if job.HeartbeatNs > 0 {
		heart = startHeart(job.HeartbeatNs)
	}
	talk.say(ready{"ready", now() - started})
	for {
		request := talk.next()
		if request == nil {
			os.Exit(0)
		}
		switch request.Type {
		case "idle":
			heart.begin()
			time.Sleep(time.Duration(request.IdleNs))
			talk.say(idled{"idled", heart.end()})
		case "go":
			heart.begin()
			sample, err := crew.sample(request)
			if err != nil {
				return err
			}
			sample.beats = heart.end()
			talk.say(sample)
		case "verify":
			if err := crew.handOver(request.Offsets); err != nil {
				return err
			}
			talk.say(verified{"verified", uint64(len(request.Offsets))})
		case "close":
			started := now()
			syncNs, err := crew.close()
			if err != nil {
				return err
			}
			heart.stop()
			talk.say(closed{"closed", now() - started, syncNs})
			return nil
		default:
			die("not of the protocol: %q within a job", request.Type)
		}
	}
}

// ---------------------------------------------------------------------------------------------------------------------
// Failures
// ---------------------------------------------------------------------------------------------------------------------

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

// refusedCall is a call that some kernels, filesystems or policies do not offer; other errors remain failures.
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

// readFailure says why a read of `expected` bytes brought only `received`. At the end of the file errno is 0.
func readFailure(call string, err error, path string, offset uint64, expected, received int) *failure {
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return failedCall(call, err, path, offset)
	}
	failed := refusal(call, path, 0,
		"%s at offset %d of %s returned %d of %d bytes", call, offset, path, received, expected)
	failed.Offset = offset
	return failed
}

// guarded does work on files that may be mapped. A fault that the kernel cannot serve becomes a failure; any other panic
// ends the worker with its stack.
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

// ---------------------------------------------------------------------------------------------------------------------
// Files, mappings, memory
// ---------------------------------------------------------------------------------------------------------------------

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
		return failedCall("mmap", err, f.path, 0)
	}
	f.mapping = mapping
	return nil
}

func (f *dataFile) adviseRandom() error {
	if err := syscall.Madvise(f.mapping, syscall.MADV_RANDOM); err != nil {
		return refusedCall("madvise(MADV_RANDOM)", err, f.path)
	}
	return nil
}

// sink keeps what page tables are warmed with from being optimised away.
var sink atomic.Uint64

// warm reads one byte of each page of the mapping, if there is one.
func (f *dataFile) warm(pageBytes int) {
	total := uint64(0)
	for at := 0; at < len(f.mapping); at += pageBytes {
		total += uint64(f.mapping[at])
	}
	sink.Add(total)
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

// msync puts a range of the mapping on the device.
func (f *dataFile) msync(from, to uint64) error {
	from -= from % uint64(os.Getpagesize())
	part := f.mapping[from:to]
	_, _, errno := syscall.Syscall(
		syscall.SYS_MSYNC, uintptr(unsafe.Pointer(&part[0])), uintptr(len(part)), syscall.MS_SYNC)
	if errno != 0 {
		return failedCall("msync", errno, f.path, from)
	}
	return nil
}

func (f *dataFile) fdatasync() error {
	if err := syscall.Fdatasync(int(f.file.Fd())); err != nil {
		return failedCall("fdatasync", err, f.path, 0)
	}
	return nil
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

// ---------------------------------------------------------------------------------------------------------------------
// Consumption: what is done with the bytes of a read, and the checksum that comes of it
// ---------------------------------------------------------------------------------------------------------------------

// consumer is a way to consume. Loops are compiled for each: Go does so for types of different shape, which is what the blank
// fields of sum and lines are for.
type consumer interface {
	touch | touchLast | sum | lines
	of(bytes []byte) uint64
}

// touch takes the word at each multiple of a page.
type touch struct{ pageBytes int }

// touchLast takes the last word too.
type touchLast struct{ touch touch }

// sum takes all words.
type sum struct{ _ uint8 }

// lines counts newline bytes.
type lines struct{ _ uint16 }

var newline = []byte{'\n'}

// tail is the word that begins with these bytes, fewer than 8, and goes on with zeros.
func tail(bytes []byte) uint64 {
	word := uint64(0)
	for index, value := range bytes {
		word |= uint64(value) << (8 * index)
	}
	return word
}

func (c touch) of(bytes []byte) uint64 {
	total, at := uint64(0), 0
	for ; at+8 <= len(bytes); at += c.pageBytes {
		total += binary.LittleEndian.Uint64(bytes[at:])
	}
	if at < len(bytes) {
		total += tail(bytes[at:])
	}
	return total
}

func (c touchLast) of(bytes []byte) uint64 {
	total := c.touch.of(bytes)
	if len(bytes) < 8 {
		return total + tail(bytes)
	}
	return total + binary.LittleEndian.Uint64(bytes[len(bytes)-8:])
}

func (sum) of(bytes []byte) uint64 {
	var a, b, c, d uint64
	for len(bytes) >= 32 {
		a += binary.LittleEndian.Uint64(bytes)
		b += binary.LittleEndian.Uint64(bytes[8:])
		c += binary.LittleEndian.Uint64(bytes[16:])
		d += binary.LittleEndian.Uint64(bytes[24:])
		bytes = bytes[32:]
	}
	for len(bytes) >= 8 {
		a += binary.LittleEndian.Uint64(bytes)
		bytes = bytes[8:]
	}
	return a + b + c + d + tail(bytes)
}

func (lines) of(some []byte) uint64 { return uint64(bytes.Count(some, newline)) }

// ---------------------------------------------------------------------------------------------------------------------
// Tasks: a job, understood and opened
// ---------------------------------------------------------------------------------------------------------------------

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

// ---------------------------------------------------------------------------------------------------------------------
// Reads by the offset table
// ---------------------------------------------------------------------------------------------------------------------

// reader is a way to read, bound to a file and one thread's buffer.
type reader interface {
	// read does the reads at `entries`, little-endian offsets and whole operations, and consumes their bytes. The checksum of
	// the first read counts `weight` times, that of each further one 2 times more.
	read(entries []byte, weight uint64) (checksum uint64, err error)
	fetch(offset uint64, into []byte) error
}

// tableReads are a reader and its thread's part of the offset table.
type tableReads struct {
	reader     reader
	file       *dataFile
	part       []byte
	firstRead  uint64 // place of the part's first read in the whole table
	opEntries  uint64 // bytes of the table for one operation
	opBytes    uint64
	operations uint64 // in the part
	pageBytes  int
	done       uint64
}

func (t *task) openReads(job *job) error {
	if job.Method != "mmap" && job.Method != "mmap:random" && job.Method != "pread" {
		return unknownMethod(job, "mmap, mmap:random, pread")
	}
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
	var err error
	if t.table, err = openFile(job.TablePath, os.O_RDONLY); err != nil {
		return err
	}
	if err := t.table.mapBytes(job.TableReads*8, syscall.PROT_READ); err != nil {
		return err
	}
	opEntries := job.ReadsPerOp * 8
	for thread := uint64(0); thread < job.Threads; thread++ {
		if thread == 0 || job.Descriptor == "per-thread" {
			if err := t.openRead(job); err != nil {
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
			pageBytes: int(job.PageBytes),
		})
	}
	return nil
}

// openRead opens the file for reading, and maps and advises it where the method says so.
func (t *task) openRead(job *job) error {
	file, err := t.open(job.Path, os.O_RDONLY)
	if err != nil || !strings.HasPrefix(job.Method, "mmap") {
		return err
	}
	if err := file.mapBytes(job.SpanBytes, syscall.PROT_READ); err != nil {
		return err
	}
	if job.Method == "mmap:random" {
		return file.adviseRandom()
	}
	return nil
}

func newReader(job *job, file *dataFile) (reader, error) {
	page := int(job.PageBytes)
	switch {
	case job.Consume == "touch" && job.TouchLast == 1:
		return readerFor(job, file, touchLast{touch{page}}), nil
	case job.Consume == "touch":
		return readerFor(job, file, touch{page}), nil
	case job.Consume == "sum":
		return readerFor(job, file, sum{}), nil
	case job.Consume == "lines":
		return readerFor(job, file, lines{}), nil
	}
	return nil, refusal("open", job.Path, 1, "the go worker cannot consume by %q", job.Consume)
}

func readerFor[C consumer](job *job, file *dataFile, consume C) reader {
	target := target[C]{file: file, buffer: memory(int(job.ReadBytes)), consume: consume}
	chain := chain{
		opEntries: int(job.ReadsPerOp) * 8, spanBytes: job.SpanBytes, readBytes: job.ReadBytes, path: job.Path,
	}
	mapped, dependent := file.mapping != nil, job.Dependent == 1
	switch {
	case mapped && dependent:
		return &mappedChain[C]{mappedReads[C]{target}, chain}
	case mapped:
		return &mappedReads[C]{target}
	case dependent:
		return &calledChain[C]{calledReads[C]{target}, chain}
	}
	return &calledReads[C]{target}
}

// target is what a reader needs.
type target[C consumer] struct {
	file    *dataFile
	buffer  []byte
	consume C
}

type mappedReads[C consumer] struct{ target[C] }

// Timed region: for each entry: copy(buffer, mapping[offset:]); total += weight * consume(buffer); weight += 2.
func (r *mappedReads[C]) read(entries []byte, weight uint64) (uint64, error) {
	total, mapping, buffer, consume := uint64(0), r.file.mapping, r.buffer, r.consume
	for ; len(entries) >= 8; entries = entries[8:] {
		offset := binary.LittleEndian.Uint64(entries)
		copy(buffer, mapping[offset:offset+uint64(len(buffer))])
		total += weight * consume.of(buffer)
		weight += 2
	}
	return total, nil
}

func (r *mappedReads[C]) fetch(offset uint64, into []byte) error {
	copy(into, r.file.mapping[offset:offset+uint64(len(into))])
	return nil
}

type calledReads[C consumer] struct{ target[C] }

// Timed region: for each entry: ReadAt(buffer, offset); total += weight * consume(buffer); weight += 2.
func (r *calledReads[C]) read(entries []byte, weight uint64) (uint64, error) {
	total, file, buffer, consume := uint64(0), r.file.file, r.buffer, r.consume
	for ; len(entries) >= 8; entries = entries[8:] {
		offset := binary.LittleEndian.Uint64(entries)
		if received, err := file.ReadAt(buffer, int64(offset)); received != len(buffer) {
			return 0, readFailure("pread", err, r.file.path, offset, len(buffer), received)
		}
		total += weight * consume.of(buffer)
		weight += 2
	}
	return total, nil
}

func (r *calledReads[C]) fetch(offset uint64, into []byte) error {
	if received, err := r.file.file.ReadAt(into, int64(offset)); received != len(into) {
		return readFailure("pread", err, r.file.path, offset, len(into), received)
	}
	return nil
}

// chain is what dependent reads need beside: each read but the first of an operation is at its entry XOR the first word of
// the read before it. Loops of their own, so that independent reads pay nothing for it.
type chain struct {
	opEntries int
	spanBytes uint64
	readBytes uint64
	path      string
}

// astray is the failure of a read that was led to where none fits into the span.
func (c *chain) astray(offset uint64) error {
	failed := refusal("dependent read", c.path, 0,
		"a dependent read of %s led to offset %d, beyond the %d bytes that are read: its data are not those that the "+
			"offset table was made of", c.path, offset, c.spanBytes)
	failed.Offset = offset
	return failed
}

type mappedChain[C consumer] struct {
	mappedReads[C]
	chain
}

// Timed region: for each operation: link = 0; for each entry: offset = entry ^ link; offset <= last; copy(buffer,
// mapping[offset:]); link = buffer's first word; total += weight * consume(buffer); weight += 2.
func (r *mappedChain[C]) read(entries []byte, weight uint64) (uint64, error) {
	total, mapping, buffer, consume, last := uint64(0), r.file.mapping, r.buffer, r.consume, r.spanBytes-r.readBytes
	for len(entries) > 0 {
		operation, link := entries[:r.opEntries], uint64(0)
		entries = entries[r.opEntries:]
		for ; len(operation) >= 8; operation = operation[8:] {
			offset := binary.LittleEndian.Uint64(operation) ^ link
			if offset > last {
				return 0, r.astray(offset)
			}
			copy(buffer, mapping[offset:offset+uint64(len(buffer))])
			link = binary.LittleEndian.Uint64(buffer)
			total += weight * consume.of(buffer)
			weight += 2
		}
	}
	return total, nil
}

type calledChain[C consumer] struct {
	calledReads[C]
	chain
}

// Timed region: as mappedChain, with ReadAt(buffer, offset).
func (r *calledChain[C]) read(entries []byte, weight uint64) (uint64, error) {
	total, file, buffer, consume, last := uint64(0), r.file.file, r.buffer, r.consume, r.spanBytes-r.readBytes
	for len(entries) > 0 {
		operation, link := entries[:r.opEntries], uint64(0)
		entries = entries[r.opEntries:]
		for ; len(operation) >= 8; operation = operation[8:] {
			offset := binary.LittleEndian.Uint64(operation) ^ link
			if offset > last {
				return 0, r.astray(offset)
			}
			if received, err := file.ReadAt(buffer, int64(offset)); received != len(buffer) {
				return 0, readFailure("pread", err, r.file.path, offset, len(buffer), received)
			}
			link = binary.LittleEndian.Uint64(buffer)
			total += weight * consume.of(buffer)
			weight += 2
		}
	}
	return total, nil
}

// entries are those of up to `wanted` operations from `position` on, which counts laps too; never across the end. The weight
// is that of the first read: 2 * its place in the table + 1.
func (w *tableReads) entries(position, wanted uint64) (entries []byte, weight uint64) {
	start := position % w.operations
	entries = w.part[start*w.opEntries : (start+min(wanted, w.operations-start))*w.opEntries]
	return entries, 2*(w.firstRead+start*w.opEntries/8) + 1
}

func (w *tableReads) perform(position, wanted uint64) (uint64, uint64, error) {
	entries, weight := w.entries(position, wanted)
	checksum, err := w.reader.read(entries, weight)
	done := uint64(len(entries)) / w.opEntries
	w.done += done
	return done, checksum, err
}

func (w *tableReads) timed(position, wanted uint64, latencies *histogram) (uint64, uint64, error) {
	entries, weight := w.entries(position, wanted)
	done, total := uint64(len(entries))/w.opEntries, uint64(0)
	before := now()
	for ; len(entries) > 0; entries = entries[w.opEntries:] {
		checksum, err := w.reader.read(entries[:w.opEntries], weight)
		if err != nil {
			return 0, 0, err
		}
		total += checksum
		weight += w.opEntries / 4
		after := now()
		latencies.record(after - before)
		before = after
	}
	w.done += done
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

// ---------------------------------------------------------------------------------------------------------------------
// Scans: the whole span, front to back
// ---------------------------------------------------------------------------------------------------------------------

// scanner is a way to scan. A pass consumes the span by pieces of which all but the last are whole pages where words of
// pages are touched, and whole words where words are added, so that the checksum does not depend on their size.
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

func (t *task) openScan(job *job) error {
	word, size, ok := bufferOf(job.Method)
	known := word == "bufio" || (size == 0 && (word == "mmap" || word == "pread"))
	if !ok || !known {
		return unknownMethod(job, "mmap, pread, bufio, bufio:buffer=SIZE")
	}
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
		scanner = scannerFor(word, job, file, int(size), touch{int(job.PageBytes)})
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
		return &mappedScan[C]{target[C]{file, memory(size), consume}}
	case "pread":
		return &calledScan[C]{target[C]{file, memory(size), consume}, job.SpanBytes}
	}
	reader := bufio.NewReaderSize(file.file, size)
	// The buffer's pages are made before the clock starts: a read fills them, and the pass begins anew.
	_, _ = reader.Peek(size)
	return &bufioScan[C]{file, reader, size, job.SpanBytes, consume}
}

type mappedScan[C consumer] struct{ target[C] }

// Timed region: for each piece: copy(buffer, mapping[offset:]); consume(buffer).
func (s *mappedScan[C]) pass() (uint64, error) {
	total, buffer, consume := uint64(0), s.buffer, s.consume
	for rest := s.file.mapping; len(rest) > 0; {
		copied := copy(buffer, rest)
		total += consume.of(buffer[:copied])
		rest = rest[copied:]
	}
	return total, nil
}

type calledScan[C consumer] struct {
	target[C]
	spanBytes uint64
}

// Timed region: for each piece: ReadAt(buffer, offset); consume(buffer).
func (s *calledScan[C]) pass() (uint64, error) {
	total, file, buffer, consume := uint64(0), s.file.file, s.buffer, s.consume
	for offset := uint64(0); offset < s.spanBytes; offset += uint64(len(buffer)) {
		piece := buffer[:min(uint64(len(buffer)), s.spanBytes-offset)]
		if received, err := file.ReadAt(piece, int64(offset)); received != len(piece) {
			return 0, readFailure("pread", err, s.file.path, offset, len(piece), received)
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

func (w *passes) finish() error { return nil }
func (w *passes) sync() error   { return nil }
func (w *passes) bytes() uint64 { return w.done * w.spanBytes }

func (w *passes) warm() error {
	w.file.warm(w.pageBytes)
	return nil
}

func (w *passes) fetch(offset uint64, into []byte) error {
	return refusal("verify", w.file.path, 0, "there is no read of %d bytes at offset %d in a scan", len(into), offset)
}

// ---------------------------------------------------------------------------------------------------------------------
// Records: append and fill
// ---------------------------------------------------------------------------------------------------------------------

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

func (t *task) openRecords(job *job) error {
	word, size, ok := bufferOf(job.Method)
	has := "mmap, mmap:buffer=SIZE"
	if job.Workload == "append" {
		has += ", bufio, bufio:buffer=SIZE"
	}
	if !ok || (word != "mmap" && (word != "bufio" || job.Workload != "append")) {
		return unknownMethod(job, has)
	}
	if err := oneThread(job); err != nil {
		return err
	}
	if word == "bufio" && size == 0 {
		size = defaultBuffer
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

// ---------------------------------------------------------------------------------------------------------------------
// Threads: goroutines that wait for orders, alive from `open` to `close`
// ---------------------------------------------------------------------------------------------------------------------

// member is one of them.
type member struct {
	work      work
	latencies *histogram
	orders    chan func(*member) error
	answers   chan error
	part      part
}

// part is what one thread did in a sample. Clocks are pairs of begin and end.
type part struct {
	operations        uint64
	begun, ended      uint64
	latencyOperations uint64
	latencyBegun      uint64
	latencyEnded      uint64
	bytes             uint64
	checksum          uint64
	stalls            stalls
}

type crew struct {
	members    []*member
	ended      sync.WaitGroup
	rendezvous barrier
	// Whether any thread had batches of several operations.
	batched atomic.Bool
	job     *job
	task    *task
}

func startCrew(job *job, task *task) *crew {
	crew := &crew{job: job, task: task}
	crew.rendezvous.start(len(task.works))
	for _, work := range task.works {
		member := &member{
			work: work, latencies: newHistogram(),
			orders: make(chan func(*member) error), answers: make(chan error, 1),
		}
		crew.members = append(crew.members, member)
		crew.ended.Add(1)
		go func() {
			defer crew.ended.Done()
			debug.SetPanicOnFault(true)
			for order := range member.orders {
				member.answers <- guarded(task.files, func() error { return order(member) })
			}
		}()
	}
	return crew
}

// orderAll has all threads do something, and returns the first failure.
func (c *crew) orderAll(order func(*member) error) error {
	for _, member := range c.members {
		member.orders <- order
	}
	var first error
	for _, member := range c.members {
		if err := <-member.answers; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// sample has every thread do its part, and adds up what they did.
func (c *crew) sample(request *request) (*sample, error) {
	c.batched.Store(false)
	order := func(member *member) error { return c.readFor(member, request) }
	if c.task.fixed {
		order = func(member *member) error { return c.doFixed(member, request) }
	}
	if err := c.orderAll(order); err != nil {
		return nil, err
	}
	total, checksum := &sample{Type: "sample"}, uint64(0)
	begun, ended := uint64(math.MaxUint64), uint64(0)
	latencyBegun, latencyEnded := uint64(math.MaxUint64), uint64(0)
	latencies := newHistogram()
	for _, member := range c.members {
		part := &member.part
		begun, ended = min(begun, part.begun), max(ended, part.ended)
		if part.latencyOperations > 0 {
			latencyBegun = min(latencyBegun, part.latencyBegun)
			latencyEnded = max(latencyEnded, part.latencyEnded)
		}
		total.Operations += part.operations
		total.LatencyOperations += part.latencyOperations
		total.ThreadOperations = append(total.ThreadOperations, part.operations+part.latencyOperations)
		total.Bytes += part.bytes
		total.Stalls += part.stalls.count
		total.StallLongestNs = max(total.StallLongestNs, part.stalls.longestNs)
		checksum += part.checksum
		latencies.add(member.latencies)
	}
	total.ElapsedNs = ended - begun
	if latencyEnded > latencyBegun {
		total.LatencyElapsedNs = latencyEnded - latencyBegun
	}
	total.Checksum = fmt.Sprintf("%016x", checksum)
	total.LatencyNs, total.LatencyCounts = latencies.recorded()
	return total, nil
}

// handOver has the first thread do single reads and puts their bytes into the hand-over memory.
func (c *crew) handOver(offsets []uint64) error {
	job := c.job
	handover, err := openFile(job.HandoverPath, os.O_RDWR)
	if err != nil {
		return err
	}
	buffer := make([]byte, job.ReadBytes)
	first := c.members[0]
	first.orders <- func(member *member) error {
		for index, offset := range offsets {
			if err := member.work.fetch(offset, buffer); err != nil {
				return err
			}
			place := uint64(index) * job.ReadBytes
			if _, err := handover.file.WriteAt(buffer, int64(place)); err != nil {
				return failedCall("pwrite", err, job.HandoverPath, place)
			}
		}
		return nil
	}
	err = <-first.answers
	if closing := handover.close(); err == nil {
		err = closing
	}
	return err
}

// close syncs if the job says so, ends the threads, unmaps and closes. It returns what the sync took.
func (c *crew) close() (uint64, error) {
	syncNs := uint64(0)
	if c.task.fixed && c.job.Sync == "end" {
		started := now()
		if err := c.orderAll(func(member *member) error { return member.work.sync() }); err != nil {
			return 0, err
		}
		syncNs = now() - started
	}
	for _, member := range c.members {
		close(member.orders)
	}
	c.ended.Wait()
	return syncNs, c.task.release()
}

// barrier is where threads wait for each other, again and again.
type barrier struct {
	mutex   sync.Mutex
	arrived *sync.Cond
	threads int
	waiting int
	round   uint64
}

func (b *barrier) start(threads int) {
	b.threads = threads
	b.arrived = sync.NewCond(&b.mutex)
}

func (b *barrier) wait() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	round := b.round
	b.waiting++
	if b.waiting == b.threads {
		b.waiting = 0
		b.round++
		b.arrived.Broadcast()
		return
	}
	for round == b.round {
		b.arrived.Wait()
	}
}

// ---------------------------------------------------------------------------------------------------------------------
// Samples that last a time: reads by the table
// ---------------------------------------------------------------------------------------------------------------------

const (
	// A batch shorter than this is doubled; one of several operations longer than that is halved.
	batchMinNs = 50_000
	batchMaxNs = 200_000
	// How often the device budget is looked at: it costs a system call.
	budgetCheckNs = 1_000_000
	// Operations of the latency phase between two looks at the bounds, at most.
	timedBatch = 256
)

// budget ends a phase when storage has read enough for this process.
type budget struct {
	counters *os.File // /proc/self/io; nil: no bound, or the kernel does not count
	text     [512]byte
	end      uint64
	nextNs   uint64
}

var readBytesLine = []byte("\nread_bytes: ")

func newBudget(bytes uint64) *budget {
	b := &budget{end: math.MaxUint64}
	if bytes == 0 {
		return b
	}
	counters, err := os.Open("/proc/self/io")
	if err != nil {
		return b
	}
	b.counters = counters
	if begin, ok := b.readBytes(); ok {
		b.end = begin + bytes
	}
	return b
}

// readBytes is what storage has read for the process.
func (b *budget) readBytes() (uint64, bool) {
	length, _ := b.counters.ReadAt(b.text[:], 0)
	at := bytes.Index(b.text[:length], readBytesLine)
	if at < 0 {
		return 0, false
	}
	value := uint64(0)
	for _, digit := range b.text[at+len(readBytesLine) : length] {
		if digit < '0' || digit > '9' {
			break
		}
		value = value*10 + uint64(digit-'0')
	}
	return value, true
}

func (b *budget) isSpent(nowNs uint64) bool {
	if b.counters == nil || nowNs < b.nextNs {
		return false
	}
	b.nextNs = nowNs + budgetCheckNs
	read, ok := b.readBytes()
	return ok && read >= b.end
}

func (b *budget) close() {
	if b.counters != nil {
		_ = b.counters.Close()
	}
}

// readFor is one thread's part of a sample of reads. All threads are in the same phase.
func (c *crew) readFor(member *member, request *request) error {
	member.part = part{}
	member.latencies.reset()
	received := member.work.bytes()
	budget, rest := newBudget(c.job.MaxDeviceBytes/4*3), newBudget(0)
	defer func() { budget.close(); rest.close() }()
	c.rendezvous.wait()
	// Guarded, so that a thread whose access faults still comes to where the others wait for it.
	err := guarded(c.task.files, func() error {
		batched, err := throughput(member, request, budget, c.job.MaxThreadOperations)
		if batched {
			c.batched.Store(true)
		}
		return err
	})
	c.rendezvous.wait()
	if err != nil {
		return err
	}
	if c.batched.Load() && request.LatencyNs > 0 {
		member.latencies.reset()
		rest = newBudget(c.job.MaxDeviceBytes / 4)
		if err := latency(member, request, rest, c.job.MaxThreadOperations); err != nil {
			return err
		}
	}
	member.part.bytes = member.work.bytes() - received
	return nil
}

// throughput reads the clock once a batch. It returns whether any batch had several operations: then their times are no
// latencies.
func throughput(member *member, request *request, budget *budget, maxOperations uint64) (bool, error) {
	if maxOperations == 0 {
		maxOperations = math.MaxUint64
	} else {
		maxOperations = max(maxOperations/4*3+maxOperations%4*3/4, 1)
	}
	work, latencies, part, position := member.work, member.latencies, &member.part, request.FirstOperation
	batch, batched, operations, checksum := uint64(1), false, uint64(0), uint64(0)
	part.begun = now()
	deadline := addSaturating(part.begun, request.SampleNs)
	for before := part.begun; ; {
		wanted := min(batch, maxOperations-operations)
		done, sum, err := work.perform(position+operations, wanted)
		if err != nil {
			return batched, err
		}
		checksum += sum
		after := now()
		took := after - before
		part.stalls.note(done, took)
		operations += done
		if batch == 1 {
			latencies.record(took)
		}
		if after >= deadline || operations == maxOperations || budget.isSpent(after) {
			break
		}
		if done == batch && took < batchMinNs {
			batch, batched = batch*2, true
		} else if batch > 1 && took > batchMaxNs {
			batch /= 2
		}
		before = after
	}
	part.ended = now()
	part.operations, part.checksum = operations, checksum
	return batched, nil
}

// latency goes on where throughput ended, with a clock around each operation.
func latency(member *member, request *request, budget *budget, maxOperations uint64) error {
	work, part := member.work, &member.part
	position := request.FirstOperation + part.operations
	left := uint64(math.MaxUint64)
	if maxOperations > 0 {
		left = maxOperations - min(maxOperations, part.operations)
	}
	batch := uint64(8)
	part.latencyBegun = now()
	after := part.latencyBegun
	deadline := addSaturating(after, request.LatencyNs)
	for after < deadline && part.latencyOperations < left && !budget.isSpent(after) {
		wanted := min(batch, left-part.latencyOperations)
		done, checksum, err := work.timed(position+part.latencyOperations, wanted, member.latencies)
		if err != nil {
			return err
		}
		part.checksum += checksum
		part.latencyOperations += done
		before := after
		after = now()
		// Short batches keep to the deadline.
		if after-before < request.LatencyNs/16 {
			batch = min(batch*2, timedBatch)
		}
	}
	part.latencyEnded = after
	return nil
}

// ---------------------------------------------------------------------------------------------------------------------
// Samples that are an amount: scans and records
// ---------------------------------------------------------------------------------------------------------------------

const (
	// A mean gap shorter than this is doubled, one longer than that is halved.
	gapMinNs = 40_000
	gapMaxNs = 160_000
	// After so many measures the mean gap has been found.
	steadyMeasures = 3
)

// course is how far an amount of work has come.
type course struct {
	work      work
	position  uint64
	end       uint64
	checksum  uint64
	latencies *histogram
	// Latencies taken before the mean gap is found; those while it grows are thrown away.
	early       [2*steadyMeasures + 2]uint64
	earlyTaken  int
	earlyClosed bool
	stalls      *stalls
}

// doFixed does all operations of the job, or as many as are done within `sample_ns`: batches of gap operations, and after
// each one operation timed by itself. What is collected in a buffer, and a sync that is due, belong to the region.
func (c *crew) doFixed(member *member, request *request) error {
	member.part = part{}
	member.latencies.reset()
	work, part := member.work, &member.part
	written := work.bytes()
	first := request.FirstOperation
	end := c.job.Records
	if c.job.Workload == "scan" {
		end = first + 1
	}
	course := course{work: work, position: first, end: end, latencies: member.latencies, stalls: &part.stalls}
	gaps := gaps{random: c.job.GapSeed, mean: 1}
	part.begun = now()
	deadline := addSaturating(part.begun, request.SampleNs)
	for clock := part.begun; course.position < end && clock < deadline; {
		gap, begun := gaps.draw(), clock
		var err error
		if clock, err = course.stretch(gap, clock); err != nil {
			return err
		}
		if course.position < end && gaps.adapt(gap, clock-begun) {
			course.earlyTaken = 0
		}
		if gaps.steady == steadyMeasures && course.earlyTaken > 0 {
			course.recordEarly()
		}
		if course.position < end {
			if clock, err = course.stretch(1, clock); err != nil {
				return err
			}
		}
	}
	if err := work.finish(); err != nil {
		return err
	}
	part.ended = now()
	course.recordEarly()
	part.operations, part.checksum = course.position-first, course.checksum
	part.bytes = work.bytes() - written
	return nil
}

// stretch does `wanted` operations, fewer at the end, and returns the clock behind them. A single operation has a clock of
// its own before it too, so that its latency is nothing but its own.
func (c *course) stretch(wanted, before uint64) (uint64, error) {
	begun := before
	if wanted == 1 {
		begun = now()
	}
	done, checksum, err := c.work.perform(c.position, min(wanted, c.end-c.position))
	after := now()
	if err != nil {
		return after, err
	}
	c.position += done
	c.checksum += checksum
	if wanted == 1 {
		if c.earlyClosed || c.earlyTaken == len(c.early) {
			c.latencies.record(after - begun)
		} else {
			c.early[c.earlyTaken] = after - begun
			c.earlyTaken++
		}
	}
	c.stalls.note(done, after-before)
	return after, nil
}

func (c *course) recordEarly() {
	for _, took := range c.early[:c.earlyTaken] {
		c.latencies.record(took)
	}
	c.earlyTaken, c.earlyClosed = 0, true
}

// gaps are the lengths of batches between operations that are timed by themselves.
type gaps struct {
	random uint64 // state of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)
	mean   uint64
	// Measures in a row that left the mean as it was.
	steady int
}

// draw is a number from 1 to twice the mean, exclusive.
func (g *gaps) draw() uint64 {
	g.random += 0x9e3779b97f4a7c15
	value := (g.random ^ g.random>>30) * 0xbf58476d1ce4e5b9
	value = (value ^ value>>27) * 0x94d049bb133111eb
	below, _ := bits.Mul64(value^value>>31, 2*g.mean-1)
	return 1 + below
}

// adapt makes the mean gap last 40 to 160 us. It returns true while the mean grows from 1: what was timed until then was
// timed more often than what follows. Gaps shorter than the mean are no measure, since the clock is a part of what they take.
func (g *gaps) adapt(gap, took uint64) bool {
	if gap < g.mean {
		return false
	}
	meanNs := pace(took, gap, g.mean)
	if meanNs < gapMinNs {
		g.mean *= 2
		begins := g.steady < steadyMeasures
		if begins {
			g.steady = 0
		}
		return begins
	}
	if g.mean > 1 && meanNs > gapMaxNs {
		g.mean /= 2
	}
	if g.steady < steadyMeasures {
		g.steady++
	}
	return false
}

// pace is what `wanted` operations take where `operations` took `took`.
func pace(took, operations, wanted uint64) uint64 {
	return uint64(float64(took) * float64(wanted) / float64(max(operations, 1)))
}

// What a batch must take beyond its operations' average to be called stalled.
const stallNs = 1_000_000

// stalls counts batches that took over 1 ms more, and over twice as much, as their operations take on average. A stalled one
// counts in the average as what it should have taken, or one long stall would hide those after it.
type stalls struct {
	count     uint64
	longestNs uint64
	// What operations take without stalls.
	operations, tookNs uint64
	// The very first batch, until there is another to compare it with; alone it is no stall.
	firstOperations, firstNs uint64
}

func (s *stalls) note(operations, took uint64) {
	if s.operations > 0 && took < stallNs {
		s.operations += operations
		s.tookNs += took
		return
	}
	s.judge(operations, took)
}

func (s *stalls) judge(operations, took uint64) {
	if s.operations == 0 {
		if s.firstOperations == 0 {
			s.firstOperations, s.firstNs = operations, took
			return
		}
		// Of the first two the one with the faster operations is the measure of the other.
		s.operations, s.tookNs = s.firstOperations, s.firstNs
		if pace(took, operations, 1) < pace(s.firstNs, s.firstOperations, 1) {
			s.operations, s.tookNs, operations, took = operations, took, s.operations, s.tookNs
		}
	}
	due := pace(s.tookNs, s.operations, operations)
	if took > due+max(due, stallNs) {
		s.count++
		s.longestNs = max(s.longestNs, took-pace(s.tookNs, s.operations, operations-1))
		took = due
	}
	s.operations += operations
	s.tookNs += took
}

// ---------------------------------------------------------------------------------------------------------------------
// Histograms
// ---------------------------------------------------------------------------------------------------------------------

// histogram counts nanoseconds. Below 256 each value has a bucket of its own; from there on 128 buckets share a power of
// two, so that none is wider than 1/128 of its value. Values beyond the last bucket, 137 s, count there.
type histogram [histogramBuckets]uint64

const (
	histogramBits    = 37
	histogramBuckets = 256 + (histogramBits-8)*128
)

func newHistogram() *histogram {
	h := new(histogram)
	h.reset()
	return h
}

// reset empties it, and has its pages there.
func (h *histogram) reset() {
	for index := range h {
		h[index] = 0
	}
}

func (h *histogram) record(value uint64) {
	if value >= 1<<histogramBits {
		value = 1<<histogramBits - 1
	}
	shift := 0
	if value >= 256 {
		shift = bits.Len64(value) - 8
	}
	h[uint64(shift)*128+value>>shift]++
}

func (h *histogram) add(other *histogram) {
	for index, count := range other {
		h[index] += count
	}
}

// recorded are the upper ends of buckets that hold something, and how much.
func (h *histogram) recorded() (ends, counts []uint64) {
	ends, counts = []uint64{}, []uint64{}
	for index, count := range h {
		if count == 0 {
			continue
		}
		shift := 0
		if index >= 256 {
			shift = index/128 - 1
		}
		within := uint64(index - shift*128)
		ends = append(ends, (within+1)<<shift-1)
		counts = append(counts, count)
	}
	return ends, counts
}

// ---------------------------------------------------------------------------------------------------------------------
// Heartbeats
// ---------------------------------------------------------------------------------------------------------------------

// heart is a goroutine that does nothing but sleep, and notes how late it is woken: what a method does to every other
// goroutine of the process. A beat counts with what it was late by within the region.
type heart struct {
	mutex   sync.Mutex
	delays  *histogram
	sinceNs uint64 // begin of the region
	counts  bool
	dueNs   uint64
	stopped atomic.Bool
}

func startHeart(intervalNs uint64) *heart {
	h := &heart{delays: newHistogram(), dueNs: now() + intervalNs}
	go func() {
		for !h.stopped.Load() {
			time.Sleep(time.Duration(intervalNs))
			h.mutex.Lock()
			h.note(now())
			h.dueNs = now() + intervalNs
			h.mutex.Unlock()
		}
	}()
	return h
}

// note counts a beat that is due or late at `at`.
func (h *heart) note(at uint64) {
	if due := max(h.dueNs, h.sinceNs); h.counts && at >= due {
		h.delays.record(max(at-due, 1))
	}
}

// begin: from now on beats count. A job without heartbeats has no heart, and nothing is done.
func (h *heart) begin() {
	if h == nil {
		return
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.delays.reset()
	h.sinceNs, h.counts = now(), true
}

// end: they count no more. One that is still late counts with what it is late by.
func (h *heart) end() beats {
	if h == nil {
		return beats{}
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if at := now(); at > h.dueNs {
		h.note(at)
	}
	h.counts = false
	ends, counts := h.delays.recorded()
	return beats{Kinds: "goroutine", Buckets: []uint64{uint64(len(ends))}, Ns: ends, Counts: counts}
}

// stop has the goroutine end at its next beat.
func (h *heart) stop() {
	if h != nil {
		h.stopped.Store(true)
	}
}

// ---------------------------------------------------------------------------------------------------------------------
// Numbers
// ---------------------------------------------------------------------------------------------------------------------

// addSaturating is a deadline: a time that never comes stays the largest.
func addSaturating(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
