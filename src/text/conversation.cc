#include "text/conversation.h"

#include "base/check.h"

namespace gannet {

std::string_view role_name(Role role) {
  switch (role) {
    case Role::system:
      return "system";
    case Role::user:
      return "user";
    case Role::assistant:
      return "assistant";
    case Role::tool:
      return "tool";
    case Role::latest_reminder:
      return "latest_reminder";
  }
  GANNET_CHECK(false, "role {}", static_cast<int>(role));
  return {};
}

bool ChatMessage::blocks_empty() const {
  return blocks.empty() ||
         (blocks.size() == 1 && blocks[0].kind == ContentBlock::Kind::text && blocks[0].text.empty());
}

std::string joined_text(const std::vector<ContentBlock>& blocks, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const ContentBlock& block : blocks) {
    if (block.kind != ContentBlock::Kind::text) continue;
    if (!first) out += separator;
    out += block.text;
    first = false;
  }
  return out;
}

}  // namespace gannet
