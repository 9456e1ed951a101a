/* Moves a small image from NCHW to NHWC, and from NCHW to blocks of channels. */
#include <relayout.h>
#include <stdio.h>

int main(void) {
  /* One image, two channels, two rows, three columns. */
  const size_t shape[4] = {1, 2, 2, 3};
  const float image[12] = {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15};

  /* In one call: axis i of the result is axis perm[i] of the source. */
  const size_t perm[4] = {0, 2, 3, 1};
  float nhwc[12];
  int status = relayout_permute(image, nhwc, sizeof(float), 4, shape, perm, 1);
  if (status != RELAYOUT_STATUS_OK) {
    fprintf(stderr, "permute: %s\n", relayout_status_text(status));
    return 1;
  }
  printf("NHWC:");
  for (int i = 0; i < 12; i++) printf(" %g", nhwc[i]);

  /* Planned once, to be run often, by the names of the layouts. The second half of the only block is padding. */
  struct relayout_plan *plan;
  status = relayout_plan_new_layouts(sizeof(float), 4, shape, "NCHW", "NCHW4c", 1, RELAYOUT_HINT_AUTO, &plan);
  if (status != RELAYOUT_STATUS_OK) {
    fprintf(stderr, "plan: %s\n", relayout_status_text(status));
    return 1;
  }
  float blocked[24];
  if (relayout_plan_bytes(plan) == sizeof blocked) status = relayout_plan_run(plan, image, blocked);
  relayout_plan_free(plan);
  printf("\nNCHW4c:");
  for (int i = 0; i < 24; i++) printf(" %g", blocked[i]);
  printf("\n");
  return status;
}
