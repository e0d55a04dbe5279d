// Bare loops: what the Go worker does, with nothing around it but a clock before and a clock
// behind.
//
// `bare METHOD FILE TABLE` reads: each line of stdin is a number of operations of 16 reads of
// 16 KiB, which go on in the table where those before ended. `bare append FILE SOURCE RECORD_BYTES
// PERIOD BUFFER_BYTES METHOD` writes: each line is a number of records, from the start of the file
// on. The answer is `NANOSECONDS CHECKSUM`.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

const (
	readBytes      = 16 << 10
	operationBytes = 16 * 8
	pageBytes      = 4096
)

func main() {
	arguments := os.Args[1:]
	if arguments[0] == "append" {
		appendRecords(arguments[1:])
		return
	}
	file := open(arguments[1], os.O_RDONLY)
	table := mapWhole(open(arguments[2], os.O_RDONLY), syscall.PROT_READ)
	buffer := make([]byte, readBytes)
	var read func(entries []byte) uint64
	switch arguments[0] {
	case "mmap":
		mapping := mapWhole(file, syscall.PROT_READ)
		read = func(entries []byte) uint64 { return mapped(entries, mapping, buffer) }
	case "pread":
		read = func(entries []byte) uint64 { return called(entries, file, buffer) }
	default:
		panic(arguments[0])
	}
	at := 0
	requests(func(operations int) {
		checksum, left := uint64(0), operations*operationBytes
		begun := time.Now()
		for left > 0 {
			end := min(at+left, len(table))
			checksum += read(table[at:end])
			left -= end - at
			at = end % len(table)
		}
		answer(time.Since(begun), checksum)
	})
}

func mapped(entries, mapping, buffer []byte) uint64 {
	total := uint64(0)
	for ; len(entries) >= 8; entries = entries[8:] {
		copy(buffer, mapping[binary.LittleEndian.Uint64(entries):])
		total += touch(buffer)
	}
	return total
}

func called(entries []byte, file *os.File, buffer []byte) uint64 {
	total := uint64(0)
	for ; len(entries) >= 8; entries = entries[8:] {
		if _, err := file.ReadAt(buffer, int64(binary.LittleEndian.Uint64(entries))); err != nil {
			panic(err)
		}
		total += touch(buffer)
	}
	return total
}

func touch(bytes []byte) uint64 {
	total := uint64(0)
	for at := 0; at < len(bytes); at += pageBytes {
		total += binary.LittleEndian.Uint64(bytes[at:])
	}
	return total
}

func appendRecords(arguments []string) {
	source, err := os.ReadFile(arguments[1])
	check(err)
	record, period, buffered := number(arguments[2]), number(arguments[3]), number(arguments[4])
	staging := make([]byte, buffered/record*record)
	requests(func(records int) {
		file := open(arguments[0], os.O_RDWR)
		if arguments[5] == "write" {
			begun := time.Now()
			write(file, source, records, record, period)
			elapsed := time.Since(begun)
			check(file.Close())
			answer(elapsed, 0)
			return
		}
		mapping := mapWhole(file, syscall.PROT_READ|syscall.PROT_WRITE)
		begun := time.Now()
		if len(staging) == 0 {
			store(mapping[:records*record], source, record, period)
		} else {
			storeCollected(mapping[:records*record], source, staging, record, period)
		}
		elapsed := time.Since(begun)
		check(syscall.Munmap(mapping))
		check(file.Close())
		answer(elapsed, 0)
	})
}

func write(file *os.File, source []byte, records, record, period int) {
	step := record % period
	for place := 0; records > 0; records-- {
		_, err := file.Write(source[place : place+record])
		check(err)
		if place += step; place >= period {
			place -= period
		}
	}
}

func store(into, source []byte, record, period int) {
	step := record % period
	for place := 0; len(into) >= record; into = into[record:] {
		copy(into[:record], source[place:place+record])
		if place += step; place >= period {
			place -= period
		}
	}
}

func storeCollected(into, source, staging []byte, record, period int) {
	step, place, filled := record%period, 0, 0
	for left := len(into); left > 0; left -= record {
		if filled == len(staging) {
			copy(into, staging)
			into, filled = into[filled:], 0
		}
		copy(staging[filled:filled+record], source[place:place+record])
		filled += record
		if place += step; place >= period {
			place -= period
		}
	}
	copy(into, staging[:filled])
}

// requests serves numbers, one a line.
func requests(serve func(number int)) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		serve(number(lines.Text()))
	}
}

func answer(elapsed time.Duration, checksum uint64) { fmt.Println(elapsed.Nanoseconds(), checksum) }

func number(text string) int {
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

func open(path string, flags int) *os.File {
	file, err := os.OpenFile(path, flags, 0)
	check(err)
	return file
}

func mapWhole(file *os.File, protection int) []byte {
	info, err := file.Stat()
	check(err)
	mapping, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), protection, syscall.MAP_SHARED)
	check(err)
	return mapping
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
