/* The bare loops: what a program does that only wants its bytes. No clock, no batch, no choice
 * inside.
 *
 * Timed regions, for each offset:
 *   bare_mmap_reads:  memcpy(buffer, source + offset, len); touch(buffer, touch_at)
 *   bare_pread_reads: pread(file, buffer, len, offset) == len; touch(buffer, touch_at)
 *
 * touch adds the word at `touch_at` of each 4 KiB page, as `consume = touch` does for aligned
 * reads.
 */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

static inline uint64_t touch(const unsigned char *buffer, size_t len, size_t touch_at) {
    uint64_t total = 0;
    for (size_t offset = touch_at; offset < len; offset += PAGE_BYTES) {
        uint64_t word;
        memcpy(&word, buffer + offset, sizeof word);
        total += word;
    }
    return total;
}

uint64_t bare_mmap_reads(const unsigned char *source, const uint64_t *offsets, size_t count,
                         unsigned char *buffer, size_t len, size_t touch_at) {
    uint64_t total = 0;
    for (size_t index = 0; index < count; index++) {
        memcpy(buffer, source + offsets[index], len);
        total += touch(buffer, len, touch_at);
    }
    return total;
}

/* Returns how many reads came whole; fewer than `count` if one did not. */
size_t bare_pread_reads(int file, const uint64_t *offsets, size_t count, unsigned char *buffer, size_t len,
                        size_t touch_at, uint64_t *total) {
    uint64_t sum = 0;
    size_t index;
    for (index = 0; index < count; index++) {
        if (pread(file, buffer, len, (off_t)offsets[index]) != (ssize_t)len) {
            break;
        }
        sum += touch(buffer, len, touch_at);
    }
    *total = sum;
    return index;
}
