// The offers of the worker: `hello` is made of it, jobs are checked by it, and pagewise itself
// reads it.

package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// offers has a line for each word of a method: how its bytes move, as the kernel sees it, and the
// options that it takes in each workload. `-`: it is not for it; `none`: it takes none; `*`: what
// is meant where none of this name is written. Of `buffer=SIZE` any size is taken.
const offers = `
word    access  reads              scan           append         fill          update  by
mmap    mmap    random,sequential  none           buffer=64KiB   buffer=64KiB  random  syscall.Mmap
pread   pread   none               none           -              -             -       os.File.ReadAt
pwrite  pwrite  -                  -              buffer=64KiB   buffer=64KiB  none    os.File.WriteAt and os.File.ReadAt
write   write   -                  -              buffer=64KiB   buffer=64KiB  -       os.File.Write
bufio   read    -                  buffer=64KiB*  buffer=64KiB*  -             -       bufio.Reader and bufio.Writer of a file
`

// advice is what options pass to madvise(2).
var advice = map[string]int{
	"random":     syscall.MADV_RANDOM,
	"sequential": syscall.MADV_SEQUENTIAL,
}

// offered are the options of each word for a workload, in the order of the table.
func offered(workload string) (words []string, options map[string][]string) {
	lines := strings.Split(strings.TrimSpace(offers), "\n")
	if strings.HasSuffix(workload, "-read") {
		workload = "reads"
	}
	options = map[string][]string{}
	column := slices.Index(strings.Fields(lines[0]), workload)
	for _, line := range lines[1:] {
		fields := strings.Fields(line)
		if column < 2 || fields[column] == "-" {
			continue
		}
		words = append(words, fields[0])
		options[fields[0]] = nil
		if fields[column] != "none" {
			options[fields[0]] = strings.Split(fields[column], ",")
		}
	}
	return words, options
}

// methods are the words for a workload, and each with each of its options.
func methods(workload string) []string {
	words, options := offered(workload)
	var methods []string
	for _, word := range words {
		methods = append(methods, word)
		for _, option := range options[word] {
			methods = append(methods, word+":"+strings.TrimSuffix(option, "*"))
		}
	}
	return methods
}

// method is what a job asks for, found in the table.
type method struct {
	word    string
	options []string // as written
	buffer  uint64   // 0: none
}

func parseMethod(job *job) (*method, error) {
	word, written, some := strings.Cut(job.Method, ":")
	method := &method{word: word}
	if some {
		method.options = strings.Split(written, "+")
	}
	_, offered := offered(job.Workload)
	taken, known := offered[word]
	names := map[string]bool{}
	for _, option := range method.options {
		name, size, valued := strings.Cut(option, "=")
		known = known && !names[name] && slices.ContainsFunc(taken, func(other string) bool {
			return other == option || valued && strings.HasPrefix(other, name+"=")
		})
		names[name] = true
		if known && valued {
			method.buffer, known = parseSize(size)
		}
	}
	if !known {
		return nil, refusal("open", job.Path, 1, "the go worker has no method %q for %s; it has %s",
			job.Method, job.Workload, strings.Join(methods(job.Workload), ", "))
	}
	for _, option := range taken {
		if size, meant := strings.CutSuffix(strings.TrimPrefix(option, "buffer="), "*"); meant && method.buffer == 0 {
			method.buffer, _ = parseSize(size)
		}
	}
	return method, nil
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
