/* Uses every function of the header that optimizes: optimize MODEL EXTERNAL-MODEL ITS-DATA SCRATCH-FOLDER. Prints the line of the first
 * failure. */
#include <relayout.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(ok)                             \
  do {                                        \
    if (!(ok)) {                              \
      printf("line %d: %s\n", __LINE__, #ok); \
      exit(1);                                \
    }                                         \
  } while (0)

/* A call that fails with this status and a sentence that has these words. */
#define FAILS(call, wanted, words)                                                   \
  do {                                                                               \
    char *error = NULL;                                                              \
    const int status = call;                                                         \
    if (status != wanted || error == NULL || strstr(error, words) == NULL) {         \
      printf("line %d: %d: %s\n", __LINE__, status, error == NULL ? "null" : error); \
      exit(1);                                                                       \
    }                                                                                \
    relayout_text_free(error);                                                       \
  } while (0)

/* A file in memory. `asked` counts how often it was given. */
struct file {
  char *bytes;
  size_t len;
  int asked;
};

static struct file load(const char *path) {
  struct file file = {NULL, 0, 0};
  FILE *stream = fopen(path, "rb");
  CHECK(stream != NULL && fseek(stream, 0, SEEK_END) == 0);
  file.len = (size_t)ftell(stream);
  rewind(stream);
  /* As large as it has to be, so that a read past its end is one past the allocation. */
  file.bytes = malloc(file.len);
  CHECK(file.bytes != NULL && fread(file.bytes, 1, file.len, stream) == file.len);
  fclose(stream);
  return file;
}

static int give(void *context, const char *location, const void **bytes, size_t *len) {
  struct file *file = context;
  if (strcmp(location, "external.bin") != 0) return RELAYOUT_READ_FAILED;
  file->asked++;
  *bytes = file->bytes;
  *len = file->len;
  return RELAYOUT_READ_GIVEN;
}

static int miss(void *context, const char *location, const void **bytes, size_t *len) {
  (void)context, (void)location, (void)bytes, (void)len;
  return RELAYOUT_READ_MISSING;
}

static int fail(void *context, const char *location, const void **bytes, size_t *len) {
  (void)context, (void)location, (void)bytes, (void)len;
  return 77;
}

static int give_nothing(void *context, const char *location, const void **bytes, size_t *len) {
  (void)context, (void)location, (void)bytes;
  *len = 64;
  return RELAYOUT_READ_GIVEN;
}

static int give_too_much(void *context, const char *location, const void **bytes, size_t *len) {
  (void)location;
  *bytes = context;
  *len = (size_t)-1;
  return RELAYOUT_READ_GIVEN;
}

static int give_too_little(void *context, const char *location, const void **bytes, size_t *len) {
  (void)location;
  *bytes = ((struct file *)context)->bytes;
  *len = 10;
  return RELAYOUT_READ_GIVEN;
}

/* A model without external data, with the defaults and with options. */
static void bytes(const struct file *model) {
  struct relayout_result *result = NULL, *again = NULL, *other = NULL;
  char *error = (char *)model;
  CHECK(relayout_optimize(model->bytes, model->len, NULL, &result, &error) == RELAYOUT_STATUS_OK && error == NULL);
  CHECK(relayout_result_changed(result) == 1);
  CHECK(strncmp(relayout_result_report(result), "{\"schema\":", 10) == 0);
  CHECK(strstr(relayout_result_report(result), "\"target\":\"onnx\"") != NULL);
  CHECK(strncmp(relayout_result_summary(result), "moves ", 6) == 0);
  const char *summary = relayout_result_summary(result);
  CHECK(strncmp(relayout_result_explanation(result), summary, strcspn(summary, ";")) == 0);
  CHECK(strstr(summary, "; proved") != NULL && strstr(relayout_result_explanation(result), "\nproved") != NULL);
  size_t len = 0;
  const uint8_t *out = relayout_result_model(result, &len);
  CHECK(out != NULL && len > 0 && relayout_result_model(result, NULL) == out);
  /* A second time nothing changes, and the bytes are the same. */
  CHECK(relayout_optimize(out, len, NULL, &again, NULL) == RELAYOUT_STATUS_OK && relayout_result_changed(again) == 0);
  size_t len_again = 0;
  CHECK(memcmp(relayout_result_model(again, &len_again), out, len) == 0 && len_again == len);

  struct relayout_options *options = NULL;
  CHECK(relayout_options_new("{\"target\": \"nhwc\", \"free_io\": true}", &options, &error) == 0 && error == NULL);
  CHECK(relayout_optimize(model->bytes, model->len, options, &other, &error) == RELAYOUT_STATUS_OK);
  CHECK(strstr(relayout_result_report(other), "\"target\":\"nhwc\"") != NULL);
  relayout_options_free(options);
  relayout_result_free(result);
  relayout_result_free(again);
  relayout_result_free(other);
}

static void lists(const struct file *model) {
  char *json = NULL, *error = NULL;
  CHECK(relayout_targets(&json, &error) == RELAYOUT_STATUS_OK && error == NULL);
  CHECK(json[0] == '[' && strstr(json, "\"name\":\"ort-cpu\"") != NULL);
  relayout_text_free(json);
  CHECK(relayout_audit(model->bytes, model->len, NULL, &json, NULL) == RELAYOUT_STATUS_OK);
  CHECK(json[0] == '{' && strstr(json, "\"floor_ns\":") != NULL);
  relayout_text_free(json);
}

static void refusals(const struct file *model, const char *folder) {
  struct relayout_options *options = (struct relayout_options *)model;
  struct relayout_result *result = (struct relayout_result *)model;
  char *json = (char *)model;
  FAILS(relayout_options_new("{\"target\": \"tpu\"}", &options, &error), RELAYOUT_STATUS_BAD_OPTIONS, "`tpu`");
  CHECK(options == NULL);
  FAILS(relayout_options_new("\xff", &options, &error), RELAYOUT_STATUS_BAD_OPTIONS, "UTF-8");
  FAILS(relayout_options_new("{}", NULL, &error), RELAYOUT_STATUS_NULL, "`out`");
  CHECK(relayout_options_set_read(NULL, give, NULL) == RELAYOUT_STATUS_NULL);
  FAILS(relayout_targets(NULL, &error), RELAYOUT_STATUS_NULL, "`json`");

  FAILS(relayout_optimize(NULL, 4, NULL, &result, &error), RELAYOUT_STATUS_NULL, "`model`");
  CHECK(result == NULL);
  FAILS(relayout_optimize(model->bytes, model->len, NULL, NULL, &error), RELAYOUT_STATUS_NULL, "`out`");
  FAILS(relayout_optimize(model->bytes, (size_t)-1, NULL, &result, &error), RELAYOUT_STATUS_BAD_SIZE, "`model`");
  FAILS(relayout_optimize(model->bytes, 0, NULL, &result, &error), RELAYOUT_STATUS_BAD_MODEL, "empty");
  FAILS(relayout_optimize("no model", 8, NULL, &result, &error), RELAYOUT_STATUS_BAD_MODEL, "not an ONNX model");
  FAILS(relayout_optimize(model->bytes, model->len / 2, NULL, &result, &error), RELAYOUT_STATUS_BAD_MODEL, "cut off");
  CHECK(relayout_optimize(model->bytes, model->len / 2, NULL, &result, NULL) == RELAYOUT_STATUS_BAD_MODEL && result == NULL);
  CHECK(relayout_options_new("{\"inputs\": [\"nobody:NCHW->NHWC\"]}", &options, NULL) == RELAYOUT_STATUS_OK);
  FAILS(relayout_optimize(model->bytes, model->len, options, &result, &error), RELAYOUT_STATUS_BAD_OPTIONS, "nobody");
  relayout_options_free(options);

  FAILS(relayout_audit("no model", 8, NULL, &json, &error), RELAYOUT_STATUS_BAD_MODEL, "not an ONNX model");
  CHECK(json == NULL);
  FAILS(relayout_audit(model->bytes, model->len, NULL, NULL, &error), RELAYOUT_STATUS_NULL, "`json`");
  FAILS(relayout_optimize_file(NULL, "out", NULL, &result, &error), RELAYOUT_STATUS_NULL, "`from`");
  FAILS(relayout_optimize_file(folder, NULL, NULL, &result, &error), RELAYOUT_STATUS_NULL, "`to`");
  FAILS(relayout_optimize_file("no-such-file", "out", NULL, &result, &error), RELAYOUT_STATUS_FILE, "no-such-file");
  FAILS(relayout_optimize_file(folder, "out", NULL, &result, &error), RELAYOUT_STATUS_BAD_MODEL, "directory");

  size_t len = 1;
  CHECK(relayout_result_model(NULL, &len) == NULL && len == 0 && relayout_result_changed(NULL) == 0);
  CHECK(relayout_result_report(NULL) == NULL && relayout_result_summary(NULL) == NULL);
  CHECK(relayout_result_explanation(NULL) == NULL);
  relayout_options_free(NULL);
  relayout_result_free(NULL);
  relayout_text_free(NULL);
}

/* Data that the program gives, and what it may get wrong. */
static void external(const struct file *model, struct file *data) {
  struct relayout_result *result = NULL;
  struct relayout_options *options = NULL;
  char *json = NULL;
  FAILS(relayout_optimize(model->bytes, model->len, NULL, &result, &error), RELAYOUT_STATUS_BAD_MODEL, "bias");
  CHECK(relayout_options_new(NULL, &options, NULL) == RELAYOUT_STATUS_OK);
  CHECK(relayout_options_set_read(options, give, data) == RELAYOUT_STATUS_OK);
  CHECK(relayout_optimize(model->bytes, model->len, options, &result, NULL) == RELAYOUT_STATUS_OK && data->asked == 1);
  /* The data is in the result. */
  size_t len = 0;
  CHECK(relayout_result_model(result, &len) != NULL && len > data->len);
  relayout_result_free(result);

#define BADLY(read, status, words)                                                  \
  do {                                                                              \
    CHECK(relayout_options_set_read(options, read, data) == RELAYOUT_STATUS_OK);    \
    FAILS(relayout_optimize(model->bytes, model->len, options, &result, &error), status, words); \
    CHECK(result == NULL);                                                          \
  } while (0)
  BADLY(miss, RELAYOUT_STATUS_BAD_MODEL, "bias");
  CHECK(relayout_audit(model->bytes, model->len, options, &json, NULL) == RELAYOUT_STATUS_OK);
  relayout_text_free(json);
  BADLY(fail, RELAYOUT_STATUS_FILE, "77");
  BADLY(give_nothing, RELAYOUT_STATUS_FILE, "64 bytes");
  BADLY(give_too_much, RELAYOUT_STATUS_FILE, "bytes");
  BADLY(give_too_little, RELAYOUT_STATUS_BAD_MODEL, "bias");
  BADLY(NULL, RELAYOUT_STATUS_BAD_MODEL, "bias");
  relayout_options_free(options);
}

/* From file to file; the external data is found beside the first. */
static void files(const char *from, const char *folder) {
  char to[4096];
  snprintf(to, sizeof to, "%s/out.onnx", folder);
  struct relayout_result *result = NULL;
  char *error = NULL;
  CHECK(relayout_optimize_file(from, to, NULL, &result, &error) == RELAYOUT_STATUS_OK && error == NULL);
  size_t len = 1;
  CHECK(relayout_result_model(result, &len) == NULL && len == 0);
  CHECK(strncmp(relayout_result_report(result), "{\"schema\":", 10) == 0);
  relayout_result_free(result);
  CHECK(relayout_optimize_file(to, to, NULL, &result, &error) == RELAYOUT_STATUS_OK);
  CHECK(relayout_result_changed(result) == 0);
  relayout_result_free(result);
}

int main(int argc, char **argv) {
  CHECK(argc == 5);
  struct file model = load(argv[1]), external_model = load(argv[2]), data = load(argv[3]);
  bytes(&model);
  lists(&model);
  refusals(&model, argv[4]);
  external(&external_model, &data);
  files(argv[2], argv[4]);
  free(model.bytes);
  free(external_model.bytes);
  free(data.bytes);
  return 0;
}
