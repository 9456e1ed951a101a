/* Uses every function of the header; prints the line of the first failure. */
#include "relayout.h"
#include <stdio.h>
#include <string.h>

#define CHECK(ok)                          \
  do {                                     \
    if (!(ok)) {                           \
      printf("line %d: " #ok "\n", __LINE__); \
      return 1;                            \
    }                                      \
  } while (0)

typedef int (*permute_fn)(const void *, void *, size_t, size_t, const size_t *, const size_t *, size_t);

int main(void) {
  const size_t shape[3] = {2, 3, 4}, perm[3] = {2, 0, 1}, twice[3] = {0, 0, 1}, huge[3] = {(size_t)-1, 2, 2};
  float src[24], dst[24];
  for (int i = 0; i < 24; i++) src[i] = (float)i;
  const permute_fn all[3] = {permute, permute_hot, permute_cold};
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
  CHECK(strcmp(relayout_status_text(RELAYOUT_STATUS_OVERLAP), "source and destination overlap") == 0);
  CHECK(strcmp(relayout_status_text(99), "no such status") == 0);
  return 0;
}
