// Logits of llama.cpp over given tokens.
//   llama_logits MODEL IDS OUT WINDOW BATCH FA TYPE THREADS
// IDS: int32 tokens. OUT: float32 [tokens, vocab]; each window of WINDOW tokens starts from an empty cache and goes
// in batches of BATCH (1: decoding). FA: 0 or 1, flash attention. TYPE: f16 or q8_0, type of the cache.
#include <llama.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 9) return std::fprintf(stderr, "usage: llama_logits MODEL IDS OUT WINDOW BATCH FA TYPE THREADS\n"), 2;
  const int window = std::atoi(argv[4]), batch = std::atoi(argv[5]);
  std::FILE* in = std::fopen(argv[2], "rb");
  std::FILE* out = std::fopen(argv[3], "wb");
  if (in == nullptr || out == nullptr) return std::fprintf(stderr, "llama_logits: cannot open the files\n"), 1;
  std::vector<llama_token> ids;
  for (int32_t id = 0; std::fread(&id, 4, 1, in) == 1;) ids.push_back(id);
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  llama_model* model = llama_model_load_from_file(argv[1], llama_model_default_params());
  if (model == nullptr) return std::fprintf(stderr, "llama_logits: cannot load %s\n", argv[1]), 1;
  const int n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(window);
  params.n_batch = params.n_ubatch = static_cast<uint32_t>(batch);
  params.n_threads = params.n_threads_batch = std::atoi(argv[8]);
  params.flash_attn_type = argv[6][0] == '1' ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.type_k = params.type_v = std::string(argv[7]) == "q8_0" ? GGML_TYPE_Q8_0 : GGML_TYPE_F16;
  llama_context* context = llama_init_from_model(model, params);
  if (context == nullptr) return std::fprintf(stderr, "llama_logits: no context\n"), 1;
  llama_batch rows = llama_batch_init(batch, 0, 1);
  for (size_t begin = 0; begin < ids.size(); begin += static_cast<size_t>(window)) {
    llama_memory_clear(llama_get_memory(context), true);
    const size_t end = std::min(ids.size(), begin + static_cast<size_t>(window));
    for (size_t first = begin; first < end; first += static_cast<size_t>(batch)) {
      rows.n_tokens = static_cast<int32_t>(std::min(end, first + static_cast<size_t>(batch)) - first);
      for (int i = 0; i < rows.n_tokens; ++i) {
        rows.token[i] = ids[first + static_cast<size_t>(i)];
        rows.pos[i] = static_cast<llama_pos>(first - begin) + i;
        rows.n_seq_id[i] = 1;
        rows.seq_id[i][0] = 0;
        rows.logits[i] = 1;
      }
      if (llama_decode(context, rows) != 0) return std::fprintf(stderr, "llama_logits: decode failed\n"), 1;
      for (int i = 0; i < rows.n_tokens; ++i)
        std::fwrite(llama_get_logits_ith(context, i), 4, static_cast<size_t>(n_vocab), out);
    }
  }
  if (std::fclose(out) != 0) return std::fprintf(stderr, "llama_logits: cannot write %s\n", argv[3]), 1;
  llama_batch_free(rows);
  llama_free(context);
  llama_model_free(model);
  return 0;
}
