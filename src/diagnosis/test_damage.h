#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "observe/record/fields.h"
#include "observe/sample/sample.h"

/// Samples whose numbers are anything, as a damaged or made-up recording may hold them.
namespace stoker::test_job {

/// Calls visit(number) for every number of a sample that a recording has in full.
template <class Visit>
void each_number(Sample& sample, Visit visit) {
  visit(sample.at_ns);
  for (ProcessSample& p : sample.processes) record::each_field(p, visit);
  if (sample.has_host) record::each_host_field(sample.host, visit);
  for (GpuSample& g : sample.gpus) record::each_gpu_field(g, visit);
}

inline constexpr std::array<std::int64_t, 10> kExtremes{std::numeric_limits<std::int64_t>::min(),
                                                        std::numeric_limits<std::int64_t>::max(),
                                                        std::int64_t{-1},
                                                        std::int64_t{0},
                                                        std::int64_t{1} << 62,
                                                        -(std::int64_t{1} << 62),
                                                        std::int64_t{1} << 53,
                                                        std::int64_t{1} << 40,
                                                        std::int64_t{1} << 32,
                                                        std::int64_t{1'000'000'000}};

/// Sets one of a sample's numbers, counted around.
inline void damage(Sample& sample, std::uint64_t which, std::int64_t value) {
  std::uint64_t count = 0;
  each_number(sample, [&](std::int64_t&) { ++count; });
  std::uint64_t at = 0;
  each_number(sample, [&](std::int64_t& number) {
    if (at++ == which % count) number = value;
  });
}

}  // namespace stoker::test_job
