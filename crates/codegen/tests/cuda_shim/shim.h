// Runs CUDA C++ on a CPU, one thread of a block after another.
//
// Every thread of a block is a fiber with a stack of its own; `__syncthreads` leaves the fiber, and the scheduler enters it again when
// all others have come to a barrier too. Blocks run one after another, so shared memory is a static array. Between barriers a thread runs
// to its end undisturbed: what a missing barrier would break on a GPU, some order of the threads breaks here. Not modelled: warps, the
// memory model, timing.
//
// Accesses to memory can be watched. The accesses that the threads of a warp make at the same place of the source, for the same time,
// count as one instruction; shared ones are counted in turns of 32 banks of 4 bytes, global ones in sectors of 32 bytes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

struct uint2 { unsigned x, y; } __attribute__((aligned(8)));
struct uint4 { unsigned x, y, z, w; } __attribute__((aligned(16)));
struct uint3 { unsigned x, y, z; };

namespace shim {

enum Kind { READ, WRITE, GET, PUT, KINDS };

struct Access {
  Kind kind;
  int line;
  unsigned turn;
  unsigned lane;
  size_t at;
  size_t bytes;
};

struct Fiber {
  void* at = nullptr;  // its stack pointer while it is left
  bool done = true;
  unsigned barriers = 0;
  uint3 index{};
  std::unique_ptr<void*[]> stack;
  std::vector<Access> seen;
  std::vector<std::pair<int, unsigned>> turns;  // accesses so far by place and kind
};

// What was seen of one kind of access, over all warps.
struct Totals {
  size_t accesses = 0;  // instructions of a warp
  size_t bytes = 0;
  size_t cost = 0;      // turns of the banks, or sectors
  size_t least = 0;     // the least cost that these bytes can have
  size_t widest = 0;    // bytes of a thread's widest access
};

inline std::vector<std::unique_ptr<Fiber>> fibers;
inline Fiber* current = nullptr;
inline void* scheduler = nullptr;  // the stack pointer of whoever runs the fibers
inline std::function<void()> body;
inline uint3 block_index, block_size, grid_size;
inline bool watching = false;
inline Totals totals[KINDS];

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "shim: %s\n", what);
  std::exit(3);
}

