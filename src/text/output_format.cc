#include "text/output_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/output_parser_json.h"

namespace gannet {

Result<OutputFormat> output_format(const ChatModelInfo& model, std::string_view encoder, std::string_view choice) {
  if (choice == "deepseek_v41" || choice == "deepseek_v4" || choice == "deepseek_v32")
    return OutputFormat::deepseek_dsml;
  if (choice == "hermes" || choice == "qwen") return OutputFormat::hermes;
  if (choice == "llama3_json") return OutputFormat::llama3_json;
  if (choice == "none") return OutputFormat::plain;
  if (choice != "auto")
    return Error{
        Errc::bad_request,
        fmt::format("tool-call format '{}' is none of auto, deepseek_v41, hermes, llama3_json, none", choice)};
  if (encoder == "deepseek_v41") return OutputFormat::deepseek_dsml;
  const std::string_view source = model.chat_template ? std::string_view(*model.chat_template) : "";
  const auto mentions = [&](std::string_view text) { return source.find(text) != std::string_view::npos; };
  if (mentions("DSML")) return OutputFormat::deepseek_dsml;
  if (mentions("<tool_call>")) return OutputFormat::hermes;
  if (mentions("<|python_tag|>") || mentions("\"parameters\": dictionary")) return OutputFormat::llama3_json;
  return OutputFormat::plain;
}

std::unique_ptr<OutputParser> make_output_parser(OutputFormat format, OutputParserOptions options) {
  switch (format) {
    case OutputFormat::deepseek_dsml:
      return make_dsml_output_parser(std::move(options));
    case OutputFormat::hermes:
      return std::make_unique<JsonOutputParser>(JsonOutputParser::Style::tagged, std::move(options));
    case OutputFormat::llama3_json:
      return std::make_unique<JsonOutputParser>(JsonOutputParser::Style::bare, std::move(options));
    case OutputFormat::plain:
      break;
  }
  options.tools.clear();
  return make_dsml_output_parser(std::move(options));
}

bool is_output_markup(std::string_view token_bytes) {
  constexpr std::array<std::string_view, 6> kMarkup{"<think>",     "</think>",     "｜DSML｜",
                                                    "<tool_call>", "</tool_call>", "<|python_tag|>"};
  return std::ranges::find(kMarkup, token_bytes) != kMarkup.end();
}

}  // namespace gannet
