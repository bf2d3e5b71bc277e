#include "weights/checkpoint.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "base/check.h"
#include "tensor/dtype.h"
#include "weights/names.h"
#include "weights/scales.h"
#include "weights/synthetic.h"

namespace gannet::weights {

using files::StorageType;
using files::TensorInfo;

namespace {

constexpr int64_t kMaxConfigBytes = int64_t{16} << 20;
constexpr int64_t kMaxExperts = 65536;

WeightFormat block_format(StorageType type) {
  switch (type) {
    case StorageType::f32:
      return WeightFormat::f32;
    case StorageType::f16:
      return WeightFormat::f16;
    case StorageType::bf16:
      return WeightFormat::bf16;
    case StorageType::q4_0:
      return WeightFormat::q4_0;
    case StorageType::q4_1:
      return WeightFormat::q4_1;
    case StorageType::q5_0:
      return WeightFormat::q5_0;
    case StorageType::q5_1:
      return WeightFormat::q5_1;
    case StorageType::q8_0:
      return WeightFormat::q8_0;
    case StorageType::q2_k:
      return WeightFormat::q2_k;
    case StorageType::q3_k:
      return WeightFormat::q3_k;
    case StorageType::q4_k:
      return WeightFormat::q4_k;
    case StorageType::q5_k:
      return WeightFormat::q5_k;
    case StorageType::q6_k:
      return WeightFormat::q6_k;
    case StorageType::mxfp4:
      return WeightFormat::mxfp4_gguf;
    default:
      return WeightFormat::none;
  }
}

// Rows of the last dimension: 1 for a vector.
int64_t row_count(const files::Shape& shape) {
  int64_t rows = 1;
  for (int i = 0; i + 1 < shape.rank; ++i) rows *= shape[i];
  return rows;
}
int64_t column_count(const files::Shape& shape) { return shape.rank == 0 ? 1 : shape[shape.rank - 1]; }

std::string scale_name(std::string_view weight) {
  if (weight.ends_with(".weight")) weight.remove_suffix(7);
  return std::string(weight) + ".scale";
}

// "deepseek_v41" from config.json, whatever names it: model_type of the text model, else the architecture.
std::string family_of(const Json& config) {
  const Json* text = config.find("text_config");
  std::string type;
  for (const Json* json : {text, &config}) {
    const Json* value = json != nullptr ? json->find("model_type") : nullptr;
    if (type.empty() && value != nullptr && value->as_string() != nullptr) type = *value->as_string();
  }
  if (type.empty()) {
    const Json* architectures = config.find("architectures");
    const bool v41 = architectures != nullptr && !architectures->items().empty() &&
                     architectures->items()[0].as_string() != nullptr &&
                     architectures->items()[0].as_string()->starts_with("DeepseekV41");
    if (v41) return "deepseek_v41";
  }
  if (type.ends_with("_text")) type.resize(type.size() - 5);
  return type;
}

}  // namespace

struct Checkpoint::Impl {
  Container container = Container::safetensors;
  Naming naming = Naming::llama;
  std::string family, path, config_path;
  std::optional<Json> config;
  std::optional<files::SafeTensors> safetensors;
  std::optional<files::Gguf> gguf;
  std::unique_ptr<Synthetic> synthetic;
  int64_t payload_bytes = 0;

  std::deque<std::string> owned_names;  // canonical names that no file spells like that
  std::unordered_map<std::string_view, Found> index;

  std::span<const TensorInfo> tensors() const {
    if (synthetic) return synthetic->tensors();
    if (gguf) return gguf->tensors();
    return safetensors->tensors();
  }
  Error bad(std::string text) const { return {Errc::bad_file, fmt::format("{}: {}", path, text)}; }

  // The bytes of a tensor, made on first use where they are synthetic.
  std::span<const std::byte> bytes(const TensorInfo& tensor) const {
    return synthetic ? synthetic->bytes(tensor) : tensor.bytes;
  }

  Status add(std::string_view canonical, const TensorInfo& tensor, int64_t first_row, int64_t n_rows) {
    std::string_view key = tensor.name;
    if (canonical != tensor.name) key = owned_names.emplace_back(canonical);
    if (!index.try_emplace(key, Found{&tensor, first_row, n_rows}).second)
      return bad(fmt::format("tensor '{}' says the same as another one: both are {}", tensor.name, canonical));
    return ok();
  }