// Saves what a call must preserve, and the stack pointer in `*from`; goes on where `to` was saved.
extern "C" void shim_switch(void** from, void* to);
#if defined(__x86_64__)
asm(R"(.text
.globl shim_switch
shim_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
)");
constexpr size_t SAVED = 8, RETURN = 6;  // words on the stack of a fiber that is left, and which of them it returns to
#elif defined(__aarch64__)
asm(R"(.text
.globl shim_switch
shim_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
constexpr size_t SAVED = 20, RETURN = 11;
#else
#error "the shim switches stacks on x86-64 and aarch64 only"
#endif

// Leaves the current fiber; returns when the scheduler enters it again.
inline void leave() { shim_switch(&current->at, scheduler); }

[[noreturn]] inline void run() {
  for (;;) {
    body();
    current->done = true;
    leave();
  }
}

// Runs a fiber until it leaves.
inline void enter(Fiber* fiber) {
  current = fiber;
  shim_switch(&scheduler, fiber->at);
  current = nullptr;
}

inline void grow(size_t threads) {
  const size_t words = 32 << 10;
  while (fibers.size() < threads) {
    auto fiber = std::make_unique<Fiber>();
    fiber->stack = std::make_unique<void*[]>(words);
    const size_t end = reinterpret_cast<size_t>(fiber->stack.get() + words) / 16 * 16;
    void** const at = reinterpret_cast<void**>(end) - SAVED;
    at[RETURN] = reinterpret_cast<void*>(run);
    fiber->at = at;
    fibers.push_back(std::move(fiber));
  }
}

inline void note(Kind kind, int line, const void* at, size_t bytes) {
  if (!watching) return;
  const int place = line * KINDS + kind;
  auto turn = std::find_if(current->turns.begin(), current->turns.end(), [&](auto& t) { return t.first == place; });
  if (turn == current->turns.end()) turn = current->turns.insert(turn, {place, 0});
  current->seen.push_back({kind, line, turn->second++, current->index.x % 32, reinterpret_cast<size_t>(at), bytes});
}

// How many different numbers there are.
inline size_t distinct(std::vector<size_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  return size_t(std::unique(numbers.begin(), numbers.end()) - numbers.begin());
}

// Cost of one instruction of a warp.
inline void count(const Access* lanes, size_t lanes_count) {
  const Kind kind = lanes[0].kind;
  const size_t bytes = lanes[0].bytes;
  static std::vector<size_t> units, banks[32];
  Totals& sum = totals[kind];
  sum.accesses++;
  sum.widest = std::max(sum.widest, bytes);
  units.clear();
  for (size_t i = 0; i < lanes_count; i++) units.push_back(lanes[i].at);
  const size_t touched = distinct(units) * bytes;
  sum.bytes += touched;
  if (kind == READ || kind == WRITE) {
    for (size_t& unit : units) unit /= 32;
    sum.cost += distinct(units);
    sum.least += (touched + 31) / 32;
    return;
  }
  const size_t part = 32 / std::max<size_t>(bytes / 4, 1);
  for (size_t i = 0; i < lanes_count; i += part) {
    for (auto& bank : banks) bank.clear();
    for (size_t k = i; k < std::min(i + part, lanes_count); k++)
      for (size_t w = lanes[k].at / 4; w <= (lanes[k].at + bytes - 1) / 4; w++) banks[w % 32].push_back(w);
    size_t most = 0, words = 0;
    for (auto& bank : banks) {
      const size_t here = distinct(bank);
      most = std::max(most, here), words += here;
    }
    sum.cost += most;
    sum.least += (words + 31) / 32;
  }
}

// Gathers the accesses of each warp of the block into instructions.
inline void settle(size_t threads) {
  static std::vector<Access> seen;
  const auto place = [](const Access& a) { return std::make_tuple(a.kind, a.line, a.turn); };
  for (size_t warp = 0; warp < threads; warp += 32) {
    seen.clear();
    for (size_t t = warp; t < std::min(warp + 32, threads); t++) {
      seen.insert(seen.end(), fibers[t]->seen.begin(), fibers[t]->seen.end());
      fibers[t]->seen.clear(), fibers[t]->turns.clear();
    }
    std::stable_sort(seen.begin(), seen.end(), [&](const Access& a, const Access& b) { return place(a) < place(b); });
    for (size_t i = 0, k; i < seen.size(); i = k) {
      for (k = i + 1; k < seen.size() && place(seen[k]) == place(seen[i]); k++) {}
      count(&seen[i], k - i);
    }
  }
}

// Runs a grid. Order 0 runs threads as they are numbered, 1 backwards, others at random, anew between barriers.
inline void launch(uint3 grid, uint3 block, unsigned order, bool watch, std::function<void()> kernel) {
  const size_t threads = size_t(block.x) * block.y * block.z;
  grow(threads);
  body = std::move(kernel);
  grid_size = grid, block_size = block, watching = watch;
  if (watch) for (Totals& sum : totals) sum = Totals();
  std::vector<size_t> turn(threads);
  for (size_t t = 0; t < threads; t++) turn[t] = order == 1 ? threads - 1 - t : t;
  unsigned random = 2463534242u + order;
  const auto shuffle = [&] {
    for (size_t i = threads; order > 1 && i > 1; i--) {
      random ^= random << 13, random ^= random >> 17, random ^= random << 5;
      std::swap(turn[i - 1], turn[random % i]);
    }
  };
  for (unsigned z = 0; z < grid.z; z++) for (unsigned y = 0; y < grid.y; y++) for (unsigned x = 0; x < grid.x; x++) {
    block_index = {x, y, z};
    for (size_t t = 0; t < threads; t++) {
      Fiber& fiber = *fibers[t];
      fiber.index = {unsigned(t % block.x), unsigned(t / block.x % block.y), unsigned(t / block.x / block.y)};
      fiber.done = false, fiber.barriers = 0;
    }
    for (size_t left = threads; left > 0;) {
      shuffle();
      size_t waiting = 0, ended = 0;
      unsigned barriers = 0;
      for (size_t t : turn) {
        if (fibers[t]->done) continue;
        enter(fibers[t].get());
        if (fibers[t]->done) { ended++; continue; }
        if (waiting++ && fibers[t]->barriers != barriers) fail("threads of a block wait at different barriers");
        barriers = fibers[t]->barriers;
      }
      if (waiting && ended) fail("a thread ended while others of its block wait at a barrier");
      left = waiting;
    }
    if (watch) settle(threads);
  }
  watching = false;
}

template <class T> T load(Kind kind, int line, const void* p) {
  note(kind, line, p, sizeof(T));
  return *static_cast<const T*>(p);
}
template <class T> void store(Kind kind, int line, void* p, T v) {
  note(kind, line, p, sizeof(T));
  *static_cast<T*>(p) = v;
}

}  // namespace shim

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __shared__ static
#define threadIdx (shim::current->index)
#define blockIdx (shim::block_index)
#define blockDim (shim::block_size)
#define gridDim (shim::grid_size)

