/* C library of relayout: the layout optimizer for ONNX models, and permute kernels.
 *
 * Made by cbindgen from the sources of relayout-capi; do not edit. docs/c.md has examples and says how to link.
 *
 * Who frees what: each function whose answer has to be freed says by which function. What a result says (its bytes, its texts)
 * belongs to the result. Nothing else is to be freed, and nothing that is passed in is kept, unless the function says so.
 *
 * Errors: functions that can fail answer an `enum relayout_status`, 0 if all went well. Null where no null may be, and lengths that
 * can't be, are errors. `Safety` says what can't be checked, and is the caller's to see to.
 */

#ifndef RELAYOUT_H
#define RELAYOUT_H

#include <stddef.h>
#include <stdint.h>

/* Version that a program is compiled for; `relayout_version` is that of the library that is loaded. */
#define RELAYOUT_VERSION "0.1.0"
#define RELAYOUT_VERSION_MAJOR 0
#define RELAYOUT_VERSION_MINOR 1
#define RELAYOUT_VERSION_PATCH 0
#define RELAYOUT_VERSION_NUMBER (1000000 * RELAYOUT_VERSION_MAJOR + 1000 * RELAYOUT_VERSION_MINOR + RELAYOUT_VERSION_PATCH)

/**
 * What a call answers: 0, or why nothing was done. Later versions may have more.
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
  /**
   * The options can't be read, or ask for what can't be had.
   */
  RELAYOUT_STATUS_BAD_OPTIONS = 9,
  /**
   * The model can't be read, or can't be optimized for this target.
   */
  RELAYOUT_STATUS_BAD_MODEL = 10,
  /**
   * The system can't read or write a file, or a caller's function can't give external data.
   */
  RELAYOUT_STATUS_FILE = 11,
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
 * What a function answers that gives external data.
 */
enum relayout_read {
  /**
   * The data was given.
   */
  RELAYOUT_READ_GIVEN = 0,
  /**
   * There is no such data. The model can be audited, but not optimized.
   */
  RELAYOUT_READ_MISSING = 1,
  /**
   * The data can't be read. Any other number means the same.
   */
  RELAYOUT_READ_FAILED = 2,
};

/**
 * Options of the optimizer. Any number of threads may use them at the same time, while none changes them.
 */
struct relayout_options;

/**
 * A planned move. Any number of threads may run it at the same time.
 */
struct relayout_plan;

/**
 * What the optimizer made.
 */
struct relayout_result;

/**
 * Gives all bytes of the external data of a model that `location` names, by writing where they are to `bytes` and how many they are to
 * `len`. Answers an `enum relayout_read`.
 *
 * `context` is what was given to `relayout_options_set_read`. `location` is spelled as in the model, relative to the model, without
 * `..`, and ends with a 0; it is gone when the function returns. Every location is asked for once in a call. The bytes stay the
 * caller's: they have to be there, and unchanged, until the function of the library that asked for them returns. The function must
 * not throw an exception or jump out.
 */
typedef int (*relayout_read_fn)(void *context, const char *location, const void **bytes, size_t *len);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Frees a text that a function of this library gave to the caller; null is fine.
 *
 * # Safety
 * `text` is null, or was given by a function of this library that says to free it so, and is not used again.
 */
void relayout_text_free(char *text);

/**
 * Lists the built-in targets: a JSON array of objects with `name`, `about`, `layouts`, `dialect` and `costs`, each a text.
 *
 * Writes the list to `json`, to be freed by `relayout_text_free`, and answers 0; or writes null and answers another
 * `enum relayout_status`. If `error` is not null, a call that fails writes a sentence there, to be freed by `relayout_text_free`, and
 * one that succeeds writes null.
 *
 * # Safety
 * `json` is valid for writing a pointer, `error` as well or null.
 */
int relayout_targets(char **json,
                     char **error);