  Status add_stack(const CanonicalName& name, const TensorInfo& tensor) {
    const int64_t n_experts = tensor.shape.rank == 3 ? tensor.shape[0] : 0;
    const int64_t parts = name.second.empty() ? 1 : 2;
    if (n_experts < 1 || n_experts > kMaxExperts || tensor.shape[1] % parts != 0)
      return bad(fmt::format("tensor '{}' {} is no stack of experts", tensor.name, tensor.shape.text()));
    const int64_t rows = tensor.shape[1] / parts;
    for (int64_t e = 0; e < n_experts; ++e) {
      GANNET_TRY(add(fmt::format("{}{}{}", name.name, e, name.first), tensor, e * parts * rows, rows));
      if (parts == 2)
        GANNET_TRY(add(fmt::format("{}{}{}", name.name, e, name.second), tensor, (e * parts + 1) * rows, rows));
    }
    return ok();
  }

  Status build_index() {
    const auto all = tensors();
    index.reserve(all.size());
    for (const TensorInfo& t : all) {
      CanonicalName name;
      if (container == Container::gguf)
        name = canonical_gguf(t.name, family == "gemma3");
      else if (family == "deepseek_v41")
        name = canonical_v41(t.name);
      else
        name = canonical_llama(t.name);
      if (family == "deepseek_v41" && (name.stacked() || name.name != t.name)) naming = Naming::transformers_v41;
      if (name.stacked())
        GANNET_TRY(add_stack(name, t));
      else
        GANNET_TRY(add(name.name, t, 0, row_count(t.shape)));
    }
    return ok();
  }
};

Checkpoint::Checkpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  auto impl = std::make_unique<Impl>();
  impl->path = path.string();
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  if (!folder && !fs::exists(path, error))
    return Error{Errc::not_found, fmt::format("there is no {}", path.string())};
  if (!folder && path.extension() == ".gguf") {
    impl->container = Container::gguf;
    impl->naming = Naming::gguf;
    GANNET_ASSIGN(impl->gguf, files::Gguf::open(path));
    GANNET_ASSIGN(const std::string_view family, impl->gguf->get_string("general.architecture"));
    impl->family = family == "qwen3moe" ? "qwen3_moe" : std::string(family.substr(0, 64));
    impl->payload_bytes = impl->gguf->payload_bytes();
  } else {
    const fs::path config_path = (folder ? path : path.parent_path()) / "config.json";
    GANNET_ASSIGN(const std::string text, read_file(config_path, kMaxConfigBytes));
    auto config = Json::parse(text);
    if (!config) return Error{Errc::bad_file, fmt::format("{}: {}", config_path.string(), config.error().message)};
    impl->family = family_of(*config);
    if (impl->family.empty())
      return Error{Errc::bad_file, fmt::format("{} has no model_type", config_path.string())};
    impl->config = std::move(*config);
    impl->config_path = config_path.string();
    impl->naming = impl->family == "deepseek_v41" ? Naming::released_v41 : Naming::llama;
    GANNET_ASSIGN(impl->safetensors, files::SafeTensors::open(path));
    impl->payload_bytes = impl->safetensors->payload_bytes();
  }
  GANNET_TRY(impl->build_index());
  return Checkpoint(std::move(impl));
}

Result<Checkpoint> Checkpoint::synthetic(std::string family, std::vector<WeightSpec> specs,
                                         SyntheticOptions options) {
  if (family.ends_with("_text")) family.resize(family.size() - 5);
  auto impl = std::make_unique<Impl>();
  impl->path = fmt::format("synthetic {} weights", family);
  impl->container = Container::synthetic;
  impl->naming = family == "deepseek_v41" ? Naming::released_v41 : Naming::llama;
  impl->family = std::move(family);
  impl->synthetic =
      std::make_unique<Synthetic>(std::move(specs), options.seed, options.max_unique_bytes, options.max_bytes);
  impl->payload_bytes = impl->synthetic->total_bytes();
  GANNET_TRY(impl->build_index());
  return Checkpoint(std::move(impl));
}

