// A user's microbenchmark of filling a mapped file in blocks of 128 B, with Google Benchmark:
//
//   benchmark FILE SOURCE new|written --benchmark_format=json
//
// new: the file is made anew for each iteration, with the clock stopped, so every page is touched for the first time.
// written: it is mapped with MAP_POPULATE for each iteration, with the clock stopped.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t block_bytes = 128;
constexpr std::size_t source_period = 16381;
std::string path;
std::vector<unsigned char> source;
bool is_new = false;

[[noreturn]] void fail(const char *what) {
    std::perror(what);
    std::exit(1);
}

unsigned char *map_file(std::size_t &len) {
    struct stat status;
    if (stat(path.c_str(), &status)) fail("stat");
    len = static_cast<std::size_t>(status.st_size);
    if (is_new && unlink(path.c_str())) fail("unlink");
    int file = open(path.c_str(), O_RDWR | O_CLOEXEC | (is_new ? O_CREAT : 0), 0600);
    if (file < 0) fail("open");
    if (is_new && ftruncate(file, static_cast<off_t>(len))) fail("ftruncate");
    int flags = MAP_SHARED | (is_new ? 0 : MAP_POPULATE);
    void *bytes = mmap(nullptr, len, PROT_READ | PROT_WRITE, flags, file, 0);
    if (bytes == MAP_FAILED) fail("mmap");
    close(file);
    return static_cast<unsigned char *>(bytes);
}

void fill(benchmark::State &state) {
    for (auto _ : state) {
        state.PauseTiming();
        std::size_t len = 0;
        unsigned char *ring = map_file(len);
        state.ResumeTiming();
        std::size_t place = 0;
        for (std::size_t cursor = 0; cursor + block_bytes <= len; cursor += block_bytes) {
            std::memcpy(ring + cursor, source.data() + place, block_bytes);
            place += block_bytes;
            if (place >= source_period) place -= source_period;
        }
        benchmark::ClobberMemory();
        state.PauseTiming();
        munmap(ring, len);
        state.ResumeTiming();
    }
}

}  // namespace

BENCHMARK(fill)->Unit(benchmark::kNanosecond)->Iterations(3)->UseRealTime();

int main(int count, char **words) {
    benchmark::Initialize(&count, words);
    if (count != 4) return 2;
    path = words[1];
    is_new = !std::strcmp(words[3], "new");
    source.resize(source_period + block_bytes);
    int file = open(words[2], O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, source.data(), source.size()) != static_cast<ssize_t>(source.size())) fail(words[2]);
    close(file);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
