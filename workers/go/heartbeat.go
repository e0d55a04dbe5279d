// Heartbeats.

package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// heartbeat is a goroutine that does nothing but sleep, and notes how late it is woken: what a
// method does to every other goroutine of the process. A beat counts with what it was late by
// within the region.
type heartbeat struct {
	mutex   sync.Mutex
	delays  *histogram
	sinceNs uint64 // begin of the region
	counts  bool
	dueNs   uint64
	stopped atomic.Bool
}

func startHeartbeat(intervalNs uint64) *heartbeat {
	h := &heartbeat{delays: newHistogram(), dueNs: now() + intervalNs}
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
func (h *heartbeat) note(at uint64) {
	if due := max(h.dueNs, h.sinceNs); h.counts && at >= due {
		h.delays.record(max(at-due, 1))
	}
}

// begin: from now on beats count. A job without heartbeats has no heartbeat, and nothing is done.
func (h *heartbeat) begin() {
	if h == nil {
		return
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.delays.reset()
	h.sinceNs, h.counts = now(), true
}

// end: they count no more. One that is still late counts with what it is late by.
func (h *heartbeat) end() beats {
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
func (h *heartbeat) stop() {
	if h != nil {
		h.stopped.Store(true)
	}
}
