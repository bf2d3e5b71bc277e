// DSML, the markup in which DeepSeek-V4.1 is told about tools and in which it calls them.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/conversation.h"
#include "text/span_writer.h"

namespace gannet {

// The block of a system message that lists the tools, one JSON object a line: the client's whole `function` object
// in its own key order, spelled as Python's json.dumps(ensure_ascii=False) does. A namespace turns the name into
// "ns::name" and its description goes before the tool's. Refuses a tool without a name.
Status write_dsml_tools(SpanWriter& out, const std::vector<Json>& tools);

// The block of an assistant message that holds its calls. Arguments that are no JSON object become one parameter
// named "arguments"; a JSON string that holds JSON is read once more. Refuses names and keys that would break out
// of the markup (names: [A-Za-z0-9_-]{1,64}; keys: no quote, no line break), naming `call.field`.
Status write_dsml_calls(SpanWriter& out, const ChatMessage& message);

}  // namespace gannet