Container Checkpoint::container() const { return impl_->container; }
Naming Checkpoint::naming() const { return impl_->naming; }
const std::string& Checkpoint::family() const { return impl_->family; }
const std::string& Checkpoint::path() const { return impl_->path; }
const Json* Checkpoint::config() const { return impl_->config ? &*impl_->config : nullptr; }
std::string Checkpoint::config_path() const { return impl_->config_path; }
const files::Gguf* Checkpoint::gguf() const { return impl_->gguf ? &*impl_->gguf : nullptr; }
int64_t Checkpoint::payload_bytes() const { return impl_->payload_bytes; }
std::span<const TensorInfo> Checkpoint::tensors() const { return impl_->tensors(); }

std::vector<std::string_view> Checkpoint::names() const {
  std::vector<std::string_view> out;
  out.reserve(impl_->index.size());
  for (const auto& [name, found] : impl_->index) out.push_back(name);
  return out;
}

bool Checkpoint::has(std::string_view name) const { return impl_->index.contains(name); }

std::optional<Found> Checkpoint::find(std::string_view name) const {
  const auto it = impl_->index.find(name);
  if (it == impl_->index.end()) return std::nullopt;
  return it->second;
}

namespace {

// Points `view` at the scales of an F8_E4M3 or I8 weight, and sets its format by their shape.
Status attach_scales(WeightView& view, bool packed, const TensorInfo& scale, const Found& where,
                     std::span<const std::byte> bytes, const std::string& scale_label) {
  if (scale.type != StorageType::f8_e8m0)
    return Error{Errc::unsupported,
                 fmt::format("{} of {} is not supported (F8_E8M0 is)", scale_label, scale.type_text())};
  const int64_t columns = column_count(scale.shape), in_blocks = (int64_t{view.in} + 31) / 32,
                out_blocks = (int64_t{view.out} + 31) / 32;
  const bool per_row = where.n_rows == view.out && columns == in_blocks;
  const bool per_block = where.n_rows == out_blocks && columns == in_blocks;
  if (packed ? !per_row : !(per_row || per_block))
    return Error{Errc::bad_file,
                 fmt::format("{} {} fits no weight of [{}, {}] ({}[{}, {}] would)", scale_label, scale.shape.text(),
                             view.out, view.in, packed ? "" : fmt::format("[{}, {}] or ", out_blocks, in_blocks),
                             view.out, in_blocks)};
  view.format = packed ? WeightFormat::mxfp4_1x32 : per_block ? WeightFormat::fp8_32x32 : WeightFormat::fp8_1x32;
  view.scales = bytes.data() + where.first_row * columns;
  view.scale_row_bytes = columns;
  return ok();
}

}  // namespace

Result<WeightView> Checkpoint::matrix(std::string_view name, int64_t out, int64_t in) const {
  const auto found = find(name);
  if (!found) return impl_->bad(fmt::format("there is no tensor '{}'", name));
  const TensorInfo& t = *found->tensor;
  const int64_t columns = column_count(t.shape);
  const bool packed = t.type == StorageType::i8 || t.type == StorageType::u8;
  const bool fp8 = t.type == StorageType::f8_e4m3;
  WeightView view;
  view.format = block_format(t.type);
  if (view.format == WeightFormat::none && !packed && !fp8)
    return Error{Errc::unsupported,
                 fmt::format("{}: tensor '{}' has the type {}, which is not supported for a weight", impl_->path,
                             name, t.type_text())};
  if (out < 1 || in < 1 || out > INT32_MAX || in > INT32_MAX || found->n_rows != out ||
      (packed ? columns != in / 2 || in % 2 != 0 : columns != in))
    return impl_->bad(fmt::format("tensor '{}' of {} {} is not the [{}, {}] that the config asks for{}", name,
                                  t.type_text(), t.shape.text(), out, in, packed ? " (two values a byte)" : ""));
  view.out = static_cast<int32_t>(out);
  view.in = static_cast<int32_t>(in);
  const std::span<const std::byte> bytes = impl_->bytes(t);
  if (packed || fp8) {
    if (in % 32 != 0)
      return impl_->bad(fmt::format("tensor '{}' has {} columns, which is no multiple of 32", name, in));
    view.row_bytes = packed ? in / 2 : in;
    const std::string partner = scale_name(name);
    const auto scale = find(partner);
    if (!scale) return impl_->bad(fmt::format("tensor '{}' of {} has no '{}'", name, t.type_text(), partner));
    GANNET_TRY(attach_scales(view, packed, *scale->tensor, *scale, impl_->bytes(*scale->tensor),
                             fmt::format("{}: tensor '{}'", impl_->path, partner)));
  } else {
    const WeightFormatInfo& info = weight_format_info(view.format);
    view.row_bytes = in / info.block_elements * info.block_bytes;
  }
  view.codes = bytes.data() + found->first_row * view.row_bytes;
  if (!impl_->synthetic && impl_->payload_bytes <= kCheckedBytes) GANNET_TRY(check_scales(name, view));
  return view;
}

