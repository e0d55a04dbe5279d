// Two ways to read a file at random, as a user of `go test -bench` would compare them. An operation is 16 reads of 16 KiB; of
// each read one word of each page is consumed. Offsets come from a table that every goroutine reads front to back from a
// place of its own. Goroutines share the file and the mapping, and have their own buffers.
package reading

import (
	"encoding/binary"
	"flag"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
)

const (
	readBytes = 16 << 10
	reads     = 16
	pageBytes = 4096
)

var (
	filePath  = flag.String("file", "", "the file that is read")
	tablePath = flag.String("table", "", "offsets, little-endian 64-bit words")
	sink      atomic.Uint64
)

// input is what goroutines share.
type input struct {
	file    *os.File
	mapping []byte
	offsets []uint64
}

func openInput(b *testing.B) *input {
	b.Helper()
	file, err := os.Open(*filePath)
	if err != nil {
		b.Fatal(err)
	}
	info, err := file.Stat()
	if err != nil {
		b.Fatal(err)
	}
	mapping, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		b.Fatal(err)
	}
	table, err := os.ReadFile(*tablePath)
	if err != nil {
		b.Fatal(err)
	}
	offsets := make([]uint64, len(table)/8)
	for index := range offsets {
		offsets[index] = binary.LittleEndian.Uint64(table[index*8:])
	}
	// Page tables are filled before the clock runs.
	total := byte(0)
	for at := 0; at < len(mapping); at += pageBytes {
		total += mapping[at]
	}
	sink.Add(uint64(total))
	b.Cleanup(func() {
		_ = syscall.Munmap(mapping)
		_ = file.Close()
	})
	return &input{file: file, mapping: mapping, offsets: offsets}
}

func (in *input) byMmap(buffer []byte, next int) (uint64, error) {
	total := uint64(0)
	for _, offset := range in.offsets[next : next+reads] {
		copy(buffer, in.mapping[offset:])
		total += touch(buffer)
	}
	return total, nil
}

func (in *input) byPread(buffer []byte, next int) (uint64, error) {
	total := uint64(0)
	for _, offset := range in.offsets[next : next+reads] {
		if _, err := in.file.ReadAt(buffer, int64(offset)); err != nil {
			return 0, err
		}
		total += touch(buffer)
	}
	return total, nil
}

func touch(bytes []byte) uint64 {
	total := uint64(0)
	for at := 0; at < len(bytes); at += pageBytes {
		total += binary.LittleEndian.Uint64(bytes[at:])
	}
	return total
}

type operation func(buffer []byte, next int) (uint64, error)

func alone(b *testing.B, in *input, read operation) {
	buffer, total, next := make([]byte, readBytes), uint64(0), 0
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		checksum, err := read(buffer, next)
		if err != nil {
			b.Fatal(err)
		}
		total += checksum
		if next += reads; next+reads > len(in.offsets) {
			next = 0
		}
	}
	sink.Add(total)
}

func together(b *testing.B, in *input, read operation) {
	var begun atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		buffer, total := make([]byte, readBytes), uint64(0)
		next := int(begun.Add(1)-1) * (len(in.offsets) / reads / 2) * reads % len(in.offsets)
		for pb.Next() {
			checksum, err := read(buffer, next)
			if err != nil {
				b.Error(err)
				return
			}
			total += checksum
			if next += reads; next+reads > len(in.offsets) {
				next = 0
			}
		}
		sink.Add(total)
	})
}

func BenchmarkMmap(b *testing.B) {
	in := openInput(b)
	alone(b, in, in.byMmap)
}

func BenchmarkPread(b *testing.B) {
	in := openInput(b)
	alone(b, in, in.byPread)
}

func BenchmarkMmapTogether(b *testing.B) {
	in := openInput(b)
	together(b, in, in.byMmap)
}

func BenchmarkPreadTogether(b *testing.B) {
	in := openInput(b)
	together(b, in, in.byPread)
}
