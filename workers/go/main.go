// The Go worker of pagewise: reads and writes a file in the ways that Go programs do, as
// ../PROTOCOL.md (version 1) says.
//
// Go 1.21 or newer, the standard library alone: `CGO_ENABLED=0 go build -o worker .`.
//
//	mmap        syscall.Mmap; reads are copied to a buffer of the thread, scans in pieces of
//	            64 KiB. Records are copied into the mapping; with buffer=SIZE collected there first,
//	            whole records only. Advice is of the whole span
//	pread       os.File.ReadAt into a buffer of the thread; scans in pieces of 64 KiB
//	pwrite      os.File.WriteAt, a call for each record; with buffer=SIZE one for each buffer of
//	            whole records
//	write       os.File.Write, the same
//	bufio       bufio.Reader, by Peek and Discard; bufio.Writer over the file
//
// Syncs are syscall.Fdatasync, os.File.Sync (fsync), msync(2), syscall.SyncFileRange, and files
// opened with O_DSYNC.
//
// Which of them there are for which workload stands in offers.go.
//
// Threads are plain goroutines, as in a Go program, and GOMAXPROCS is what the environment says. A
// page fault in a mapping keeps the processor (P) of its goroutine; a read call gives it away. A
// fault that the kernel cannot serve (SIGBUS: the file has become shorter, or there is no room for
// it) is caught and reported as `failed` of the call `mmap`.
//
// A failed call is reported as `failed`. Anything else that goes wrong is a defect: stack trace on
// stderr, status 1. Times are nanoseconds of the monotonic clock, sizes bytes, words little-endian.
// Timed regions allocate nothing.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	protocolVersion = 1
	workerVersion   = "1.0"
	// Bytes of one copy or call of a scan.
	defaultBuffer = 64 << 10
)

// hello is the first line. Where a method takes `buffer=SIZE`, one size stands for all.
type hello struct {
	Type           string `json:"type"`
	Protocol       int    `json:"protocol"`
	Worker         string `json:"worker"`
	Version        string `json:"version"`
	WorkerWarmup   int    `json:"worker_warmup"`
	RandomRead     string `json:"random-read"`
	SequentialRead string `json:"sequential-read"`
	Scan           string `json:"scan"`
	Append         string `json:"append"`
	Fill           string `json:"fill"`
	Update         string `json:"update"`
	SyncCalls      string `json:"sync_calls"`
	CommitThreads  int    `json:"commit_threads"`
}

// job is what `open` carries; see ../PROTOCOL.md.
type job struct {
	Method                string `json:"method"`
	Workload              string `json:"workload"`
	Path                  string `json:"path"`
	FileBytes             uint64 `json:"file_bytes"`
	SpanBytes             uint64 `json:"span_bytes"`
	Threads               uint64 `json:"threads"`
	Descriptor            string `json:"descriptor"`
	TablePath             string `json:"table_path"`
	TableReads            uint64 `json:"table_reads"`
	PieceReads            uint64 `json:"piece_reads"`
	ReadBytes             uint64 `json:"read_bytes"`
	ReadsPerOp            uint64 `json:"reads_per_op"`
	Consume               string `json:"consume"`
	PageBytes             uint64 `json:"page_bytes"`
	TouchLast             uint64 `json:"touch_last"`
	Dependent             uint64 `json:"dependent"`
	WarmPageTables        uint64 `json:"warm_page_tables"`
	MaxThreadOperations   uint64 `json:"max_thread_operations"`
	ThroughputOperations  uint64 `json:"throughput_operations"`
	ThroughputDeviceBytes uint64 `json:"throughput_device_bytes"`
	LatencyDeviceBytes    uint64 `json:"latency_device_bytes"`
	RecordBytes           uint64 `json:"record_bytes"`
	Records               uint64 `json:"records"`
	Sync                  string `json:"sync"`
	SyncCall              string `json:"sync_call"`
	SourcePath            string `json:"source_path"`
	SourcePeriod          uint64 `json:"source_period"`
	GapSeed               uint64 `json:"gap_seed"`
	HandoverPath          string `json:"handover_path"`
	HeartbeatNs           uint64 `json:"heartbeat_ns"`
	policy
}

// policy has the numbers by which a sample is taken; ../PROTOCOL.md has their rules.
type policy struct {
	BatchMinNs    uint64 `json:"batch_min_ns"`
	BatchMaxNs    uint64 `json:"batch_max_ns"`
	GapMinNs      uint64 `json:"gap_min_ns"`
	GapMaxNs      uint64 `json:"gap_max_ns"`
	GapMeasures   uint64 `json:"gap_measures"`
	StallNs       uint64 `json:"stall_ns"`
	DeviceCheckNs uint64 `json:"device_check_ns"`
}

// request is any line that pagewise sends; what a message does not have stays 0.
type request struct {
	Type string `json:"type"`
	job
	FirstOperation uint64   `json:"first_operation"`
	SampleNs       uint64   `json:"sample_ns"`
	LatencyNs      uint64   `json:"latency_ns"`
	TouchAt        uint64   `json:"touch_at"`
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
	SyncNs            []uint64 `json:"sync_duration_ns,omitempty"`
	SyncCounts        []uint64 `json:"sync_duration_counts,omitempty"`
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
	has := func(workload string) string { return strings.Join(methods(workload), ",") }
	talk.say(hello{
		Type: "hello", Protocol: protocolVersion, Worker: "go",
		Version:    workerVersion + " " + runtime.Version(),
		RandomRead: has("random-read"), SequentialRead: has("sequential-read"),
		Scan: has("scan"), Append: has("append"), Fill: has("fill"), Update: has("update"),
		SyncCalls: syncCalls, CommitThreads: commitThreads,
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

// takeStdout keeps the conversation's descriptor for itself and points descriptor 1 to stderr, so
// that nothing else in the process can say anything to pagewise.
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
	threads := startThreads(job, task)
	talk.say(opened{"opened", now() - started})
	started = now()
	if job.WarmPageTables == 1 {
		if err := threads.orderAll(func(member *member) error { return member.work.warm() }); err != nil {
			return err
		}
	}
	var heartbeat *heartbeat
	if job.HeartbeatNs > 0 {
		heartbeat = startHeartbeat(job.HeartbeatNs)
	}
	talk.say(ready{"ready", now() - started})
	for {
		request := talk.next()
		if request == nil {
			os.Exit(0)
		}
		switch request.Type {
		case "idle":
			heartbeat.begin()
			time.Sleep(time.Duration(request.IdleNs))
			talk.say(idled{"idled", heartbeat.end()})
		case "go":
			heartbeat.begin()
			sample, err := threads.sample(request)
			if err != nil {
				return err
			}
			sample.beats = heartbeat.end()
			talk.say(sample)
		case "verify":
			if err := threads.handOver(request.Offsets); err != nil {
				return err
			}
			talk.say(verified{"verified", uint64(len(request.Offsets))})
		case "close":
			started := now()
			syncNs, err := threads.close()
			if err != nil {
				return err
			}
			heartbeat.stop()
			talk.say(closed{"closed", now() - started, syncNs})
			return nil
		default:
			die("not of the protocol: %q within a job", request.Type)
		}
	}
}