Status Checkpoint::check_scales(std::string_view name, const WeightView& weight) const {
  if (const auto row = first_bad_scale_row(weight))
    return impl_->bad(fmt::format("tensor '{}' has a scale in row {} that is no finite number", name, *row));
  return ok();
}

Result<std::vector<float>> Checkpoint::floats(std::string_view name, int64_t n) const {
  const auto found = find(name);
  if (!found) return impl_->bad(fmt::format("there is no tensor '{}'", name));
  const TensorInfo& t = *found->tensor;
  if (t.shape.elements() != n)
    return impl_->bad(fmt::format("tensor '{}' {} does not have the {} values that the config asks for", name,
                                  t.shape.text(), n));
  const std::byte* at = impl_->bytes(t).data();
  std::vector<float> out(static_cast<size_t>(n));
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t half = 0;
    switch (t.type) {
      case StorageType::f32:
        std::memcpy(&out[i], at + 4 * i, 4);
        break;
      case StorageType::f16:
        std::memcpy(&half, at + 2 * i, 2);
        out[i] = to_f32(f16{half});
        break;
      case StorageType::bf16:
        std::memcpy(&half, at + 2 * i, 2);
        out[i] = to_f32(bf16{half});
        break;
      default:
        return Error{Errc::unsupported,
                     fmt::format("{}: tensor '{}' has the type {} (F32, F16, BF16 are supported here)", impl_->path,
                                 name, t.type_text())};
    }
    if (!std::isfinite(out[i]))
      return impl_->bad(fmt::format("tensor '{}' has the value {} at {}", name, out[i], i));
  }
  return out;
}

Result<View> Checkpoint::dense(std::string_view name, std::initializer_list<int64_t> shape) const {
  const auto found = find(name);
  if (!found) return impl_->bad(fmt::format("there is no tensor '{}'", name));
  const TensorInfo& t = *found->tensor;
  if (!(t.shape == files::Shape(shape)))
    return impl_->bad(fmt::format("tensor '{}' {} is not the {} that the config asks for", name, t.shape.text(),
                                  files::Shape(shape).text()));
  DType type = DType::f32;
  if (t.type == StorageType::f16)
    type = DType::f16;
  else if (t.type == StorageType::bf16)
    type = DType::bf16;
  else if (t.type != StorageType::f32)
    return Error{Errc::unsupported,
                 fmt::format("{}: tensor '{}' has the type {} (F32, F16, BF16 are supported here)", impl_->path,
                             name, t.type_text())};
  const std::byte* at = impl_->bytes(t).data();
  if (std::bit_cast<uintptr_t>(at) % static_cast<size_t>(dtype_bytes(type)) != 0)
    return Error{Errc::unsupported, fmt::format("{}: tensor '{}' does not begin at a multiple of its element size",
                                                impl_->path, name)};
  return View(const_cast<std::byte*>(at), type, shape);
}

namespace {

void advise(const std::byte* begin, int64_t size, int advice) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t from = std::bit_cast<uintptr_t>(begin) / page * page,
                  to = std::bit_cast<uintptr_t>(begin) + static_cast<uintptr_t>(size);
  if (to > from) ::madvise(std::bit_cast<void*>(from), to - from, advice);  // a hint: failure costs time only
}

void advise(const WeightView& w, int advice) {
  advise(w.codes, w.row_bytes * w.out, advice);
  if (w.scales != nullptr) advise(w.scales, w.bytes() - w.row_bytes * w.out, advice);
}

}  // namespace

void Checkpoint::will_need(const WeightView& weight) const { advise(weight, MADV_WILLNEED); }
void Checkpoint::dont_need(const WeightView& weight) const {
  if (!impl_->synthetic) advise(weight, MADV_DONTNEED);  // made-up bytes exist nowhere else
}

}  // namespace gannet::weights
