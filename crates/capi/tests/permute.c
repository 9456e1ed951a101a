/* Uses every function of the header that moves data; prints the line of the first failure. */
#include <relayout.h>
#include <stdio.h>
#include <string.h>

#define CHECK(ok)                          \
  do {                                     \
    if (!(ok)) {                           \
      printf("line %d: %s\n", __LINE__, #ok); \
      return 1;                            \
    }                                      \
  } while (0)

typedef int (*permute_fn)(const void *, void *, size_t, size_t, const size_t *, const size_t *, size_t);

/* Blocks of channels: 5 channels in two blocks of 4, there and back. */
static int layouts(void) {
  enum { N = 2, C = 5, H = 2, W = 3, B = 4 };
  const size_t shape[4] = {N, C, H, W}, short_shape[3] = {N, C, H}, huge[4] = {(size_t)-1, 5, 2, 3};
  short src[N * C * H * W], back[N * C * H * W], blocked[N * 2 * H * W * B];
  for (int i = 0; i < N * C * H * W; i++) src[i] = (short)(i + 1);
  memset(blocked, 0x55, sizeof blocked);
  struct relayout_plan *pack = NULL, *unpack = NULL;
  CHECK(relayout_plan_new_layouts(2, 4, shape, "NCHW", "NCHW4c", 1, RELAYOUT_HINT_AUTO, &pack) == RELAYOUT_STATUS_OK);
  CHECK(relayout_plan_source_bytes(pack) == sizeof src && relayout_plan_bytes(pack) == sizeof blocked);
  CHECK(relayout_plan_run(pack, src, blocked) == RELAYOUT_STATUS_OK);
  for (int n = 0; n < N; n++)
    for (int c = 0; c < 2 * B; c++)
      for (int p = 0; p < H * W; p++) {
        const short want = c < C ? src[(n * C + c) * H * W + p] : 0;
        CHECK(blocked[((n * 2 + c / B) * H * W + p) * B + c % B] == want);
      }
  CHECK(relayout_plan_new_layouts(2, 4, shape, "nChw4c", "nchw", 2, RELAYOUT_HINT_COLD, &unpack) == RELAYOUT_STATUS_OK);
  CHECK(relayout_plan_source_bytes(unpack) == sizeof blocked && relayout_plan_bytes(unpack) == sizeof back);
  CHECK(relayout_plan_run(unpack, blocked, back) == RELAYOUT_STATUS_OK && memcmp(src, back, sizeof src) == 0);
  CHECK(relayout_plan_run(unpack, blocked, (char *)blocked + sizeof blocked - 2) == RELAYOUT_STATUS_OVERLAP);
  CHECK(relayout_plan_run(unpack, NULL, back) == RELAYOUT_STATUS_NULL);
  relayout_plan_free(pack);
  relayout_plan_free(unpack);
  struct relayout_plan *none = NULL;
#define REFUSED(elem, rank, shape, from, to, hint, status) \
  CHECK(relayout_plan_new_layouts(elem, rank, shape, from, to, 1, hint, &none) == status && none == NULL)
  REFUSED(2, 4, shape, "NCHW", "NC?W", 0, RELAYOUT_STATUS_BAD_LAYOUT);
  REFUSED(2, 4, shape, "NCHW", "\xff", 0, RELAYOUT_STATUS_BAD_LAYOUT);
  REFUSED(2, 3, short_shape, "NCHW", "NHWC", 0, RELAYOUT_STATUS_BAD_LAYOUT);
  REFUSED(2, 4, shape, NULL, "NHWC", 0, RELAYOUT_STATUS_NULL);
  REFUSED(2, 4, NULL, "NCHW", "NHWC", 0, RELAYOUT_STATUS_NULL);
  REFUSED(0, 4, shape, "NCHW", "NHWC", 0, RELAYOUT_STATUS_BAD_SIZE);
  REFUSED((size_t)-1, 4, shape, "NCHW", "NHWC", 0, RELAYOUT_STATUS_BAD_SIZE);
  REFUSED(2, 4, huge, "NCHW", "NHWC", 0, RELAYOUT_STATUS_BAD_SIZE);
  REFUSED(2, 4, shape, "NCHW", "NHWC", 9, RELAYOUT_STATUS_BAD_HINT);
  CHECK(relayout_plan_new_layouts(2, 4, shape, "NCHW", "NHWC", 1, 0, NULL) == RELAYOUT_STATUS_NULL);
  CHECK(relayout_plan_source_bytes(NULL) == 0);
  return 0;
}

int main(void) {
  const size_t shape[3] = {2, 3, 4}, perm[3] = {2, 0, 1}, twice[3] = {0, 0, 1}, huge[3] = {(size_t)-1, 2, 2};
  float src[24], dst[24];
  for (int i = 0; i < 24; i++) src[i] = (float)i;
  const permute_fn all[3] = {relayout_permute, relayout_permute_hot, relayout_permute_cold};
  for (int f = 0; f < 3; f++) {
    memset(dst, 0, sizeof dst);
    CHECK(all[f](src, dst, sizeof(float), 3, shape, perm, 1) == RELAYOUT_STATUS_OK);
    for (int k = 0; k < 4; k++)
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) CHECK(dst[(k * 2 + i) * 3 + j] == src[(i * 3 + j) * 4 + k]);
    CHECK(all[f](NULL, dst, 4, 3, shape, perm, 1) == RELAYOUT_STATUS_NULL);
    CHECK(all[f](src, dst, 4, 3, NULL, perm, 1) == RELAYOUT_STATUS_NULL);
    CHECK(all[f](src, dst, 4, 3, shape, twice, 1) == RELAYOUT_STATUS_NOT_A_PERMUTATION);
    CHECK(all[f](src, dst, 4, 3, huge, perm, 1) == RELAYOUT_STATUS_BAD_SIZE);
    CHECK(all[f](src, dst, 0, 3, shape, perm, 1) == RELAYOUT_STATUS_BAD_SIZE);
    CHECK(all[f](src, (char *)src + 8, 4, 3, shape, perm, 1) == RELAYOUT_STATUS_OVERLAP);
    CHECK(all[f](src, dst, 4, 0, NULL, NULL, 1) == RELAYOUT_STATUS_OK);
  }
  struct relayout_plan *plan = NULL;
  CHECK(relayout_plan_new(4, 3, shape, perm, 2, 7, &plan) == RELAYOUT_STATUS_BAD_HINT && plan == NULL);
  CHECK(relayout_plan_new(4, 3, shape, perm, 2, RELAYOUT_HINT_HOT, NULL) == RELAYOUT_STATUS_NULL);
  CHECK(relayout_plan_new(4, 3, shape, perm, 2, RELAYOUT_HINT_COLD, &plan) == RELAYOUT_STATUS_OK);
  CHECK(relayout_plan_bytes(plan) == sizeof src && relayout_plan_bytes(NULL) == 0);
  memset(dst, 0, sizeof dst);
  CHECK(relayout_plan_run(plan, src, dst) == RELAYOUT_STATUS_OK && dst[1] == src[4]);
  CHECK(relayout_plan_run(NULL, src, dst) == RELAYOUT_STATUS_NULL);
  relayout_plan_free(plan);
  relayout_plan_free(NULL);
  if (layouts() != 0) return 1;
  CHECK(strcmp(relayout_status_text(RELAYOUT_STATUS_OVERLAP), "source and destination overlap") == 0);
  CHECK(strcmp(relayout_status_text(99), "no such status") == 0);
  for (int status = 0; status <= RELAYOUT_STATUS_FILE; status++)
    CHECK(strcmp(relayout_status_text(status), "no such status") != 0);
  CHECK(strcmp(relayout_version(), RELAYOUT_VERSION) == 0 && relayout_version_number() == RELAYOUT_VERSION_NUMBER);
  return 0;
}