/**
 * Reads options. `json` is an object; null means the defaults. All fields are optional, and one that is unknown is an error. They are
 * called as the options of the command line, with `_` in place of `-`, and mean the same:
 *
 * - `target`: name of a built-in target, `"onnx"` by default; `relayout_targets` lists them
 * - `target_file`, `target_text`: a target of your own, in the form of the files of `docs/targets.md`, in place of `target`
 * - `provider`, for target `ort-nhwc`, which it implies: the execution provider of ONNX Runtime, `"qnn"` by default
 * - `allow`, for provider `"cuda"`: `"com.microsoft"` lets the result have ops of that domain that it runs; `relayout.runs_on` in the
 *   metadata names it if no other one runs them
 * - `for_this_machine`: true chooses target, block, machine, threads and provider by what is there; what else is said stays, and field
 *   `for_this_machine` of the report says what was chosen and why. What the library can't see say with `runtime`, the version of your
 *   ONNX Runtime, without which it chooses `"onnx"`, and `session_providers`, the providers of your sessions:
 *   `["CUDAExecutionProvider"]`
 * - `runtime`: the ONNX Runtime that will run the model, `"onnxruntime"`, `"onnxruntime-1.28"` or, for target `ort-cpu`, `"1.28"`. Target
 *   `onnx` is priced by what its CPU session makes of the file then, and takes `block`, `machine`, `costs` and `threads`. Without a version a
 *   model for `ort-cpu` may have what only newer releases run, and `relayout.needs` in the metadata then says which
 * - `block`, for target `ort-cpu`: channels of a block, 16 for hosts with AVX-512 and 8 for others; by default that of this machine
 * - `guard`, for target `ort-cpu`: false leaves out the guard that makes a model fail on hosts of another block, where it computes
 *   wrong numbers
 * - `machine`, for target `ort-cpu`: the kind of machine that the model will run on, `"avx512-server"`, `"avx512-desktop"`,
 *   `"avx2-desktop"` or `"avx2-laptop"`: its blocks, and the built-in table of its costs
 * - `costs`, for targets `ort-cpu`, `ort-nhwc` and `cuda-tensorcore`: a file with a table of costs that `relayout calibrate` wrote
 * - `threads`, for target `ort-cpu`: threads that the model will run on, 1 by default, 0 for as many as the machine has cores; costs on
 *   numbers of threads that were not measured follow from those that were
 * - `dims`: sizes of dims that the inputs leave open, by symbol or as `INPUT.AXIS`: `{"N": 4, "H": "32..512", "x.2": 224}`
 * - `fix_sizes`: true writes the sizes of `dims` into the file, for runtimes that need numbers; the report says where
 * - `numerics`: `"exact"` leaves arithmetic alone, `"reassociate"`, the default, folds scales and shifts into weights
 * - `inputs`, `outputs`: how you feed and take them: `["x:NCHW->NHWC"]`
 * - `free_io`: true leaves the order of all other inputs and outputs to the optimizer
 * - `price_moves`: for how many of the moves that are left the report says what it would take for them to go
 * - `unproved`: what becomes of a result that is not proved to compute what the model computes: `"give-back"`, the default, leaves
 *   what differs for the checker as it was; `"loud"` says UNPROVED in the summary; `"allow"` does not check; `"fail"` is an
 *   error; `"keep-input"` leaves the model as it is. Field `proof` of the report has the verdict
 * - `proof`: a file for a proof that the result computes what the model computes; the command `relayout prove` checks it
 * - `certificate`: a file for a proof of how good the decision is; the command `relayout check-certificate` checks it
 * - `strict`: true makes a rewrite that fails an error; by default what it was about stays as it was, and the report says so
 *
 * Writes the options to `out`, to be freed by `relayout_options_free`, and answers 0; or writes null and answers another
 * `enum relayout_status`. `error` is that of `relayout_targets`.
 *
 * # Safety
 * `json` is a string that ends with a 0, or null; `out` is valid for writing a pointer, `error` as well or null.
 */
int relayout_options_new(const char *json,
                         struct relayout_options **out,
                         char **error);

/**
 * Says where models that come as bytes have their external data from; without a function, or with null, one with external data is
 * an error. Models that are read from a file have it beside them. `context` is passed to the function.
 * Answers 0, or `RELAYOUT_STATUS_NULL` if `options` is null.
 *
 * # Safety
 * `options` is null, or from `relayout_options_new`, not freed and not in use. Until they are freed, or have another function, the
 * function can be called with `context` on any thread that uses the options.
 */
int relayout_options_set_read(struct relayout_options *options,
                              relayout_read_fn read,
                              void *context);

/**
 * Frees options; null is fine.
 *
 * # Safety
 * `options` is null, or from `relayout_options_new`, not freed and not in use.
 */
void relayout_options_free(struct relayout_options *options);

/**
 * Optimizes a model: the `len` bytes of an ONNX file at `model`. `options` may be null, which means the defaults.
 *
 * Writes what was made to `out`, to be freed by `relayout_result_free`, and answers 0; or writes null and answers another
 * `enum relayout_status`. `error` is that of `relayout_targets`. Nothing of what was given is kept: the model can be freed at once.
 *
 * # Safety
 * `model` is valid for reading `len` bytes, which nobody writes to. `options` is null, or from `relayout_options_new` and not freed.
 * `out` is valid for writing a pointer, `error` as well or null.
 */
