package main

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// vector is an entry of ../vectors.json: what every worker must make of the same seeds and times.
type vector struct {
	Type        string
	Seed        uint64
	OpNs        []uint64 `json:"op_ns"`
	Gaps, Grows []uint64
	policy
	Operations     []uint64
	TookNs         []uint64 `json:"took_ns"`
	Stalls         uint64
	StallLongestNs uint64   `json:"stall_longest_ns"`
	LatencyNs      []uint64 `json:"latency_ns"`
	LatencyCounts  []uint64 `json:"latency_counts"`
}

func TestVectors(t *testing.T) {
	text, err := os.ReadFile("../vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors) == 0 {
		t.Fatal("no vectors: ", err)
	}
	for index, v := range vectors {
		if !v.reproduced() {
			t.Errorf("the worker does not reproduce vector %d, %+v", index, v)
		}
	}
}

func (v *vector) reproduced() bool {
	switch v.Type {
	case "gaps":
		gaps := gaps{random: v.Seed, mean: 1, policy: &v.policy}
		for index, opNs := range v.OpNs {
			gap := gaps.draw()
			if gap != v.Gaps[index] || gaps.adapt(gap, gap*opNs) != (v.Grows[index] == 1) {
				return false
			}
		}
		return len(v.Gaps) == len(v.OpNs)
	case "stalls":
		stalls := stalls{stallNs: v.StallNs}
		for index, operations := range v.Operations {
			stalls.note(operations, v.TookNs[index])
		}
		return stalls.count == v.Stalls && stalls.longestNs == v.StallLongestNs
	case "latencies":
		latencies := newHistogram()
		for _, took := range v.TookNs {
			latencies.record(took)
		}
		ends, counts := latencies.recorded()
		return slices.Equal(ends, v.LatencyNs) && slices.Equal(counts, v.LatencyCounts)
	}
	return false
}
