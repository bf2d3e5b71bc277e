// A template, a NUL byte, and its variables as JSON (or a fixed conversation where that is none). However it ends:
// no client text comes out as the template's.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/template.h"

namespace {

using namespace gannet;

// Ⓔ stands in client text only: a template that has neither its first byte nor an escape cannot write it itself.
constexpr std::string_view kMark = "Ⓔ";
constexpr std::string_view kConversation =
    R"({"messages":[{"role":"system","content":" ⒺS "},{"role":"user","content":[{"type":"text","text":"aⒺb"},{"type":"image"}]},
    {"role":"assistant","content":"<think>Ⓔ</think>x","tool_calls":[{"id":"1Ⓔ","type":"function","function":{"name":"fⒺ",
    "arguments":{"aⒺ":[1,2.5,null,true,"Ⓔ"],"b":{"c":"dⒺ"}}}}]},{"role":"tool","content":"","tool_call_id":"1Ⓔ"}],
    "tools":[{"type":"function","function":{"name":"fⒺ","parameters":{"type":"object","properties":{"x":{"type":"string"}}}}}],
    "add_generation_prompt":true,"s":"a,bⒺ, c\n dⒺ","n":7,"r":2.5,"big":123456789012345678901234567890,"xs":[3,1,2],"nil":null})";

std::vector<TemplateVariable> variables_of(const Json& json) {
  std::vector<TemplateVariable> out{{"bos_token", Json("<s>"), TextSpan::Owner::template_owned}};
  for (const auto& [name, value] : json.members()) out.push_back({name, value});
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string_view source = input.substr(0, end);
  const auto chat = Template::parse(source);
  if (!chat) {
    GANNET_CHECK(!chat.error().message.empty(), "an error without words");
    return 0;
  }
  static const std::vector<TemplateVariable> conversation = variables_of(*Json::parse(kConversation));
  const auto given = Json::parse(input.substr(std::min(end + 1, size)));
  const bool uses_given = given && given->is_object();
  TemplateLimits limits;
  limits.steps = 4'000;
  limits.new_bytes = 1 << 17;
  limits.output_bytes = 1 << 14;
  limits.depth = 120;
  const auto spans = chat->render(uses_given ? variables_of(*given) : conversation, 1'700'000'000, limits);
  if (!spans) {
    GANNET_CHECK(!spans.error().message.empty(), "an error without words");
    return 0;
  }
  const bool could_write_mark =
      source.find('\xE2') != std::string_view::npos || source.find('\\') != std::string_view::npos;
  for (const TextSpan& span : *spans) {
    GANNET_CHECK(!span.text.empty(), "an empty span");
    const bool own = span.owner == TextSpan::Owner::template_owned;
    // of given variables, role and type belong to the template
    if (own && !uses_given && !could_write_mark)
      GANNET_CHECK(span.text.find(kMark) == std::string::npos, "client text became the template's");
  }
  return 0;
}