int relayout_optimize(const void *model,
                      size_t len,
                      const struct relayout_options *options,
                      struct relayout_result **out,
                      char **error);

/**
 * Optimizes the model in the file `from` and writes it to the file `to`, whole or not at all. External data is looked for beside `from`.
 * A result of more than 2 GiB, which does not fit one ONNX file, has external data beside `to`; `relayout_optimize` refuses it.
 *
 * `options`, `out` and `error` are those of `relayout_optimize`; what `out` gets has a report, and no bytes of the model.
 *
 * # Safety
 * `from` and `to` are strings that end with a 0. `options` is null, or from `relayout_options_new` and not freed. `out` is valid for
 * writing a pointer, `error` as well or null.
 */
int relayout_optimize_file(const char *from,
                           const char *to,
                           const struct relayout_options *options,
                           struct relayout_result **out,
                           char **error);

/**
 * Says of a model what its moves cost and what they would have to cost, without changing it: writes a JSON object to `json`, to be
 * freed by `relayout_text_free`. What it holds is the `--json` of the command `relayout audit`.
 *
 * `model`, `len` and `options` are those of `relayout_optimize`; of external data only that is needed which decides about shapes.
 * Answers 0; or writes null and answers another `enum relayout_status`. `error` is that of `relayout_targets`.
 *
 * # Safety
 * As for `relayout_optimize`, with `json` in place of `out`.
 */
int relayout_audit(const void *model,
                   size_t len,
                   const struct relayout_options *options,
                   char **json,
                   char **error);

/**
 * The bytes of the optimized model, a whole ONNX file with all its data; `len` gets how many they are, and may be null. They belong to
 * the result. Null, and 0 bytes, if the result is null or is that of `relayout_optimize_file`.
 *
 * # Safety
 * `result` is null, or from `relayout_optimize` or `relayout_optimize_file` and not freed; `len` is null or valid for writing.
 */
const uint8_t *relayout_result_model(const struct relayout_result *result,
                                     size_t *len);

/**
 * Whether the model changed: 1, or 0 if it did not or `result` is null. The bytes of a model that did not change are those that were
 * given, unless it had external data.
 *
 * # Safety
 * `result` is null, or from `relayout_optimize` or `relayout_optimize_file` and not freed.
 */
int relayout_result_changed(const struct relayout_result *result);

/**
 * The report as a JSON object: what was moved before and after, each move that is left and why, and more. It belongs to the result.
 * Null if `result` is null.
 *
 * # Safety
 * As for `relayout_result_changed`.
 */
const char *relayout_result_report(const struct relayout_result *result);

/**
 * One sentence for people: what was gained, or why nothing was. It belongs to the result. Null if `result` is null.
 *
 * # Safety
 * As for `relayout_result_changed`.
 */
const char *relayout_result_summary(const struct relayout_result *result);

/**
 * The report for people, several lines: also why each move that is left is left. It belongs to the result. Null if `result` is null.
 *
 * # Safety
 * As for `relayout_result_changed`.
 */
const char *relayout_result_explanation(const struct relayout_result *result);

/**
 * Frees a result, its bytes and its texts; null is fine.
 *
 * # Safety
 * `result` is null, or from `relayout_optimize` or `relayout_optimize_file`, not freed and not in use.
 */
void relayout_result_free(struct relayout_result *result);

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
int relayout_permute(const void *src,
                     void *dst,
                     size_t elem_size,
                     size_t rank,
                     const size_t *shape,
                     const size_t *perm,
                     size_t threads);

/**
 * `relayout_permute` for a source that was just written and a destination that is read next: all in the caches.
 *
 * # Safety
 * As for `relayout_permute`.
 */
int relayout_permute_hot(const void *src,
                         void *dst,
                         size_t elem_size,
                         size_t rank,
                         const size_t *shape,
                         const size_t *perm,
                         size_t threads);

/**
 * `relayout_permute` for a source in memory: stores go past the caches.
 *
 * # Safety
 * As for `relayout_permute`.
 */
int relayout_permute_cold(const void *src,
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
 * What a status means, in English. Never null, never to be freed.
 */
const char *relayout_status_text(int status);

/**
 * Version of the library that is loaded, such as `0.1.0`. Never null, never to be freed.
 *
 * `RELAYOUT_VERSION` is the version that a program was compiled for. The two may differ for a shared library. The loader refuses
 * a library with which the program can't work.
 */
const char *relayout_version(void);

/**
 * The same as a number that can be compared, as `RELAYOUT_VERSION_NUMBER` is: 1,000,000 times the major, 1,000 times the minor, and
 * the patch version.
 */
int relayout_version_number(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RELAYOUT_H */
