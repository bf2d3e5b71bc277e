// The chat page at `/`, built into the binary: no external resource, no inline script that model output could
// reach.
#pragma once

#include <string_view>

namespace gannet::server {

std::string_view web_page();
std::string_view web_page_policy();  // Content-Security-Policy of the page

}  // namespace gannet::server
