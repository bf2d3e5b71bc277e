#include "sample/lanes_avx2.h"
#include "sample/vocab_ops.h"
#include "sample/vocab_ops_lanes.h"

namespace gannet::sample {

extern const VocabOps kVocabOpsAvx2;
const VocabOps kVocabOpsAvx2{"avx2",
                             [](const Machine& machine) { return machine.cpu.avx2; },
                             argmax_lanes<LanesAvx2>,
                             scale_lanes<LanesAvx2>,
                             total_mass_lanes<LanesAvx2>,
                             exp_lanes<LanesAvx2>,
                             noisy_argmax_lanes<LanesAvx2>};

}  // namespace gannet::sample
