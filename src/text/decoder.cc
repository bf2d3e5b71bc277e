#include "text/decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/components.h"

namespace gannet {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

Status read_metaspace(const Json& component, DecodeRules& out) {
  GANNET_ASSIGN(const std::string mark, component_text(component, "replacement", "\xE2\x96\x81"));
  if (mark.empty()) return component_error(component, "replacement is empty");
  GANNET_ASSIGN(const bool prefix, component_flag(component, "add_prefix_space", true));
  GANNET_ASSIGN(const std::string scheme, component_text(component, "prepend_scheme", prefix ? "always" : "never"));
  if (scheme != "never") out.mark = mark;
  out.replace.emplace_back(mark, " ");
  return ok();
}

Status read_replace(const Json& component, DecodeRules& out) {
  GANNET_ASSIGN(const ComponentPattern pattern, component_pattern(component));
  if (pattern.is_regex)
    return component_error(component, fmt::format("the regular expression '{}' is not implemented", pattern.text));
  GANNET_ASSIGN(std::string content, component_text(component, "content", ""));
  out.replace.emplace_back(pattern.text, std::move(content));
  return ok();
}

Status read_strip(const Json& component, bool fused, DecodeRules& out) {
  GANNET_ASSIGN(std::string content, component_text(component, "content", " "));
  GANNET_ASSIGN(const int64_t start, component_int(component, "start", 0));
  GANNET_ASSIGN(const int64_t stop, component_int(component, "stop", 0));
  if (stop != 0) return component_error(component, fmt::format("stop = {} is not implemented", stop));
  if (start < 0 || content.empty()) return component_error(component, "needs a content and start >= 0");
  if (start == 0) return ok();
  if (!fused || out.strip_count != 0)
    return component_error(component, "is implemented once, behind Fuse (the beginning of the text) only");
  out.strip = std::move(content);
  out.strip_count = start;
  return ok();
}

}  // namespace

Result<DecodeRules> DecodeRules::from_components(const std::vector<Json>& components) {
  DecodeRules out;
  bool fused = false;
  for (const Json& component : components) {
    const std::string& type = *component.find("type")->as_string();
    if (out.byte_level) return component_error(component, "a decoder behind ByteLevel is not implemented");
    if (fused && type != "Strip" && type != "Fuse")
      return component_error(component, "this decoder is not implemented behind Fuse");
    if (type == "ByteLevel") {
      if (&component != &components.front())
        return component_error(component, "is implemented as the only decoder only");
      out.byte_level = true;
    } else if (type == "Replace") {
      GANNET_TRY(read_replace(component, out));
    } else if (type == "ByteFallback") {
      out.byte_tokens = true;
    } else if (type == "Metaspace") {
      GANNET_TRY(read_metaspace(component, out));
    } else if (type == "Fuse") {
      fused = true;
    } else if (type == "Strip") {
      GANNET_TRY(read_strip(component, fused, out));
    } else {
      return component_error(component, "this decoder is not implemented");
    }
  }
  return out;
}

std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t found = text.find(pattern, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    out += content;
    at = found + pattern.size();
  }
}

std::string DecodeRules::apply(std::string_view token) const {
  if (byte_tokens)
    if (const int byte = byte_of_token(token); byte >= 0) return std::string(1, static_cast<char>(byte));
  std::string text(token);
  for (const auto& [pattern, content] : replace)
    if (text.find(pattern) != std::string::npos) text = replace_all(text, pattern, content);
  return text;
}

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
  const int high = hex_digit(token[3]), low = hex_digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace gannet
