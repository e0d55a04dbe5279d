/* What a program does that only wants its lines counted or its records written: a process of its
 * own, sizes known at run time, no clock, no batch, no choice inside the loops.
 *
 *   once scan FILE
 *   once append FILE SOURCE RECORD PASSES BUFFER plain|populate
 *   once fill FILE SOURCE BLOCK plain|populate
 *
 * prints nanoseconds of set-up (open, map, and populate where asked), of the measured region and of
 * tear-down (unmap, close), then the lines counted or the records written.
 *
 * Measured regions:
 *   scan:            while ((next = memchr(next, '\n', end - next))) count++, next++
 *   append:          for each record: memcpy(ring + cursor, source + place, record); move both,
 *                    each back to 0 at its end
 *   append, BUFFER:  for each record: if it does not fit: memcpy(ring + cursor, buffer, filled), in
 *                    two parts at the end of the ring; memcpy(buffer + filled, source + place,
 *                    record)
 *   fill:            the same as append, one pass; of 128 B the size is known when compiling, so a
 *                    block is stores alone
 *
 * Record i is the RECORD bytes of the source from i * RECORD mod 16381 on; the ring is as many
 * whole records as the file has room for.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SOURCE_PERIOD = 16381 };

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static _Noreturn void fail(const char *what) {
    perror(what);
    exit(1);
}

static __attribute__((noinline)) uint64_t count_lines(const unsigned char *bytes, size_t len) {
    const unsigned char *next = bytes, *end = bytes + len;
    uint64_t count = 0;
    while ((next = memchr(next, '\n', (size_t)(end - next)))) {
        count++;
        next++;
    }
    return count;
}

static inline void write_records(unsigned char *ring, size_t ring_bytes, const unsigned char *source, size_t record,
                                 uint64_t records) {
    size_t cursor = 0, place = 0;
    for (uint64_t index = 0; index < records; index++) {
        memcpy(ring + cursor, source + place, record);
        cursor += record;
        if (cursor == ring_bytes) {
            cursor = 0;
        }
        place += record;
        if (place >= SOURCE_PERIOD) {
            place -= SOURCE_PERIOD;
        }
    }
}

static __attribute__((noinline)) void append(unsigned char *ring, size_t ring_bytes, const unsigned char *source,
                                             size_t record, uint64_t records) {
    write_records(ring, ring_bytes, source, record, records);
}

static __attribute__((noinline)) void fill_128(unsigned char *ring, size_t ring_bytes, const unsigned char *source,
                                               uint64_t records) {
    write_records(ring, ring_bytes, source, 128, records);
}

static inline size_t flush(unsigned char *ring, size_t ring_bytes, size_t cursor, const unsigned char *buffer,
                           size_t filled) {
    size_t first = ring_bytes - cursor < filled ? ring_bytes - cursor : filled;
    memcpy(ring + cursor, buffer, first);
    cursor += first;
    if (cursor == ring_bytes) {
        memcpy(ring, buffer + first, filled - first);
        cursor = filled - first;
    }
    return cursor;
}

static __attribute__((noinline)) void append_buffered(unsigned char *ring, size_t ring_bytes,
                                                      const unsigned char *source, size_t record, uint64_t records,
                                                      unsigned char *buffer, size_t capacity) {
    size_t cursor = 0, place = 0, filled = 0;
    for (uint64_t index = 0; index < records; index++) {
        if (filled + record > capacity) {
            cursor = flush(ring, ring_bytes, cursor, buffer, filled);
            filled = 0;
        }
        memcpy(buffer + filled, source + place, record);
        filled += record;
        place += record;
        if (place >= SOURCE_PERIOD) {
            place -= SOURCE_PERIOD;
        }
    }
    flush(ring, ring_bytes, cursor, buffer, filled);
}

static size_t size_of(int file) {
    struct stat status;
    if (fstat(file, &status)) {
        fail("fstat");
    }
    return (size_t)status.st_size;
}

static unsigned char *map(const char *path, int flags, int protection, int map_flags, size_t *len, int *file) {
    *file = open(path, flags | O_CLOEXEC);
    if (*file < 0) {
        fail(path);
    }
    *len = size_of(*file);
    unsigned char *bytes = mmap(NULL, *len, protection, MAP_SHARED | map_flags, *file, 0);
    if (bytes == MAP_FAILED) {
        fail("mmap");
    }
    return bytes;
}

static unsigned char *memory(size_t len) {
    unsigned char *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) {
        fail("mmap of memory");
    }
    memset(bytes, 0, len);
    return bytes;
}

static unsigned char *read_source(const char *path, size_t len) {
    unsigned char *bytes = memory(len);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || pread(file, bytes, len, 0) != (ssize_t)len) {
        fail(path);
    }
    close(file);
    return bytes;
}

static void say(const uint64_t clocks[4], uint64_t value) {
    printf("%llu %llu %llu %llu\n", (unsigned long long)(clocks[1] - clocks[0]),
           (unsigned long long)(clocks[2] - clocks[1]), (unsigned long long)(clocks[3] - clocks[2]),
           (unsigned long long)value);
}

static int scan(const char *path) {
    uint64_t clocks[4];
    size_t len;
    int file;
    clocks[0] = now_ns();
    unsigned char *bytes = map(path, O_RDONLY, PROT_READ, 0, &len, &file);
    clocks[1] = now_ns();
    uint64_t lines = count_lines(bytes, len);
    clocks[2] = now_ns();
    munmap(bytes, len);
    close(file);
    clocks[3] = now_ns();
    say(clocks, lines);
    return 0;
}

static int write_ring(const char *path, const char *source_path, size_t record, uint64_t passes, size_t capacity,
                      int is_fill, int populate) {
    uint64_t clocks[4];
    size_t len;
    int file;
    unsigned char *source = read_source(source_path, SOURCE_PERIOD + record);
    unsigned char *buffer = capacity ? memory(capacity) : NULL;
    clocks[0] = now_ns();
    unsigned char *ring = map(path, O_RDWR, PROT_READ | PROT_WRITE, populate ? MAP_POPULATE : 0, &len, &file);
    size_t ring_bytes = len / record * record;
    uint64_t records = len / record * passes;
    clocks[1] = now_ns();
    if (buffer) {
        append_buffered(ring, ring_bytes, source, record, records, buffer, capacity);
    } else if (is_fill && record == 128) {
        fill_128(ring, ring_bytes, source, records);
    } else {
        append(ring, ring_bytes, source, record, records);
    }
    clocks[2] = now_ns();
    munmap(ring, len);
    close(file);
    clocks[3] = now_ns();
    say(clocks, records);
    return 0;
}

static uint64_t number(const char *text) {
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end) {
        fprintf(stderr, "not a number: %s\n", text);
        exit(2);
    }
    return value;
}

int main(int count, char **words) {
    if (count == 3 && !strcmp(words[1], "scan")) {
        return scan(words[2]);
    }
    if (count == 8 && !strcmp(words[1], "append")) {
        return write_ring(words[2], words[3], number(words[4]), number(words[5]), number(words[6]), 0,
                          !strcmp(words[7], "populate"));
    }
    if (count == 6 && !strcmp(words[1], "fill")) {
        return write_ring(words[2], words[3], number(words[4]), 1, 0, 1, !strcmp(words[5], "populate"));
    }
    fprintf(stderr, "see the head of once.c\n");
    return 2;
}
