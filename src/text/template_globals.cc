// Functions that every template can call.
#include <fmt/format.h>

#include <array>
#include <ctime>

#include "text/template_strings.h"

namespace gannet {
namespace {

using Value = TemplateValue;
using Kind = TemplateValue::Kind;
using In = TemplateInterpreter;
using Args = TemplateArguments;

Value range(In& in, const Value&, const Args& args) {
  int64_t part[3] = {0, 0, 1};
  const size_t n = args.positional.size();
  if (n < 1 || n > 3) return in.fail("range: expected one to three integers");
  for (size_t i = 0; i < n; ++i) part[n == 1 ? 1 : i] = integer_argument(in, &args.positional[i], 0, "range");
  const auto [begin, end, step] = part;
  if (in.failed()) return {};
  if (step == 0) return in.fail("range: step 0");
  std::vector<Value> items;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (!in.charge(1) || !in.charge_bytes(sizeof(Value))) return {};
    items.push_back(Value::of(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return in.make_list(std::move(items));
}

Value make_mapping(In& in, const Args& args, Kind kind, std::string_view name) {
  Value out = in.make_dict({}, kind);
  if (in.failed()) return {};
  if (args.positional.size() > 1) return in.fail(fmt::format("{}: expected at most one mapping", name));
  if (!args.positional.empty()) {
    const Value& source = args.positional[0];
    if (source.kind == Kind::dict || source.kind == Kind::name_space) {
      if (!in.charge_bytes(2 * static_cast<int64_t>(sizeof(Value) * source.dict->items.size()))) return {};
      out.dict->items = source.dict->items;
    } else {
      const auto pairs = in.iterate(source);
      for (size_t i = 0; pairs && i < pairs->size(); ++i) {
        const Value& pair = (*pairs)[i];
        if (!pair.is_sequence() || pair.list->items.size() != 2)
          return in.fail(fmt::format("{}: expected pairs", name));
        if (in.charge_bytes(2 * sizeof(Value))) in.set_key(*out.dict, pair.list->items[0], pair.list->items[1]);
      }
    }
  }
  for (const auto& [key, value] : args.named)
    if (in.charge_bytes(2 * sizeof(Value))) in.set_key(*out.dict, Value::own(key), value);
  return out;
}

Value dict(In& in, const Value&, const Args& args) { return make_mapping(in, args, Kind::dict, "dict"); }
Value name_space(In& in, const Value&, const Args& args) {
  return make_mapping(in, args, Kind::name_space, "namespace");
}

Value raise_exception(In& in, const Value&, const Args& args) {
  const TemplateText* message = text_argument(in, template_argument(args, 0, "message"), "raise_exception");
  if (message == nullptr) return {};
  std::string shown = message->bytes().substr(0, 400);
  return in.fail(fmt::format("the template refuses the conversation: {}", shown));
}

Value strftime_now(In& in, const Value&, const Args& args) {
  const TemplateText* format = text_argument(in, template_argument(args, 0, "format"), "strftime_now");
  if (format == nullptr) return {};
  if (format->size() > 200) return in.fail("strftime_now: the format is longer than 200 bytes");
  std::tm parts{};
  const std::time_t now = in.now();
  if (localtime_r(&now, &parts) == nullptr) return in.fail("strftime_now: no such time");
  // A width ("%5000d") could fill any buffer: what does not fit is refused.
  char buffer[1024];
  const size_t n = format->empty() ? 0 : std::strftime(buffer, sizeof buffer, format->bytes().c_str(), &parts);
  if (n == 0 && !format->empty()) return in.fail("strftime_now: the format gives nothing, or too much");
  return in.make(TemplateText(std::string_view(buffer, n),
                              format->any_client() ? TextOwner::client_owned : TextOwner::template_owned));
}

struct Global {
  std::string_view name;
  TemplateCallable::Function function;
};
constexpr std::array kGlobals{Global{"range", range}, Global{"dict", dict}, Global{"namespace", name_space},
                              Global{"raise_exception", raise_exception}, Global{"strftime_now", strftime_now}};

}  // namespace

TemplateCallable::Function find_template_global(std::string_view name) {
  for (const Global& global : kGlobals)
    if (global.name == name) return global.function;
  return nullptr;
}

}  // namespace gannet
