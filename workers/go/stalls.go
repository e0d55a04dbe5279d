// Stalls: batches that took longer than their operations should.

package main

// pace is what `wanted` operations take where `operations` took `took`.
func pace(took, operations, wanted uint64) uint64 {
	return uint64(float64(took) * float64(wanted) / float64(max(operations, 1)))
}

// stalls counts batches that took longer by over stallNs, and over twice as long, as their
// operations take on average. A stalled one counts in the average as what it should have taken, or
// one long stall would hide those after it.
type stalls struct {
	count     uint64
	longestNs uint64
	// Operations without stalls, and their time.
	operations, tookNs uint64
	// The very first batch, until there is another to compare it with; alone it is no stall.
	firstOperations, firstNs uint64
	// Excess of a stalled batch over its operations' average.
	stallNs uint64
}

func (s *stalls) note(operations, took uint64) {
	if s.operations > 0 && took < s.stallNs {
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
	if took > due+max(due, s.stallNs) {
		s.count++
		s.longestNs = max(s.longestNs, took-pace(s.tookNs, s.operations, operations-1))
		took = due
	}
	s.operations += operations
	s.tookNs += took
}
