// Consumption: what is done with the bytes of a read, and the checksum that comes of it.

package main

import (
	"bytes"
	"encoding/binary"
)

// consumer is a way to consume. Loops are compiled for each: Go does so for types of different
// shape, which is what the blank fields of sum and lines are for.
type consumer interface {
	touch | touchLast | sum | lines
	of(bytes []byte) uint64
}

// touch takes the word at this offset of each page.
type touch struct{ pageBytes, at int }

// touchLast takes the last word too.
type touchLast struct{ touch touch }

// sum takes all words.
type sum struct{ _ uint8 }

// lines counts newline bytes.
type lines struct{ _ uint16 }

var newline = []byte{'\n'}

// tail is the word that begins with these bytes, fewer than 8, and goes on with zeros.
func tail(bytes []byte) uint64 {
	word := uint64(0)
	for index, value := range bytes {
		word |= uint64(value) << (8 * index)
	}
	return word
}

func (c touch) of(bytes []byte) uint64 {
	total, at := uint64(0), c.at
	for ; at+8 <= len(bytes); at += c.pageBytes {
		total += binary.LittleEndian.Uint64(bytes[at:])
	}
	if at < len(bytes) {
		total += tail(bytes[at:])
	}
	return total
}

func (c touchLast) of(bytes []byte) uint64 {
	total := c.touch.of(bytes)
	if len(bytes) < 8 {
		return total + tail(bytes)
	}
	return total + binary.LittleEndian.Uint64(bytes[len(bytes)-8:])
}

func (sum) of(bytes []byte) uint64 {
	var a, b, c, d uint64
	for len(bytes) >= 32 {
		a += binary.LittleEndian.Uint64(bytes)
		b += binary.LittleEndian.Uint64(bytes[8:])
		c += binary.LittleEndian.Uint64(bytes[16:])
		d += binary.LittleEndian.Uint64(bytes[24:])
		bytes = bytes[32:]
	}
	for len(bytes) >= 8 {
		a += binary.LittleEndian.Uint64(bytes)
		bytes = bytes[8:]
	}
	return a + b + c + d + tail(bytes)
}

func (lines) of(some []byte) uint64 { return uint64(bytes.Count(some, newline)) }
