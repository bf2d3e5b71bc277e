// Every layer from stored streams, in all modes: values within the bounds of docs/numerics.md, choices equal.
#include <algorithm>
#include <cmath>
#include <map>

#include "golden.h"
#include "kernels/compressor.h"
#include "kernels/row_codec.h"

namespace gannet::deepseek_v41::test {
namespace {

std::vector<float> floats_of(const View& x) {
  std::vector<float> out;
  const int64_t n = x.elements();
  for (int64_t i = 0; i < n; ++i) out.push_back(x.dtype == DType::f32 ? x.as<float>()[i] : to_f32(x.as<bf16>()[i]));
  return out;
}

// Feeds each layer the stored output of the one before, and compares what it gives.
class LayerProbe final : public Probe {
 public:
  LayerProbe(const Golden& golden, const Tensors& want) : c_(golden.config), want_(want) {}

  void before_layer(int32_t layer, View h, View pre) override {
    if (layer > 0) set(layer - 1, h, pre);
  }
  void after_layer(int32_t layer, View h, View pre) override {
    compare("streams", name(layer, "streams"), floats_of(h));
    compare("pre_mix", name(layer, "pre_mix"), floats_of(pre));
    if (layer == c_.n_layers - 1) set(layer, h, pre);  // so that the head starts from stored streams too
  }
  void value(int32_t layer, std::string_view what, View value) override {
    if (what == "attention") compare("attn_out", name(layer, "attn_out"), floats_of(value));
    if (what == "moe") compare("ffn_out", name(layer, "ffn_out"), floats_of(value));
    if (what == "engram") compare("engram_out", name(layer, "engram_out"), floats_of(value));
    if (what == "route_experts") order_ = same_experts(layer, value);
    if (what == "route_weights") same_weights(layer, value);
    if (what == "n_selected") n_selected_.assign(value.as<int32_t>(), value.as<int32_t>() + value.dim(0));
    if (what == "selected") same_rows(layer, "selected", value, n_selected_);
    if (what == "n_candidates") n_selected_.assign(value.as<int32_t>(), value.as<int32_t>() + value.dim(0));
    if (what == "candidates") same_rows(layer, "candidates", value, n_selected_);
  }

