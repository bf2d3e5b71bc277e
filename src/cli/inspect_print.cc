#include <fmt/format.h>

#include "base/json.h"
#include "cli/inspect.h"

namespace gannet::cli {
namespace {

using weights::kParts;
using weights::Part;
using weights::PartTotal;

// "510.29 GB": powers of ten, as disks and papers count.
std::string size_text(int64_t bytes) {
  constexpr std::string_view units[] = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", value, units[unit]);
}

std::string grouped(int64_t n) {
  std::string digits = std::to_string(n);
  for (auto i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3) digits.insert(static_cast<size_t>(i), ",");
  return digits;
}

std::string parts_table(const ModelSummary& s) {
  std::string out =
      fmt::format("\n{:<24}{:>10}{:>22}{:>12}  {}\n", "part", "tensors", "parameters", "size", "bytes");
  const auto line = [&](std::string_view name, const PartTotal& p) {
    out += fmt::format("{:<24}{:>10}{:>22}{:>12}  {}\n", name, grouped(p.tensors), grouped(p.parameters),
                       size_text(p.bytes), grouped(p.bytes));
  };
  for (int i = 0; i < kParts; ++i)
    if (const PartTotal& p = s.validation.parts[static_cast<size_t>(i)]; p.tensors > 0)
      line(part_name(static_cast<Part>(i)), p);
  line("all", s.validation.total);
  return out;
}

std::string memory_text(const ModelSummary& s) {
  const MemorySummary& m = s.memory;
  const auto verdict = [&](int64_t bytes) {
    return bytes <= m.ram_available ? std::string("fits")
                                    : fmt::format("lacks {}", size_text(bytes - m.ram_available));
  };
  std::string out = fmt::format("\nmemory of this machine  {} ({} available)\n", size_text(m.ram_total),
                                size_text(m.ram_available));
  out += fmt::format("  all weights           {:>10}  {}\n", size_text(m.all), verdict(m.all));
  if (m.core != m.all)
    out += fmt::format("  core                  {:>10}  {} (without routed experts, tables, draft, vision)\n",
                       size_text(m.core), verdict(m.core));
  if (m.n_experts > 0)
    out += fmt::format("  routed experts        {:>10}  {} of {} fit beside the core\n",
                       size_text(m.one_expert * m.n_experts), grouped(m.experts_that_fit), grouped(m.n_experts));
  if (const int64_t tables = s.validation.parts[static_cast<size_t>(Part::engram_tables)].bytes; tables > 0)
    out += fmt::format("  engram tables         {:>10}  {}; read row by row from the mapped file otherwise\n",
                       size_text(tables), verdict(m.core + tables));
  out += fmt::format("  cache                 {} a token, {} a sequence\n", size_text(m.cache_per_token),
                     size_text(m.cache_per_sequence));
  return out;
}

}  // namespace

std::string summary_table(const ModelSummary& s) {
  std::string out = fmt::format("{}\n", s.path);
  const auto line = [&](std::string_view name, const std::string& value) {
    out += fmt::format("{:<14}{}\n", name, value);
  };
  line("family", s.family);
  line("container", s.naming.empty() ? s.container : fmt::format("{}, {} names", s.container, s.naming));
  line("layers", fmt::format("{} of width {}", s.layers, s.hidden));
  line("vocabulary", fmt::format("{}, tokenizer: {}", grouped(s.vocab), s.tokenizer));
  line("context", fmt::format("{} tokens", grouped(s.context)));
  if (!s.quantisation.empty()) line("stored as", s.quantisation);
  out += parts_table(s) + memory_text(s);
  if (s.validation.ok()) {
    out += s.container == "config" ? "\nthe config is valid" : "\nall names, shapes and types fit the config";
  } else {
    out += fmt::format("\n{} problems", s.validation.n_problems);
    for (const std::string& problem : s.validation.problems) out += "\n  " + problem;
  }
  return out + fmt::format("  ({:.2f} s)\n", s.seconds);
}

std::string summary_json(const ModelSummary& s) {
  Json json = Json::object();
  for (const auto& [key, value] : {std::pair{"path", &s.path}, std::pair{"container", &s.container},
                                   std::pair{"naming", &s.naming}, std::pair{"family", &s.family},
                                   std::pair{"tokenizer", &s.tokenizer}, std::pair{"stored_as", &s.quantisation}})
    json.set(key, *value);
  for (const auto& [key, value] :
       {std::pair{"layers", s.layers}, std::pair{"hidden", s.hidden}, std::pair{"vocab", s.vocab},
        std::pair{"context", s.context}, std::pair{"tensors", s.validation.total.tensors},
        std::pair{"parameters", s.validation.total.parameters}, std::pair{"bytes", s.validation.total.bytes}})
    json.set(key, value);
  Json parts = Json::array();
  for (int i = 0; i < kParts; ++i) {
    const PartTotal& p = s.validation.parts[static_cast<size_t>(i)];
    if (p.tensors == 0) continue;
    Json part = Json::object();
    part.set("name", part_name(static_cast<Part>(i)));
    part.set("tensors", p.tensors);
    part.set("parameters", p.parameters);
    part.set("bytes", p.bytes);
    parts.push(std::move(part));
  }
  json.set("parts", std::move(parts));
  Json types = Json::object();
  for (const auto& [type, bytes] : s.type_bytes) types.set(type, bytes);
  json.set("type_bytes", std::move(types));
  const MemorySummary& m = s.memory;
  Json memory = Json::object();
  for (const auto& [key, value] :
       {std::pair{"ram_total", m.ram_total}, std::pair{"ram_available", m.ram_available}, std::pair{"all", m.all},
        std::pair{"core", m.core}, std::pair{"one_expert", m.one_expert}, std::pair{"experts", m.n_experts},
        std::pair{"experts_that_fit", m.experts_that_fit}, std::pair{"cache_per_token", m.cache_per_token},
        std::pair{"cache_per_sequence", m.cache_per_sequence}})
    memory.set(key, value);
  json.set("memory", std::move(memory));
  json.set("valid", s.validation.ok());
  Json problems = Json::array();
  for (const std::string& problem : s.validation.problems) problems.push(problem);
  json.set("problems", std::move(problems));
  json.set("n_problems", s.validation.n_problems);
  json.set("seconds", s.seconds);
  return json.dump();
}

std::string tensor_list(const weights::Checkpoint& checkpoint, bool json) {
  std::string out;
  for (const files::TensorInfo& t : checkpoint.tensors()) {
    if (!json) {
      out += fmt::format("{:<60} {:<10} {:<20} {:>16}\n", t.name, t.type_text(), t.shape.text(),
                         grouped(static_cast<int64_t>(t.bytes.size())));
      continue;
    }
    Json line = Json::object();
    line.set("name", t.name);
    line.set("type", t.type_text());
    Json shape = Json::array();
    for (int i = 0; i < t.shape.rank; ++i) shape.push(t.shape[i]);
    line.set("shape", std::move(shape));
    line.set("bytes", static_cast<int64_t>(t.bytes.size()));
    line.set("file", int64_t{t.file});
    out += line.dump() + "\n";
  }
  return out;
}

}  // namespace gannet::cli
