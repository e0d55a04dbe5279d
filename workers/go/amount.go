// Samples that are an amount: scans and records.

package main

import "math/bits"

// progress is how far an amount of work has come.
type progress struct {
	work      work
	position  uint64
	end       uint64
	checksum  uint64
	latencies *histogram
	// Latencies taken before the mean gap is found; those while it grows are thrown away.
	early       []uint64
	earlyClosed bool
	stalls      *stalls
}

// doFixed does all operations of the job, or as many as are done within `sample_ns`: batches of gap
// operations, and after each one operation timed by itself. What is collected in a buffer, and a
// sync that is due, belong to the region.
func (c *jobThreads) doFixed(member *member, request *request) error {
	member.part = c.newPart()
	member.latencies.reset()
	work, part := member.work, &member.part
	written := work.bytes()
	work.begin(request)
	first := request.FirstOperation
	end := c.job.Records
	if c.job.Workload == "scan" {
		end = first + 1
	}
	progress := progress{work: work, position: first, end: end, latencies: member.latencies, stalls: &part.stalls}
	progress.early = make([]uint64, 0, 2*c.job.GapMeasures+2)
	gaps := gaps{random: c.job.GapSeed, mean: 1, policy: &c.job.policy}
	part.begun = now()
	deadline := addSaturating(part.begun, request.SampleNs)
	for clock := part.begun; progress.position < end && clock < deadline; {
		gap, begun := gaps.draw(), clock
		var err error
		if clock, err = progress.batch(gap, clock); err != nil {
			return err
		}
		if progress.position < end && gaps.adapt(gap, clock-begun) {
			progress.early = progress.early[:0]
		}
		if gaps.isFound() && len(progress.early) > 0 {
			progress.recordEarly()
		}
		if progress.position < end {
			if clock, err = progress.batch(1, clock); err != nil {
				return err
			}
		}
	}
	if err := work.finish(); err != nil {
		return err
	}
	part.ended = now()
	progress.recordEarly()
	part.operations, part.checksum = progress.position-first, progress.checksum
	part.bytes = work.bytes() - written
	return nil
}

// batch does `wanted` operations, fewer at the end, and returns the clock behind them. A single
// operation has a clock of its own before it too, so that its latency is nothing but its own.
func (c *progress) batch(wanted, before uint64) (uint64, error) {
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
		if c.earlyClosed || len(c.early) == cap(c.early) {
			c.latencies.record(after - begun)
		} else {
			c.early = append(c.early, after-begun)
		}
	}
	c.stalls.note(done, after-before)
	return after, nil
}

func (c *progress) recordEarly() {
	for _, took := range c.early {
		c.latencies.record(took)
	}
	c.early, c.earlyClosed = c.early[:0], true
}

// gaps are the lengths of batches between operations that are timed by themselves.
type gaps struct {
	random uint64 // state of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)
	mean   uint64
	// Measures in a row that did not double the mean.
	steady uint64
	policy *policy
}

// draw is a number from 1 to twice the mean, exclusive.
func (g *gaps) draw() uint64 {
	g.random += 0x9e3779b97f4a7c15
	value := (g.random ^ g.random>>30) * 0xbf58476d1ce4e5b9
	value = (value ^ value>>27) * 0x94d049bb133111eb
	below, _ := bits.Mul64(value^value>>31, 2*g.mean-1)
	return 1 + below
}

// adapt makes the mean gap last as long as the policy says. It returns true while the mean grows
// from 1: what was timed until then was timed more often than what follows. Gaps shorter than the
// mean are no measure, since the clock is a part of what they take.
func (g *gaps) adapt(gap, took uint64) bool {
	if gap < g.mean {
		return false
	}
	meanNs := pace(took, gap, g.mean)
	if meanNs < g.policy.GapMinNs {
		g.mean *= 2
		begins := g.steady < g.policy.GapMeasures
		if begins {
			g.steady = 0
		}
		return begins
	}
	if g.mean > 1 && meanNs > g.policy.GapMaxNs {
		g.mean /= 2
	}
	if g.steady < g.policy.GapMeasures {
		g.steady++
	}
	return false
}

// isFound says whether the mean has stopped growing from 1.
func (g *gaps) isFound() bool { return g.steady == g.policy.GapMeasures }
