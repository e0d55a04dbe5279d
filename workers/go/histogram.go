// Histograms of nanoseconds.

package main

import "math/bits"

// histogram counts nanoseconds. Below 256 each value has a bucket of its own; from there on 128
// buckets share a power of two, so that none is wider than 1/128 of its value. Values beyond the
// last bucket, 137 s, count there.
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