  // Largest and root mean square gap against the bounds of its kind.
  void compare(const std::string& kind, const std::string& tensor, const std::vector<float>& got) {
    const std::vector<float> want = want_.floats(tensor), bound = want_.floats("bounds." + kind);
    ASSERT_EQ(got.size(), want.size()) << tensor;
    double worst = 0, squares = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double gap = std::fabs(double{got[i]} - double{want[i]});
      worst = gap <= worst ? worst : gap;  // NaN sticks
      squares += gap * gap;
    }
    const double rms = std::sqrt(squares / static_cast<double>(got.size()));
    EXPECT_LE(worst, bound[0]) << tensor;
    EXPECT_LE(rms, bound[1]) << tensor;
    auto& [share, n] = shares_[kind];
    share = std::max(share, worst / double{bound[0]});
    ++n;
  }
  // Rows of a cache: at most bound[1] values differ, none by more than bound[0].
  void compare_codes(const std::string& kind, const std::string& tensor, const std::vector<float>& got,
                     size_t first) {
    const std::vector<float> want = want_.floats(tensor), bound = want_.floats("bounds." + kind);
    ASSERT_LE(first + got.size(), want.size()) << tensor;
    int flips = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] == want[first + i]) continue;
      ++flips;
      EXPECT_LE(std::fabs(got[i] - want[first + i]), bound[0]) << tensor << " " << i;
    }
    EXPECT_LE(static_cast<float>(flips), bound[1]) << tensor;
    flips_[kind] += flips;
  }
  void report(const std::string& title) const {
    std::printf("  %s: largest gap as share of its bound:", title.c_str());
    for (const auto& [kind, share] : shares_) std::printf(" %s %.2f", kind.c_str(), share.first);
    std::printf("; codes that differ:");
    for (const auto& [kind, n] : flips_) std::printf(" %s %d", kind.c_str(), n);
    std::printf("; choices compared %d\n", n_choices_);
  }
  int n_choices() const { return n_choices_; }

 private:
  static std::string name(int32_t layer, const char* what) {
    return "layers." + std::to_string(layer) + "." + what;
  }
  void set(int32_t layer, View h, View pre) const {
    put(want_.floats(name(layer, "streams")), h);
    put(want_.floats(name(layer, "pre_mix")), pre);
  }
  static void put(const std::vector<float>& values, View to) {
    ASSERT_EQ(static_cast<int64_t>(values.size()), to.elements());
    for (size_t i = 0; i < values.size(); ++i) {
      if (to.dtype == DType::f32)
        to.as<float>()[i] = values[i];
      else
        to.as<bf16>()[i] = to_bf16(values[i]);
    }
  }
  // Places of the chosen experts, by rising id, for the weights that follow.
  std::vector<std::vector<int32_t>> same_experts(int32_t layer, const View& value) {
    const std::vector<int32_t> want = want_.ints(name(layer, "ffn.route_ids"));
    const auto T = static_cast<size_t>(value.dim(0)), K = static_cast<size_t>(value.dim(1));
    std::vector<std::vector<int32_t>> places;
    for (size_t t = 0; t < T; ++t) {
      std::vector<int32_t> mine(value.as<int32_t>() + t * K, value.as<int32_t>() + (t + 1) * K);
      std::vector<int32_t> theirs(want.begin() + static_cast<int64_t>(t * K),
                                  want.begin() + static_cast<int64_t>((t + 1) * K));
      std::vector<int32_t> place;  // where my k-th expert is in theirs
      for (const int32_t e : mine)
        place.push_back(static_cast<int32_t>(std::find(theirs.begin(), theirs.end(), e) - theirs.begin()));
      for (const int32_t p : place)
        EXPECT_LT(static_cast<size_t>(p), K) << "experts of layer " << layer << ", row " << t;
      places.push_back(place);
      ++n_choices_;
    }
    return places;
  }
  void same_weights(int32_t layer, const View& value) {
    const auto T = static_cast<size_t>(value.dim(0)), K = static_cast<size_t>(value.dim(1));
    std::vector<float> mine(T * K, 0.0f);
    for (size_t t = 0; t < T; ++t)
      for (size_t k = 0; k < K; ++k) {
        const auto place = static_cast<size_t>(order_[t][k]);
        if (place < K) mine[t * K + place] = value.as<float>()[t * K + k];
      }
    compare("ffn.route_weights", name(layer, "ffn.route_weights"), mine);
  }
  void same_rows(int32_t layer, const char* what, const View& value, const std::vector<int32_t>& n) {
    const std::vector<int32_t> want = want_.ints(name(layer, what));
    const auto width = static_cast<size_t>(value.dim(1));
    for (size_t t = 0; t < n.size(); ++t) {
      std::vector<int32_t> mine(width, -1);
      std::copy_n(value.as<int32_t>() + t * width, n[t], mine.begin());
      const std::vector<int32_t> theirs(want.begin() + static_cast<int64_t>(t * width),
                                        want.begin() + static_cast<int64_t>((t + 1) * width));
      EXPECT_EQ(mine, theirs) << what << " of layer " << layer << ", row " << t;
      ++n_choices_;
    }
  }

  const Config& c_;
  const Tensors& want_;
  std::vector<std::vector<int32_t>> order_;
  std::vector<int32_t> n_selected_;
  std::map<std::string, std::pair<double, int>> shares_;
  std::map<std::string, int> flips_;
  int n_choices_ = 0;
};

struct Mode {
  const char* file;
  Numerics numerics;
};
constexpr Mode kModes[] = {
    {"float", Numerics::float32}, {"precise", Numerics::precise}, {"reference", Numerics::reference}};
const char* const kConfigs[] = {"roles", "plain", "mixed", "wide"};

