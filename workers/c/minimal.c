// A whole worker of one thread, little-endian: put your way to read into `get`; see ../PROTOCOL.md.
// A batch is one operation; a clock costs 50 ns, so fast ways do more. cc -O2 -o minimal minimal.c
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
typedef unsigned long long u64;
static u64 size, per_op, reads, *table, stride, last_at, last_mask, link_mask, max_ops, max_device, check, stall;  // the job
static u64 checksum, touch_at, piece, mask, last, begun, bucket[40 * 128]; static int file, handover;  // of a sample; descriptors
static char *buffer, *line, path[4096];  // one read and zeros behind it; the last message; the last path opened
static u64 now(void) { struct timespec t; return clock_gettime(CLOCK_MONOTONIC, &t), t.tv_sec * 1000000000ull + t.tv_nsec; }
static u64 device_bytes(void) { struct rusage used; return getrusage(RUSAGE_SELF, &used), used.ru_inblock * 512ull; }
static u64 word(u64 at) { u64 value; return memcpy(&value, buffer + at, 8), value; }
static void fail(const char *call, int error, u64 offset, const char *why, int unavailable) {
    printf("{\"type\":\"failed\",\"call\":\"%s\",\"errno\":%d,\"path\":\"%s\",\"offset\":%llu,\"detail\":\"%s\",\"unavailable\":%d}\n",
           call, error, path, offset, error ? strerror(error) : why, unavailable);
    exit(0);
}
static char *field(const char *name) {  // what stands behind "name": in the last message
    char key[64], *at = (sprintf(key, "\"%s\":", name), strstr(line, key));
    return at ? at + strlen(key) : "0";
}
static u64 number(const char *name) { return strtoull(field(name), NULL, 10); }
static int says(const char *name, const char *text) { return !strncmp(field(name) + 1, text, strlen(text)); }
static int open_at(const char *name, int flags) {  // a path with a quote or a backslash in it is beyond this example
    snprintf(path, sizeof path, "%.*s", (int)strcspn(field(name) + 1, "\"\\"), field(name) + 1);
    int fd = open(path, flags);
    return fd < 0 ? fail("open", errno, 0, "", 0), fd : fd;
}
static void get(u64 offset) {  // one read into the buffer: the part to replace
    ssize_t received = pread(file, buffer, size, offset);
    if (received != (ssize_t)size) fail("pread", received < 0 ? errno : 0, offset, "the read was short", 0);
}
static void operate(u64 operation, u64 in_pass) {  // the masks are 0 unless reads are dependent, or last words are touched
    u64 *entry = table + operation * per_op % reads, *end = entry + per_op, link = 0;
    if (in_pass % piece == 0) mask = in_pass < 2 * piece ? 0 : last, last = checksum - begun, begun = checksum;  // another piece
    for (u64 sum; entry < end; entry++, link = word(0) & link_mask) {
        get(*entry ^ mask ^ link), sum = word(last_at) & last_mask;
        for (u64 at = touch_at; at < size; at += stride) sum += word(at);
        checksum += (2 * (entry - table) + 1) * sum;  // weighed by the read's position in the table
    }
}
static void go(u64 first, u64 sample_ns) {
    u64 done = 0, stalls = 0, longest = 0, calm = 0, took, usual, shift, device = device_bytes(), start, after, look;
    u64 ops = max_ops == 0 ? ~0ull : max_ops;
    memset(bucket, 0, sizeof bucket), checksum = begun = last = 0, start = after = look = now();
    do {
        took = after, operate(first + done, done % (reads / per_op)), done++, after = now(), took = after - took;
        for (shift = 0; took >> shift >= 256; shift++);
        bucket[shift * 128 + (took >> shift)]++;  // not wider than 1/128 of its value
        if (done == 2 && took < calm) usual = took, took = calm, calm = usual;  // of the first two the faster measures the other
        usual = done > 1 ? calm / (done - 1) : took;  // stalled ones count as what they should have taken
        if (took > usual + (usual > stall ? usual : stall)) stalls++, longest = took > longest ? took : longest, took = usual;
        if (calm += took, max_device && after > look && (look = after + check, device_bytes() - device >= max_device)) break;
    } while (after - start < sample_ns && done < ops);
    printf("{\"type\":\"sample\",\"operations\":%llu,\"elapsed_ns\":%llu,\"latency_operations\":0,\"latency_elapsed_ns\":0,\"bytes\":%llu,"
           "\"thread_operations\":[%llu],\"checksum\":\"%016llx\",\"stalls\":%llu,\"stall_longest_ns\":%llu,\"latency_ns\":",
           done, after - start, done * per_op * size, done, checksum, stalls, longest);
    for (u64 at = 0, sign = '['; at < 40 * 128; at++)  // upper ends of buckets, then what they hold
        if (shift = at < 256 ? 0 : at / 128 - 1, bucket[at]) printf("%c%llu", (int)sign, ((at - shift * 128 + 1) << shift) - 1), sign = ',';
    for (u64 at = printf("],\"latency_counts\":") * 0, sign = '['; at < 40 * 128; at++)
        if (bucket[at]) printf("%c%llu", (int)sign, bucket[at]), sign = ',';
    puts("]}");
}
static void open_job(u64 start) {
    size = number("read_bytes"), per_op = number("reads_per_op"), reads = per_op ? number("table_reads") / per_op * per_op : 0;
    if (!says("method", "get\"") || !size || !reads || number("threads") != 1 || says("consume", "lines"))
        fail("open", 0, 0, "this example has one method, get, for reads by a table in one thread, and counts no lines", 1);
    max_ops = number("throughput_operations"), max_device = number("throughput_device_bytes"), link_mask = number("dependent") ? ~0ull : 0, piece = (number("piece_reads") ? number("piece_reads") : reads) / per_op;
    stride = says("consume", "sum") ? 8 : number("page_bytes"), last_at = size < 8 ? 0 : size - 8, stall = number("stall_ns"), check = number("device_check_ns");
    last_mask = says("consume", "touch") && number("touch_last") ? ~0ull : 0, buffer = calloc(1, size + 8);
    int offsets = open_at("table_path", O_RDONLY);  // zeros until go, another table with each: mapped, and read from there
    if ((table = mmap(NULL, reads * 8, PROT_READ, MAP_SHARED | MAP_POPULATE, offsets, 0)) == MAP_FAILED) fail("mmap", errno, 0, "", 0);
    close(offsets), file = open_at("path", O_RDONLY), handover = open_at("handover_path", O_RDWR);
    printf("{\"type\":\"opened\",\"setup_ns\":%llu}\n{\"type\":\"ready\",\"warmup_ns\":0}\n", now() - start);
}
static void verify(u64 count) {
    for (char *at = field("offsets") + 1; *at != ']'; at += *at == ',', count++)
        if (get(strtoull(at, &at, 10)), pwrite(handover, buffer, size, count * size) != (ssize_t)size)
            fail("pwrite", errno, count * size, "the write was short", 0);
    printf("{\"type\":\"verified\",\"reads\":%llu}\n", count);
}
int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 1 << 16), puts("{\"type\":\"hello\",\"protocol\":1,\"worker\":\"minimal\",\"version\":\"1.0\",\"random-read\":\"get\",\"sequential-read\":\"get\"}");
    for (size_t room = 0; getline(&line, &room, stdin) > 0;) {
        u64 start = now();
        if (says("type", "open\"")) open_job(start);
        if (says("type", "go\"")) touch_at = stride == 8 ? 0 : number("touch_at"), go(number("first_operation"), number("sample_ns"));
        if (says("type", "verify\"")) verify(0);
        if (says("type", "idle\"")) usleep(number("idle_ns") / 1000), puts("{\"type\":\"idled\"}");
        if (says("type", "close\"")) free(buffer), munmap(table, reads * 8), close(file), close(handover),
            printf("{\"type\":\"closed\",\"teardown_ns\":%llu,\"sync_ns\":0}\n", now() - start);
    }
}
