/* Permute kernels of relayout. Written by cbindgen from the sources of relayout-capi; do not edit. */

#ifndef RELAYOUT_H
#define RELAYOUT_H

#include <stddef.h>

/**
 * What a call answers: 0, or why nothing was done.
 */
enum relayout_status {
  /**
   * Done.
   */
  RELAYOUT_STATUS_OK = 0,
  /**
   * A pointer is null that must not be.
   */
  RELAYOUT_STATUS_NULL = 1,
  /**
   * `perm` does not name each axis once.
   */
  RELAYOUT_STATUS_NOT_A_PERMUTATION = 2,
  /**
   * An element has no bytes, or the tensor does not fit the address space.
   */
  RELAYOUT_STATUS_BAD_SIZE = 3,
  /**
   * Source and destination overlap.
   */
  RELAYOUT_STATUS_OVERLAP = 4,
  /**
   * The hint is none of `enum relayout_hint`.
   */
  RELAYOUT_STATUS_BAD_HINT = 5,
  /**
   * A defect of the library.
   */
  RELAYOUT_STATUS_INTERNAL = 6,
  /**
   * The text spells no layout, or one of another rank, or one that the shape does not fit.
   */
  RELAYOUT_STATUS_BAD_LAYOUT = 7,
  /**
   * The two layouts have so little in common that no strides describe the move; go by way of a third.
   */
  RELAYOUT_STATUS_SCATTERED = 8,
};

/**
 * Whether data is in the caches.
 */
enum relayout_hint {
  /**
   * Unknown: taken to be where both sides fit.
   */
  RELAYOUT_HINT_AUTO = 0,
  /**
   * The source was just written and the destination is read next.
   */
  RELAYOUT_HINT_HOT = 1,
  /**
   * The source is in memory.
   */
  RELAYOUT_HINT_COLD = 2,
};

/**
 * A planned move. Any number of threads may run it at the same time.
 */
struct relayout_plan;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Permutes a dense row-major tensor: axis `i` of the destination is axis `perm[i]` of the source.
 *
 * `shape` is the source's and has `rank` extents, as `perm` has. `threads` counts the caller; 0 is as many as there are
 * processors. Whether data is in the caches is guessed from the size. Answers 0, or another `enum relayout_status`; then
 * nothing was written.
 *
 * # Safety
 * `shape` and `perm` are valid for `rank` numbers, `src` for reading and `dst` for writing as many bytes as the tensor has.
 */
int permute(const void *src,
            void *dst,
            size_t elem_size,
            size_t rank,
            const size_t *shape,
            const size_t *perm,
            size_t threads);

/**
 * `permute` for a source that was just written and a destination that is read next: all in the caches.
 *
 * # Safety
 * As for `permute`.
 */
int permute_hot(const void *src,
                void *dst,
                size_t elem_size,
                size_t rank,
                const size_t *shape,
                const size_t *perm,
                size_t threads);

/**
 * `permute` for a source in memory: stores go past the caches.
 *
 * # Safety
 * As for `permute`.
 */
int permute_cold(const void *src,
                 void *dst,
                 size_t elem_size,
                 size_t rank,
                 const size_t *shape,
                 const size_t *perm,
                 size_t threads);

/**
 * Plans a permutation, to be run by `relayout_plan_run` and freed by `relayout_plan_free`. `hint` is an
 * `enum relayout_hint`.
 * Writes the plan to `out` and answers 0, or writes null and answers why not.
 *
 * # Safety
 * `shape` and `perm` are valid for `rank` numbers, `out` for writing a pointer.
 */
int relayout_plan_new(size_t elem_size,
                      size_t rank,
                      const size_t *shape,
                      const size_t *perm,
                      size_t threads,
                      int hint,
                      struct relayout_plan **out);

/**
 * Plans a move from one layout to another of a tensor with the logical extents `shape`, which are in the order of the letters:
 * from `NCHW` to `NHWC` they are N, C, H, W. Layouts are spelled as oneDNN, TVM and MegEngine do, or digit by digit:
 * `NCHW16c`, `nChw16c`, `aBcd16b`, `NCHW4`, `OIHW16i16o`, `N C/16 H W C%16`.
 *
 * A last block that is not full is padded: with zeros in the destination, ignored in the source. So the two buffers differ in
 * size: `relayout_plan_source_bytes` and `relayout_plan_bytes`. `threads` and `hint` are those of `relayout_plan_new`.
 * Writes the plan to `out` and answers 0, or writes null and answers why not.
 *
 * # Safety
 * `shape` is valid for `rank` numbers, `from` and `to` are strings that end with a 0, `out` is valid for writing a pointer.
 */
int relayout_plan_new_layouts(size_t elem_size,
                              size_t rank,
                              const size_t *shape,
                              const char *from,
                              const char *to,
                              size_t threads,
                              int hint,
                              struct relayout_plan **out);

/**
 * Bytes that a plan reads, padding included; 0 for null.
 *
 * # Safety
 * `plan` is null or from `relayout_plan_new` or `relayout_plan_new_layouts` and not freed.
 */
size_t relayout_plan_source_bytes(const struct relayout_plan *plan);

/**
 * Bytes that a plan writes, padding included, which for a permutation is what it reads; 0 for null.
 *
 * # Safety
 * `plan` is null or from `relayout_plan_new` or `relayout_plan_new_layouts` and not freed.
 */
size_t relayout_plan_bytes(const struct relayout_plan *plan);

/**
 * Runs a plan.
 *
 * # Safety
 * `plan` is from `relayout_plan_new` or `relayout_plan_new_layouts` and not freed; `src` is valid for
 * `relayout_plan_source_bytes`, `dst` for `relayout_plan_bytes`.
 */
int relayout_plan_run(const struct relayout_plan *plan,
                      const void *src,
                      void *dst);

/**
 * Frees a plan; null is fine.
 *
 * # Safety
 * `plan` is null, or from `relayout_plan_new` or `relayout_plan_new_layouts`, not freed and not in use.
 */
void relayout_plan_free(struct relayout_plan *plan);

/**
 * What a status means, in English; never null, never to be freed.
 */
const char *relayout_status_text(int status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RELAYOUT_H */
