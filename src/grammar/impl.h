// The parts of constraint.h that name XGrammar's types. Included by the .cc files of this folder only.
#pragma once

#include <xgrammar/xgrammar.h>

#include "grammar/constraint.h"

namespace gannet::grammar {

struct Vocabulary::Impl {
  xgrammar::TokenizerInfo info;
  int32_t size;
};

struct CompiledConstraint::Impl {
  xgrammar::CompiledGrammar grammar;
  int32_t vocabulary_size;
};

}  // namespace gannet::grammar