inline void __syncthreads() { shim::current->barriers++; shim::leave(); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((uint64_t(a) * b) >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
// Byte k of the result is the byte that the k-th selector, of 4 bits of which 3 count, names among the 8 of a and b.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selectors) {
  const uint64_t bytes = a | uint64_t(b) << 32;
  unsigned result = 0;
  for (int k = 0; k < 4; k++) result |= unsigned(bytes >> (selectors >> 4 * k & 7) * 8 & 255) << 8 * k;
  return result;
}
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T max(T a, T b) { return a < b ? b : a; }

#define RELAYOUT_READ(T, p) shim::load<T>(shim::READ, __LINE__, p)
#define RELAYOUT_WRITE(T, p, v) shim::store<T>(shim::WRITE, __LINE__, p, v)
#define RELAYOUT_GET(T, p) shim::load<T>(shim::GET, __LINE__, p)
#define RELAYOUT_PUT(T, p, v) shim::store<T>(shim::PUT, __LINE__, p, v)

// One case: a kernel, its buffers, and what starts it.
struct Case {
  const char* name;
  uint3 grid, block;
  size_t source, destination, alignment;
  bool watch;
  void (*start)(const unsigned char*, unsigned char*);
};

// A buffer that ends where its bytes end and is aligned to what the kernel asks for and no more.
struct Buffer {
  void* base = nullptr;
  unsigned char* bytes;
  Buffer(size_t size, size_t alignment) {
    const size_t shift = alignment < 16 ? alignment : 0;
    if (posix_memalign(&base, 64, size + shift)) shim::fail("no memory");
    bytes = static_cast<unsigned char*>(base) + shift;
  }
  ~Buffer() { std::free(base); }
};

// Runs the cases `first` to `last` in four orders of threads; writes FOLDER/INDEX, the destination, and a line of figures for each.
inline int run_cases(const Case* cases, size_t count, int argc, char** argv) {
  if (argc != 4) shim::fail("usage: FOLDER FIRST LAST");
  const size_t first = std::strtoul(argv[2], nullptr, 10), last = std::min<size_t>(count, std::strtoul(argv[3], nullptr, 10));
  for (size_t index = first; index < last; index++) {
    const Case& c = cases[index];
    Buffer source(c.source, c.alignment), destination(c.destination, c.alignment), again(c.destination, c.alignment);
    for (size_t i = 0; i < c.source; i++) source.bytes[i] = static_cast<unsigned char>(i * 167 + i / 251);
    bool stable = true;
    for (unsigned order = 0; order < 4; order++) {
      unsigned char* to = order ? again.bytes : destination.bytes;
      std::memset(to, 0xa5 ^ order, c.destination);
      shim::launch(c.grid, c.block, order, c.watch && order == 0, [&] { c.start(source.bytes, to); });
      stable &= std::memcmp(to, destination.bytes, c.destination) == 0;
    }
    std::printf("%zu stable=%d", index, stable);
    for (int kind = 0; kind < shim::KINDS; kind++) {
      const shim::Totals& sum = shim::totals[kind];
      std::printf(" %zu,%zu,%zu,%zu,%zu", sum.accesses, sum.bytes, sum.cost, sum.least, sum.widest);
    }
    std::printf("\n");
    const std::string path = std::string(argv[1]) + "/" + std::to_string(index);
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (!file || std::fwrite(destination.bytes, 1, c.destination, file) != c.destination) shim::fail("cannot write the result");
    std::fclose(file);
  }
  return 0;
}