class LayerGolden : public ::testing::TestWithParam<std::tuple<const char*, Mode>> {};

void compare_cache(const Golden& golden, const DeepseekV41& model, Runner& run, int32_t n, LayerProbe& probe) {
  const Config& c = golden.config;
  const int32_t slot = 0;
  for (int32_t l = 0; l < c.n_layers; ++l) {
    const std::string at = "layers." + std::to_string(l) + ".";
    const auto layer = static_cast<size_t>(l);
    const RingRows ring = run.store().ring(model.cache_map().window[layer], &slot);
    std::vector<float> row(static_cast<size_t>(c.head_dim)), all;
    for (int32_t pos = std::max(0, n - ring.capacity); pos < n; ++pos) {
      const std::byte* base = ring.base;
      const int64_t i = pos % ring.capacity;
      decode_row(ring.format, base + ring.codes_offset + i * row_code_bytes(ring.format, ring.width),
                 base + ring.scales_offset + i * row_scale_bytes(ring.format, ring.width), ring.width, row.data());
      all.insert(all.end(), row.begin(), row.end());
    }
    const auto skipped = static_cast<size_t>(std::max(0, n - ring.capacity)) * static_cast<size_t>(c.head_dim);
    probe.compare_codes("window_rows", at + "window_rows", all, skipped);
    if (!c.is_kv_source(l)) continue;
    for (const auto& [kind, plane_idx] : {std::pair{"rows", model.cache_map().compressed[layer]},
                                          std::pair{"index_keys", model.cache_map().keys[layer]}}) {
      const PagedRows plane = run.store().plane(plane_idx, run.table(0).data(), 0);
      row.resize(static_cast<size_t>(plane.width));
      all.clear();
      for (int32_t j = 0; j < n / c.ratios[layer]; ++j) {
        const PagedRowBytes from = paged_row(plane, 0, j);
        decode_row(plane.format, from.codes, from.scales, plane.width, row.data());
        all.insert(all.end(), row.begin(), row.end());
      }
      probe.compare_codes(kind, at + kind, all, 0);
      row.resize(static_cast<size_t>(c.head_dim));
    }
  }
}

TEST_P(LayerGolden, EveryLayerFromStoredStreams) {
  const auto [name, mode] = GetParam();
  const Golden golden = Golden::open(name);
  const Tensors want(golden_folder(name) / (std::string("layers-") + mode.file + ".safetensors"));
  const auto model = golden.model(mode.numerics, /*trim=*/false);
  Text text;
  text.tokens = want.ints("ids");
  for (const int32_t flag : want.ints("is_image")) text.is_image.push_back(flag != 0);
  text.embeds = want.floats("image_embeddings");
  const int32_t n = text.size();

  LayerProbe probe(golden, want);
  model->set_probe(&probe);
  Runner run(*model, 1, n, n, 1, 3);
  const Piece piece{0, &text, 0, n, n, n};
  const int64_t taps_width = static_cast<int64_t>(golden.config.dspark.target_layers.size()) * golden.config.hidden;
  std::vector<float> memory(static_cast<size_t>(n * taps_width));
  const View taps(memory.data(), mode.numerics == Numerics::float32 ? DType::f32 : DType::bf16, {n, taps_width});
  const std::vector<float> logits = run.run(std::span(&piece, 1), taps);
  probe.compare("logits", "logits", logits);
  probe.compare("taps", "taps", floats_of(taps));
  compare_cache(golden, *model, run, n, probe);
  EXPECT_GT(probe.n_choices(), n * golden.config.n_layers);
  probe.report(std::string(name) + " " + mode.file);
}

INSTANTIATE_TEST_SUITE_P(Configs, LayerGolden,
                         ::testing::Combine(::testing::ValuesIn(kConfigs), ::testing::ValuesIn(kModes)),
                         [](const auto& p) {
                           return std::string(std::get<0>(p.param)) + "_" + std::get<1>(p.param).file;
                         });

}  // namespace
}  // namespace gannet::deepseek_v41::test
