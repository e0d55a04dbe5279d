// The pieces of a thread's part of the offset table.

package main

// tablePieces are the progress of a `go` in a thread's part. Entries are XORed with a mask: the
// checksum of the piece before the last one, and 0 in the first two of each pass. All counts are
// operations.
type tablePieces struct {
	part, size uint64
	begun, end uint64 // positions: where the `go` began, and behind the piece
	mask       uint64
	last, sum  uint64 // checksums: of the last piece, and of this one so far
}

func newTablePieces(part, size uint64) tablePieces {
	if size == 0 {
		size = part
	}
	return tablePieces{part: part, size: size}
}

// begin is called for each `go`.
func (p *tablePieces) begin(position uint64) { p.begun, p.end = position, position }

// count is how many of up to `wanted` operations from `position` on, where the last ones ended, are
// of one piece and do not go across the end of the part.
func (p *tablePieces) count(position, wanted uint64) uint64 {
	if position == p.end {
		p.next()
	}
	return min(wanted, p.end-position, p.part-position%p.part)
}

func (p *tablePieces) next() {
	inPass := (p.end - p.begun) % p.part
	p.mask = 0
	if inPass >= 2*p.size {
		p.mask = p.last
	}
	p.last, p.sum = p.sum, 0
	p.end += min(p.size, p.part-inPass)
}
