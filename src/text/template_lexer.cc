#include "text/template_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace gannet {
namespace {

using Kind = TemplateToken::Kind;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_word(char c) { return is_word_start(c) || is_digit(c); }

// "\r\n" and "\r" become "\n"; one line break at the end is not part of a template.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(normalized(source)), source_(text_) {}

  Result<std::vector<TemplateToken>> run() {
    while (at_ < source_.size()) GANNET_TRY(read_data());
    push(Kind::end, "");
    return std::move(tokens_);
  }

 private:
  Error error(std::string_view what) const {
    return Error{Errc::bad_file, fmt::format("line {}: {}", line_, what)};
  }
  bool has(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  void push(Kind kind, std::string value) { tokens_.push_back({kind, std::move(value), line_}); }
  void skip(size_t n) {
    line_ += static_cast<int32_t>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                             source_.begin() + static_cast<std::ptrdiff_t>(at_ + n), '\n'));
    at_ += n;
  }
  void skip_spaces() {
    size_t n = 0;
    while (at_ + n < source_.size() && is_space(source_[at_ + n])) ++n;
    skip(n);
  }

  // Text before a tag that starts at `tag`, trimmed as the tag asks.
  std::string trimmed_data(size_t tag, bool is_output) const {
    std::string_view data = source_.substr(at_, tag - at_);
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    if (sign == '-') {
      while (!data.empty() && is_space(data.back())) data.remove_suffix(1);
    } else if (sign != '+' && !is_output) {
      const size_t line = data.rfind('\n') + 1;  // npos + 1 is 0
      const bool starts_line = line > 0 || at_ == 0 || source_[at_ - 1] == '\n';
      if (starts_line && std::all_of(data.begin() + static_cast<std::ptrdiff_t>(line), data.end(), is_space))
        data = data.substr(0, line);
    }
    return std::string(data);
  }

  // Moves past the end of a tag whose mark is `mark` ("%}", "#}", "}}"); false when it does not stand here.
  bool skip_close(std::string_view mark, bool trims_newline) {
    const std::string minus = fmt::format("-{}", mark), plus = fmt::format("+{}", mark);
    if (has(minus)) {
      skip(minus.size());
      skip_spaces();
    } else if (trims_newline && has(plus)) {
      skip(plus.size());
    } else if (has(mark)) {
      skip(mark.size());
      if (trims_newline && has("\n")) skip(1);
    } else {
      return false;
    }
    return true;
  }

  Status read_data() {
    size_t tag = at_;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) break;
      const char next = source_[tag + 1];
      if (next == '%' || next == '{' || next == '#') break;
      ++tag;
    }
    if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
      push(Kind::data, std::string(source_.substr(at_)));
      skip(source_.size() - at_);
      return ok();
    }
    const char type = source_[tag + 1];
    if (std::string data = trimmed_data(tag, type == '{'); !data.empty()) push(Kind::data, std::move(data));
    skip(tag - at_);
    if (type == '#') return skip_comment();
    if (type == '%' && is_raw_tag("raw")) return read_raw();
    push(type == '%' ? Kind::open_block : Kind::open_output, "");
    skip(2);
    if (has("-") || has("+")) skip(1);
    return read_tag(type == '%');
  }

  Status skip_comment() {
    const size_t end = source_.find("#}", at_ + 2);
    if (end == std::string_view::npos) return error("a comment is not closed");
    const bool signed_end = end > at_ + 2 && (source_[end - 1] == '-' || source_[end - 1] == '+');
    skip(end - at_ - (signed_end ? 1 : 0));
    skip_close("#}", true);
    return ok();
  }

  // Whether the tag here is {% word %}, with any signs.
  bool is_raw_tag(std::string_view word) const {
    std::string_view rest = source_.substr(at_ + 2);
    if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
    while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
    if (!rest.starts_with(word)) return false;
    rest.remove_prefix(word.size());
    while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
    return rest.starts_with("%}") || rest.starts_with("-%}") || rest.starts_with("+%}");
  }
  // To the end mark of such a tag.
  void skip_to_close() { skip(source_.find_first_of("-+%", at_ + 3) - at_); }

  Status read_raw() {
    skip_to_close();
    skip_close("%}", false);
    for (size_t tag = source_.find("{%", at_); tag != std::string_view::npos; tag = source_.find("{%", tag + 2)) {
      const size_t begin = at_;
      at_ = tag;
      const bool is_end = is_raw_tag("endraw");
      at_ = begin;
      if (!is_end) continue;
      if (std::string data = trimmed_data(tag, false); !data.empty()) push(Kind::data, std::move(data));
      skip(tag - at_);
      skip_to_close();
      skip_close("%}", true);
      return ok();
    }
    return error("a raw block is not closed");
  }

  Status read_tag(bool is_block) {
    std::string closers;  // brackets that are open
    while (true) {
      skip_spaces();
      if (at_ >= source_.size()) return error("a tag is not closed");
      if (closers.empty() && skip_close(is_block ? "%}" : "}}", is_block)) {
        push(is_block ? Kind::close_block : Kind::close_output, "");
        return ok();
      }
      const char c = source_[at_];
      if (c == '\'' || c == '"')
        GANNET_TRY(read_text(c));
      else if (is_digit(c))
        GANNET_TRY(read_number());
      else if (is_word_start(c))
        read_name();
      else
        GANNET_TRY(read_operator(closers));
    }
  }

  void read_name() {
    size_t n = 0;
    while (at_ + n < source_.size() && is_word(source_[at_ + n])) ++n;
    push(Kind::name, std::string(source_.substr(at_, n)));
    skip(n);
  }

  Status read_number() {
    std::string digits;
    bool is_real = false;
    const auto take_digits = [&] {
      while (at_ < source_.size() && (is_digit(source_[at_]) || source_[at_] == '_')) {
        if (source_[at_] != '_') digits += source_[at_];
        ++at_;
      }
    };
    take_digits();
    if (at_ + 1 < source_.size() && source_[at_] == '.' && is_digit(source_[at_ + 1])) {
      is_real = true;
      digits += source_[at_++];
      take_digits();
    }
    if (at_ < source_.size() && (source_[at_] == 'e' || source_[at_] == 'E')) {
      const size_t sign = at_ + 1 < source_.size() && (source_[at_ + 1] == '+' || source_[at_ + 1] == '-') ? 1 : 0;
      if (at_ + 1 + sign < source_.size() && is_digit(source_[at_ + 1 + sign])) {
        is_real = true;
        digits += source_.substr(at_, 1 + sign);
        at_ += 1 + sign;
        take_digits();
      }
    }
    if (at_ < source_.size() && is_word(source_[at_])) return error("a number runs into a name");
    if (digits.size() > 64) return error("a number has more than 64 digits");
    push(is_real ? Kind::real : Kind::integer, std::move(digits));
    return ok();
  }

  Status read_operator(std::string& closers) {
    constexpr std::array<std::string_view, 26> kOperators{"**", "//", "==", "!=", "<=", ">=", "+", "-", "*",
                                                          "/",  "%",  "~",  "(",  ")",  "[",  "]", "{", "}",
                                                          "=",  "<",  ">",  ".",  ",",  ":",  "|", ";"};
    for (const std::string_view op : kOperators) {
      if (!has(op)) continue;
      if (op == "(" || op == "[" || op == "{") {
        closers += op == "(" ? ')' : op == "[" ? ']' : '}';
      } else if (op == ")" || op == "]" || op == "}") {
        if (closers.empty() || closers.back() != op[0]) return error(fmt::format("'{}' closes nothing", op));
        closers.pop_back();
      }
      push(Kind::op, std::string(op));
      skip(op.size());
      return ok();
    }
    return error(fmt::format("byte 0x{:02x} is not allowed in a tag", static_cast<unsigned char>(source_[at_])));
  }

  Status read_text(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return error("a string is not closed");
    std::string out;
    for (size_t i = at_ + 1; i < end;)
      i = source_[i] == '\\' ? read_escape(i, end, out) : (out += source_[i], i + 1);
    push(Kind::text, std::move(out));
    skip(end + 1 - at_);
    return ok();
  }

  // Python's escapes. Returns the offset after the escape that starts at `i`.
  size_t read_escape(size_t i, size_t end, std::string& out) const {
    const char c = source_[i + 1];
    constexpr std::string_view kPlain = "\\'\"abfnrtv", kMeaning = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t at = kPlain.find(c); at != std::string_view::npos) {
      out += kMeaning[at];
      return i + 2;
    }
    if (c == '\n') return i + 2;
    size_t n_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t value = 0, base = 16;
    size_t begin = i + 2, n = 0;
    if (c >= '0' && c <= '7') n_digits = 3, base = 8, begin = i + 1;
    for (; n < n_digits && begin + n < end; ++n) {
      const char d = source_[begin + n];
      const uint32_t digit = is_digit(d)                          ? static_cast<uint32_t>(d - '0')
                             : (d | 32) >= 'a' && (d | 32) <= 'f' ? static_cast<uint32_t>((d | 32) - 'a' + 10)
                                                                  : 99;
      if (digit >= base) break;
      value = value * base + digit;
    }
    if (n == 0 || (base == 16 && n < n_digits)) {  // no escape: both bytes stand for themselves
      out += source_[i];
      return i + 1;
    }
    const bool valid = value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
    append_utf8(out, valid ? char32_t{value} : U'\uFFFD');
    return begin + n;
  }

  std::string text_;
  std::string_view source_;
  size_t at_ = 0;
  int32_t line_ = 1;
  std::vector<TemplateToken> tokens_;
};

}  // namespace

Result<std::vector<TemplateToken>> tokenize_template(std::string_view source) { return Lexer(source).run(); }

}  // namespace gannet
