#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"

namespace gannet {
namespace {

constexpr uint16_t ascii_bits(int c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const bool digit = c >= '0' && c <= '9';
  if (letter) return kLetter | kAsciiLetter | kCased;
  if (digit) return kNumber;
  if (c == '\r' || c == '\n') return kSpace | kNewline;
  if (c == ' ' || (c >= 9 && c <= 13)) return kSpace;
  if (c < 32 || c == 127) return 0;
  const bool symbol =
      c == '$' || c == '+' || c == '<' || c == '=' || c == '>' || c == '^' || c == '`' || c == '|' || c == '~';
  return kAsciiPunctuation | (symbol ? kSymbol : kPunctuation);
}

constexpr std::array<uint16_t, 128> make_ascii_bits() {
  std::array<uint16_t, 128> bits{};
  for (size_t c = 0; c < bits.size(); ++c) bits[c] = ascii_bits(static_cast<int>(c));
  return bits;
}

// By utf8proc_category_t: CN LU LL LT LM LO MN MC ME ND NL NO PC PD PS PE PI PF PO SM SC SK SO ZS ZL ZP CC CF CS CO
constexpr std::array<uint16_t, 30> kCategoryBits = {0,
                                                    kLetter | kCased,
                                                    kLetter | kCased,
                                                    kLetter | kCased,
                                                    kLetter,
                                                    kLetter,
                                                    kMark,
                                                    kMark,
                                                    kMark,
                                                    kNumber,
                                                    kNumber,
                                                    kNumber,
                                                    kPunctuation,
                                                    kPunctuation,
                                                    kPunctuation,
                                                    kPunctuation,
                                                    kPunctuation,
                                                    kPunctuation,
                                                    kPunctuation,
                                                    kSymbol,
                                                    kSymbol,
                                                    kSymbol,
                                                    kSymbol,
                                                    kSpace,
                                                    kSpace,
                                                    kSpace,
                                                    0,
                                                    0,
                                                    0,
                                                    0};

}  // namespace

namespace detail {

constinit const std::array<uint16_t, 128> kAsciiBits = make_ascii_bits();

Char char_at_slow(const char* p, const char* end) {
  const Utf8Step step = utf8_step(p, end);
  if (step.kind != Utf8Step::Kind::character) return {kIllFormed, 0, 1};
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(step.code_point));
  uint16_t bits = kCategoryBits[static_cast<size_t>(category)];
  if (step.code_point == 0x85) bits |= kSpace;  // NEL is a control character and white space
  return {step.code_point, bits, step.size};
}

}  // namespace detail

Char char_before(const char* begin, const char* end) {
  const char* p = end - 1;
  while (p > begin && end - p < 4 && is_utf8_continuation(*p)) --p;
  const Char c = char_at(p, end);
  if (p + c.size == end) return c;
  return {kIllFormed, 0, 1};
}

bool is_word_char(char32_t c) {
  if (c > 0x10FFFF) return false;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:  // Join_Control, and the symbols that are Other_Alphabetic
      return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
             (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  }
}

namespace {

// Canonical ordering: each run of characters with a combining class is sorted by it. utf8proc orders by swapping
// neighbours, which is quadratic on a text of marks; hence this, and only its tables are used.
void order_canonically(std::vector<utf8proc_int32_t>& code_points) {
  const auto combining_class = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  const auto by_class = [&](utf8proc_int32_t a, utf8proc_int32_t b) {
    return combining_class(a) < combining_class(b);
  };
  const auto end = code_points.end();
  for (auto run = code_points.begin(); run != end;) {
    run = std::find_if(run, end, [&](utf8proc_int32_t c) { return combining_class(c) != 0; });
    const auto stop = std::find_if(run, end, [&](utf8proc_int32_t c) { return combining_class(c) == 0; });
    if (stop - run > 1) std::stable_sort(run, stop, by_class);
    run = stop;
  }
}

// Characters that came after Unicode 9.0 and have a decomposition or a combining class. The tokenizers that models
// were trained with take normal forms from tables of that version, where these characters stay as they are and
// nothing moves across them. (Found by comparing the `tokenizers` library 0.23.3 with Unicode 14.0 for every code
// point.)
constexpr std::pair<char32_t, char32_t> kLaterThanNormalForms[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},
    {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xA82C, 0xA82C},   {0xAB69, 0xAB69},   {0x10781, 0x10785},
    {0x10787, 0x107B0}, {0x107B2, 0x107BA}, {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
    {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97},
    {0x16FF0, 0x16FF1}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1F16C, 0x1F16C},
    {0x1FBF0, 0x1FBF9}};

bool is_inert(char32_t c) {
  const auto* after = std::upper_bound(std::begin(kLaterThanNormalForms), std::end(kLaterThanNormalForms), c,
                                       [](char32_t value, const auto& range) { return value < range.first; });
  return after != std::begin(kLaterThanNormalForms) && c <= std::prev(after)->second;
}

// Normal form of well-formed text without inert characters.
void append_normalized(std::string& out, std::string_view text, NormalForm form) {
  const bool compose = form == NormalForm::nfc || form == NormalForm::nfkc;
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const auto decompose =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> code_points;
  code_points.reserve(text.size());
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Utf8Step step = utf8_step(p, end);
    p += step.size;
    utf8proc_int32_t parts[32];  // the longest decomposition has 18
    int last_class = 0;
    const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(step.code_point), parts, std::size(parts),
                                           decompose, &last_class);
    GANNET_CHECK(n >= 0 && n <= std::ssize(parts), "U+{} decomposes into {}", step.code_point, n);
    code_points.insert(code_points.end(), parts, parts + n);
  }
  order_canonically(code_points);
  auto n = std::ssize(code_points);
  if (compose) {
    n = utf8proc_normalize_utf32(code_points.data(), n,
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    GANNET_CHECK(n >= 0, "utf8proc error {}", n);
  }
  for (ptrdiff_t i = 0; i < n; ++i) append_utf8(out, static_cast<char32_t>(code_points[static_cast<size_t>(i)]));
}

}  // namespace

std::string normalized(std::string_view text, NormalForm form) {
  std::string out;
  out.reserve(text.size());
  const char* end = text.data() + text.size();
  const char* run = text.data();  // start of the well-formed run that p is in
  bool ascii = true;
  const auto close_run = [&](const char* stop) {
    const std::string_view part(run, static_cast<size_t>(stop - run));
    if (ascii) {
      out.append(part);
    } else {
      append_normalized(out, part, form);
    }
    ascii = true;
  };
  for (const char* p = run; p < end;) {
    const Utf8Step step = utf8_step(p, end);
    if (step.kind != Utf8Step::Kind::character || is_inert(step.code_point)) {
      close_run(p);
      out.append(p, step.size);
      run = p + step.size;
    }
    p += step.size;
    ascii = ascii && (p == run || step.size == 1);
  }
  close_run(end);
  return out;
}

void append_lower(std::string& out, char32_t c) {
  if (c == 0x130) {  // the one character whose full lower-case mapping is longer than the simple one
    out += "i\xCC\x87";
    return;
  }
  append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

}  // namespace gannet
