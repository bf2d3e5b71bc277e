// A byte of options, a byte of stride, then what a model wrote. Whole and in pieces it must mean the same, and the
// arguments of every ended call must be a JSON object.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/output_format.h"

namespace {

using namespace gannet;

struct Meaning {
  std::string text[2];
  std::vector<std::string> calls;
  OutputEnd end = OutputEnd::stop;
  bool operator==(const Meaning&) const = default;
};

Meaning parse(OutputFormat format, std::string_view written, const OutputParserOptions& options, bool length,
              size_t stride) {
  const auto parser = make_output_parser(format, options);
  std::vector<OutputEvent> events;
  int64_t token = 0;
  for (size_t at = 0; at < written.size(); at += stride) parser->push(written.substr(at, stride), token++, events);
  Meaning out;
  out.end = parser->finish(length, events);
  int64_t last = 0;
  for (const OutputEvent& event : events) {
    GANNET_CHECK(event.first_token >= last && event.last_token >= event.first_token && event.last_token <= token,
                 "token ranges");
    last = event.last_token;
    switch (event.kind) {
      case OutputEvent::Kind::reasoning:
      case OutputEvent::Kind::content:
        out.text[event.kind == OutputEvent::Kind::content] += event.text;
        break;
      case OutputEvent::Kind::tool_begin:
        GANNET_CHECK(event.tool_index == static_cast<int32_t>(out.calls.size()), "calls count up");
        out.calls.emplace_back();
        break;
      case OutputEvent::Kind::tool_args:
        out.calls.at(static_cast<size_t>(event.tool_index)) += event.text;
        break;
      case OutputEvent::Kind::tool_end: {
        const auto arguments = Json::parse(out.calls.at(static_cast<size_t>(event.tool_index)));
        GANNET_CHECK(arguments && arguments->is_object(), "arguments are no object");
        break;
      }
    }
  }
  return out;
}

bool valid_utf8(std::string_view text) {
  std::string quoted;
  append_json_string(quoted, text);
  return quoted.find("\xEF\xBF\xBD") == std::string::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view written(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (!valid_utf8(written)) return 0;
  static const std::vector<Json> tools =
      Json::parse(
          R"([{"function":{"name":"f","parameters":{"properties":{"a":{"type":"string"}},"required":["a"]}}},{"function":{"name":"g"}}])")
          ->items();
  OutputParserOptions options;
  options.start = data[0] & 1 ? OutputStart::reasoning : OutputStart::content;
  options.continues = data[0] & 2;
  if (!(data[0] & 4)) options.tools = tools;
  const bool length = data[0] & 8;
  constexpr OutputFormat kFormats[] = {OutputFormat::deepseek_dsml, OutputFormat::hermes, OutputFormat::llama3_json,
                                       OutputFormat::plain};
  const OutputFormat format = kFormats[data[0] >> 4 & 3];
  const Meaning whole = parse(format, written, options, length, written.size() + 1);
  GANNET_CHECK(whole == parse(format, written, options, length, 1), "byte by byte it means something else");
  GANNET_CHECK(whole == parse(format, written, options, length, 2 + data[1] % 30),
               "in pieces it means something else");
  return 0;
}
