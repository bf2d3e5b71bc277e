#include "server/web_page.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <string>

#include "server/web_parts.h"  // generated from src/server/web by CMake: kHtml, kStyle, kScript

namespace gannet::server {
namespace {

// 'sha256-...' as Content-Security-Policy wants it: only this very script and style may run.
std::string source_hash(std::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH], base64[64];
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  ::EVP_EncodeBlock(base64, digest, sizeof digest);
  return fmt::format("'sha256-{}'", reinterpret_cast<const char*>(base64));
}

}  // namespace

std::string_view web_page() {
  static const std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Gannet</title>\n"
      "<meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<style>{}</style></head>\n<body>\n{}<script>{}</script></"
      "body></html>\n",
      kStyle, kHtml, kScript);
  return page;
}

std::string_view web_page_policy() {
  static const std::string policy = fmt::format(
      "default-src 'none'; connect-src 'self'; img-src data:; style-src {}; script-src {}; base-uri 'none'; "
      "form-action 'none'; frame-ancestors 'none'",
      source_hash(kStyle), source_hash(kScript));
  return policy;
}

}  // namespace gannet::server
