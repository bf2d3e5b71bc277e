#include "sample/lanes_avx512.h"
#include "sample/vocab_ops.h"
#include "sample/vocab_ops_lanes.h"

namespace gannet::sample {

extern const VocabOps kVocabOpsAvx512;
const VocabOps kVocabOpsAvx512{"avx512",
                               [](const Machine& machine) { return machine.cpu.avx512; },
                               argmax_lanes<LanesAvx512>,
                               scale_lanes<LanesAvx512>,
                               total_mass_lanes<LanesAvx512>,
                               exp_lanes<LanesAvx512>,
                               noisy_argmax_lanes<LanesAvx512>};

}  // namespace gannet::sample
