/* Optimizes a model in memory, writes it to a file and prints the report: optimize MODEL OUT [OPTIONS]
 *
 * OPTIONS is JSON: '{"target": "nhwc", "dims": {"N": 8}}'. */
#include <relayout.h>
#include <stdio.h>
#include <stdlib.h>

/* All bytes of a file, to be freed; null if it can't be read. */
static void *read_file(const char *path, size_t *len) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  char *bytes = NULL;
  long size = -1;
  if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0) {
    *len = (size_t)size;
    bytes = malloc(*len + 1);
  }
  if (bytes != NULL && fread(bytes, 1, *len, file) != *len) {
    free(bytes);
    bytes = NULL;
  }
  fclose(file);
  return bytes;
}

static int write_file(const char *path, const void *bytes, size_t len) {
  FILE *file = fopen(path, "wb");
  if (file == NULL) return 0;
  const int written = fwrite(bytes, 1, len, file) == len;
  return fclose(file) == 0 && written;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s MODEL OUT [OPTIONS]\n", argv[0]);
    return 2;
  }
  size_t len;
  void *model = read_file(argv[1], &len);
  if (model == NULL) {
    perror(argv[1]);
    return 1;
  }

  char *error;
  struct relayout_options *options = NULL;
  struct relayout_result *result = NULL;
  int status = relayout_options_new(argc > 3 ? argv[3] : NULL, &options, &error);
  if (status == RELAYOUT_STATUS_OK) status = relayout_optimize(model, len, options, &result, &error);
  relayout_options_free(options);
  free(model);
  if (status != RELAYOUT_STATUS_OK) {
    fprintf(stderr, "error: %s\n", error);
    relayout_text_free(error);
    return 1;
  }

  size_t out_len;
  const uint8_t *out = relayout_result_model(result, &out_len);
  const int written = write_file(argv[2], out, out_len);
  if (!written) perror(argv[2]);
  fprintf(stderr, "%s\n", relayout_result_summary(result));
  printf("%s\n", relayout_result_report(result));
  relayout_result_free(result);
  return written ? 0 : 1;
}
