/* C ABI of the Rust library "hftext": Hugging Face tokenizers and chat templates.
 *
 * Handles are immutable and may be shared between threads. Text is UTF-8 without a final NUL.
 * Functions that return int give HFTEXT_OK or another code; then `error` holds a text, to be freed
 * like any other. Outputs are written only on HFTEXT_OK. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  HFTEXT_OK = 0,
  HFTEXT_ERROR = 1,
  HFTEXT_RAISED = 2,  /* The template called raise_exception(); `error` is its text. */
  HFTEXT_PANICKED = 3 /* A bug of the library. */
};

typedef struct {
  char* data;
  size_t size;
} hftext_text;

typedef struct {
  uint32_t* data;
  size_t size;
} hftext_ids;

/* `size` pairs of byte offsets, [begin, end). */
typedef struct {
  size_t (*data)[2];
  size_t size;
} hftext_ranges;

typedef struct hftext_tokenizer hftext_tokenizer;
typedef struct hftext_template hftext_template;

/* Free what a call has filled in, and clear it. Empty ones are fine. */
void hftext_text_free(hftext_text* text);
void hftext_ids_free(hftext_ids* ids);
void hftext_ranges_free(hftext_ranges* ranges);

/* Panics inside of the library and returns HFTEXT_PANICKED. */
int hftext_panic_for_test(hftext_text* error);

/* The text of a tokenizer.json; its truncation and padding are switched off. */
int hftext_tokenizer_from_json(const char* json, size_t size, hftext_tokenizer** out,
                               hftext_text* error);
/* {"model", "pre", "tokens", "merges", "token_types", "bos_id"}: `tokenizer.ggml.*` of a GGUF
 * file; `bos_id` is null unless special tokens include BOS. */
int hftext_tokenizer_from_gguf(const char* json, size_t size, hftext_tokenizer** out,
                               hftext_text* error);
void hftext_tokenizer_free(hftext_tokenizer* tokenizer);

/* `offsets` may be null. They are bytes of `text`; tokens that share one character get all of it.
 */
int hftext_tokenizer_encode(const hftext_tokenizer* tokenizer, const char* text, size_t size,
                            int add_special_tokens, hftext_ids* ids, hftext_ranges* offsets,
                            hftext_text* error);
int hftext_tokenizer_decode(const hftext_tokenizer* tokenizer, const uint32_t* ids, size_t count,
                            int skip_special_tokens, hftext_text* out, hftext_text* error);
/* -1 if there is no such token. */
int64_t hftext_tokenizer_token_to_id(const hftext_tokenizer* tokenizer, const char* token,
                                     size_t size);
/* HFTEXT_ERROR if there is no such id. */
int hftext_tokenizer_id_to_token(const hftext_tokenizer* tokenizer, uint32_t id, hftext_text* out);
size_t hftext_tokenizer_vocab_size(const hftext_tokenizer* tokenizer);
/* Ids of added tokens with `special: true`, sorted. */
int hftext_tokenizer_special_ids(const hftext_tokenizer* tokenizer, hftext_ids* out,
                                 hftext_text* error);
int hftext_tokenizer_to_json(const hftext_tokenizer* tokenizer, hftext_text* out,
                             hftext_text* error);

int hftext_template_new(const char* source, size_t size, hftext_template** out, hftext_text* error);
void hftext_template_free(hftext_template* chat_template);
int hftext_template_has_generation(const hftext_template* chat_template);
/* `variables_json`: one object. `unix_seconds`: what strftime_now() shows; negative: the clock.
 * `spans`: what was inside of {% generation %} blocks. */
int hftext_template_render(const hftext_template* chat_template, const char* variables_json,
                           size_t size, int64_t unix_seconds, hftext_text* text,
                           hftext_ranges* spans, hftext_text* error);

#ifdef __cplusplus
}
#endif
