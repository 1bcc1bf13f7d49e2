#include "trace/trace_origin.h"

#include <gtest/gtest.h>

#include "trace/event_reader.h"

namespace stoker {
namespace {

TEST(TraceOrigin, IsFoundBeforeAndBehindTheEvents) {
  for (
      const char* text :
      {R"({"distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8}, "traceEvents": []})",
       R"({"traceEvents": [{"args": {"a": "\"distributedInfo\": {\"rank\": 1}"}}],
            "distributedInfo":{"pg_config":[{"rank": 5}],
            "rank":3,"world_size":8,"backend":"nccl"}})",
       R"({"traceEvents": [{"ts": }],
            "distributedInfo": {"rank": 3, "world_size": 8, "backend": "nccl", )"}) {
    const TraceOrigin origin = origin_of(text);
    EXPECT_EQ(origin.rank, 3) << text;
    EXPECT_EQ(origin.world_size, 8) << text;
  }
}

TEST(TraceOrigin, IsNothingWhereItIsNotTold) {
  EXPECT_FALSE(origin_of(R"({"traceEvents": []})").rank);
  EXPECT_FALSE(origin_of(R"({"distributedInfo": {"rank": -1}})").rank);
  EXPECT_FALSE(origin_of(R"({"distributedInfo": "rank")").rank);
}

TEST(TraceOrigin, NamesOfFilesTellTheRank) {
  EXPECT_EQ(rank_in_name("/traces/rank10/rank3.json"), 3);
  EXPECT_EQ(rank_in_name("rank-0.json.gz"), 0);
  EXPECT_EQ(rank_in_name("worker12_step_7.1694.pt.trace.json"), 12);
  EXPECT_EQ(rank_in_name("trace_r4.json"), 4);
  EXPECT_FALSE(rank_in_name("vm_2914.1796019676843213836.pt.trace.json"));
  EXPECT_FALSE(rank_in_name("ranks.json"));
}

}  // namespace
}  // namespace stoker
