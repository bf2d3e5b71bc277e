// Constants computed at load, against published figures.
#include <gtest/gtest.h>

#include "kernels/engram.h"
#include "model/deepseek_v41/cache.h"
#include "model/deepseek_v41/engram_hash.h"
#include "model/deepseek_v41/rope_tables.h"

namespace gannet::deepseek_v41 {
namespace {

Config released() {
  Config c;
  c.ratios.assign(40, 1);
  std::fill_n(c.ratios.begin(), 20, 2);
  c.ratios[0] = c.ratios[1] = 0;
  c.ratios.insert(c.ratios.end(), 3, 0);
  c.kv_sources = {2, 8, 14, 20};
  c.index_sources = {2, 8, 14, 20, 24, 28, 32, 36};
  c.yarn = {true, 16, 32, 1, 65536};
  c.engram.layers = {1, 14};
  c.engram.table_rows = engram_table_rows(c.engram);
  c.dspark.n_stages = 3;
  return c;
}

TEST(EngramHash, ReleasedConstants) {
  const Config c = released();
  const auto all = engram_hash_constants(c.engram, 99092);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].multiplier,
            (std::vector<uint64_t>{76632096046245, 4839876093313, 35959672319349, 73987337458391}));
  EXPECT_EQ(all[1].multiplier,
            (std::vector<uint64_t>{67716810739261, 51510806800915, 30921347202721, 82619226485591}));
  EXPECT_EQ(all[0].prime.front(), 16000057u);
  EXPECT_EQ(all[0].prime.back(), 16000463u);
  EXPECT_EQ(all[1].prime.front(), 16000477u);
  EXPECT_EQ(all[1].prime.back(), 16000889u);
  const uint64_t rows[] = {384006168, 384016682};
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(all[i].prime.size(), 24u);
    EXPECT_EQ(all[i].offset.back() + all[i].prime.back(), rows[i]);
    EXPECT_EQ(static_cast<uint64_t>(c.engram.table_rows[i]), rows[i]);
  }
}

// Row ids of one position whose last four compressed ids are `terms`, newest first.
std::vector<int64_t> hash(const EngramHashConstants& constants, std::array<int32_t, 4> terms, int32_t pos) {
  ThreadPool pool(1, false);
  Arena arena(1 << 20);
  Exec exec{pool, arena};
  const StepRows ids = make_step_rows(arena, pos + 1, 1, RowFormat::i32);
  for (int32_t p = 0; p <= pos; ++p) {
    reinterpret_cast<int32_t*>(ids.codes)[p] = terms[static_cast<size_t>(pos - p)];
    ids.tags[p] = p;
  }
  const int32_t zero = 0;
  RingRows ring;
  ring.capacity = 1;
  ring.width = 1;
  ring.format = RowFormat::i32;
  std::vector<int64_t> rows(24);
  plan(EngramHash{4, 8, 2}, this_machine())({{ids, ring, &zero, &zero},
                                             &zero,
                                             &pos,
                                             1,
                                             constants.multiplier.data(),
                                             constants.prime.data(),
                                             constants.offset.data(),
                                             rows.data()},
                                            exec);
  return rows;
}

TEST(EngramHash, ReleasedRows) {
  const auto all = engram_hash_constants(released().engram, 99092);
  auto rows = hash(all[0], {100, 200, 300, 400}, 3);
  EXPECT_EQ((std::vector<int64_t>(rows.begin(), rows.begin() + 4)),
            (std::vector<int64_t>{12013311, 19589167, 45006560, 56352444}));
  EXPECT_EQ(rows[8], 139496094);
  EXPECT_EQ(rows[16], 268309477);
  EXPECT_EQ(rows[22], 359270622);
  EXPECT_EQ(rows[23], 380048014);
  rows = hash(all[1], {100, 200, 300, 400}, 3);
  EXPECT_EQ(rows[0], 1915295);
  EXPECT_EQ(rows[1], 31448111);
  EXPECT_EQ(rows[8], 135466211);
  EXPECT_EQ(rows[16], 262487874);
  EXPECT_EQ(rows[22], 364865570);
  EXPECT_EQ(rows[23], 383274204);
  rows = hash(all[0], {100, 0, 0, 0}, 0);  // the start of a sequence: older terms are pads
  EXPECT_EQ((std::vector<int64_t>(rows.begin(), rows.begin() + 3)),
            (std::vector<int64_t>{4052413, 23667694, 42906971}));
  EXPECT_EQ(rows[23], 378065828);
  rows = hash(all[1], {100, 0, 0, 0}, 0);
  EXPECT_EQ(rows[0], 12021899);
  EXPECT_EQ(rows[1], 20784535);
  EXPECT_EQ(rows[23], 370160343);
  rows = hash(all[0], {99091, 99091, 99091, 99091}, 3);
  EXPECT_EQ(rows[0], 12193612);
  EXPECT_EQ(rows[23], 375130424);
  rows = hash(all[1], {99091, 99091, 99091, 99091}, 3);
  EXPECT_EQ(rows[0], 11374428);
  EXPECT_EQ(rows[23], 375878100);
}

TEST(RopeTables, ReleasedFrequencies) {
  const Config c = released();
  const std::vector<float> f = rope_frequencies(c, true);
  const double first[] = {1, 0.687656045, 0.472870797, 0.325172424};
  const double last[] = {2.26562493e-3, 1.39680132e-3, 8.49689706e-4, 5.08081983e-4, 2.96977785e-4, 1.68179977e-4,
                         9.08678412e-5, 4.54442270e-5, 1.95312532e-5, 5.37231244e-6, 3.69430336e-6, 2.54040970e-6,
                         1.74692798e-6, 1.20128561e-6, 8.26071300e-7, 5.68052940e-7};
  ASSERT_EQ(f.size(), 32u);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(f[i] / first[i], 1, 2e-7) << i;
  for (size_t i = 0; i < 16; ++i) EXPECT_NEAR(f[16 + i] / last[i], 1, 2e-7) << 16 + i;
  const std::vector<float> plain = rope_frequencies(c, false);
  for (size_t i = 0; i < 32; ++i) EXPECT_NEAR(plain[i] * std::pow(10000.0, static_cast<double>(i) / 32), 1, 2e-7);
}

// 890 bytes a token in blocks, 528 a window row.
TEST(Cache, ReleasedSizes) {
  CacheMap map;
  const kv::KvSpec spec = cache_spec(released(), {Numerics::precise}, map);
  EXPECT_EQ(spec.block_tokens, 128);
  int64_t bytes = 0;
  for (const kv::PlaneSpec& plane : spec.planes)
    bytes += int64_t{spec.block_tokens} / plane.tokens_per_row *
             (row_code_bytes(plane.format, plane.width) + row_scale_bytes(plane.format, plane.width));
  EXPECT_EQ(bytes, int64_t{890} * 128);
  EXPECT_EQ(spec.rings.size(), 40u + 3 + 1 + 3);
  EXPECT_EQ(spec.rings[0].capacity, 140);
  EXPECT_EQ(row_code_bytes(spec.rings[0].format, 512) + row_scale_bytes(spec.rings[0].format, 512), 528);
  EXPECT_EQ(map.compressed[19], map.compressed[14]);
  EXPECT_EQ(map.keys[36], map.keys[20]);
  EXPECT_EQ(map.compressed[1], -1);
}

}  // namespace
}  // namespace gannet::deepseek_v41
