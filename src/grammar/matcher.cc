#include <algorithm>

#include "base/check.h"
#include "grammar/constraint.h"
#include "grammar/impl.h"

namespace gannet::grammar {

struct Matcher::State {
  xgrammar::GrammarMatcher matcher;
  int32_t vocabulary_size;
};

Matcher::Matcher(const CompiledConstraint& constraint)
    : state_(std::make_unique<State>(
          State{xgrammar::GrammarMatcher(constraint.impl().grammar), constraint.impl().vocabulary_size})) {}
Matcher::Matcher(std::unique_ptr<State> state) : state_(std::move(state)) {}
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher& Matcher::operator=(Matcher&&) noexcept = default;
Matcher::~Matcher() = default;

void Matcher::fill_mask(std::span<uint32_t> words) {
  GANNET_CHECK(static_cast<int32_t>(words.size()) == (state_->vocabulary_size + 31) / 32);
  if (ended()) {
    std::ranges::fill(words, 0);
    return;
  }
  int64_t shape = static_cast<int64_t>(words.size());
  DLTensor mask{};
  mask.data = words.data();
  mask.device = {kDLCPU, 0};
  mask.ndim = 1;
  mask.dtype = xgrammar::GetBitmaskDLType();
  mask.shape = &shape;
  state_->matcher.FillNextTokenBitmask(&mask);
  // Bits past the vocabulary stand for no token.
  if (const int32_t used = state_->vocabulary_size % 32; used != 0) words.back() &= (uint32_t{1} << used) - 1;
}

bool Matcher::accept(int32_t token) {
  if (token < 0 || token >= state_->vocabulary_size || ended() || !state_->matcher.AcceptToken(token)) return false;
  ++n_accepted_;
  return true;
}

void Matcher::rollback(int32_t n) {
  GANNET_CHECK(n >= 0 && n <= n_accepted_);
  if (n > 0) state_->matcher.Rollback(n);
  n_accepted_ -= n;
}

bool Matcher::may_end() const { return state_->matcher.IsCompleted(); }
bool Matcher::ended() const { return state_->matcher.IsTerminated(); }
std::string Matcher::forced_text() { return ended() ? std::string() : state_->matcher.FindJumpForwardString(); }

Matcher Matcher::fork() const {
  Matcher copy(std::make_unique<State>(State{state_->matcher.Fork(), state_->vocabulary_size}));
  copy.n_accepted_ = n_accepted_;
  return copy;
}

}  // namespace gannet::grammar
