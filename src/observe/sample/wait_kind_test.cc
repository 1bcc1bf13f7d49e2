#include "observe/sample/wait_kind.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(WaitKind, IsToldByStateAndKernelFunction) {
  EXPECT_EQ(wait_kind('R', ""), WaitKind::kRunning);
  EXPECT_EQ(wait_kind('S', "poll_schedule_timeout.constprop.0"), WaitKind::kPoll);
  EXPECT_EQ(wait_kind('S', "ep_poll"), WaitKind::kPoll);
  EXPECT_EQ(wait_kind('S', "futex_wait_queue_me"), WaitKind::kFutex);
  EXPECT_EQ(wait_kind('S', "futex_do_wait"), WaitKind::kFutex);
  EXPECT_EQ(wait_kind('S', "anon_pipe_read"), WaitKind::kPipe);
  EXPECT_EQ(wait_kind('S', "__skb_wait_for_more_packets"), WaitKind::kSocket);
  EXPECT_EQ(wait_kind('S', "unix_stream_read_generic"), WaitKind::kSocket);
  EXPECT_EQ(wait_kind('D', "folio_wait_bit_common"), WaitKind::kDisk);
  EXPECT_EQ(wait_kind('D', "rpc_wait_bit_killable"), WaitKind::kNetworkStorage);
  EXPECT_EQ(wait_kind('D', "request_wait_answer"), WaitKind::kNetworkStorage);
  EXPECT_EQ(wait_kind('S', "hrtimer_nanosleep"), WaitKind::kTimer);
  EXPECT_EQ(wait_kind('S', "do_wait"), WaitKind::kChild);
  EXPECT_EQ(wait_kind('T', "do_signal_stop"), WaitKind::kStopped);
  EXPECT_EQ(wait_kind('S', "a_function_of_tomorrow"), WaitKind::kOther);
}

TEST(WaitKind, WhereTheKernelHidesItOnlyTheStateTells) {
  EXPECT_EQ(wait_kind('S', "0"), WaitKind::kUnknown);
  EXPECT_EQ(wait_kind('S', ""), WaitKind::kUnknown);
  EXPECT_EQ(wait_kind('D', "0"), WaitKind::kDisk);
}

TEST(Looks, CountEachKind) {
  Looks looks;
  looks.add(WaitKind::kRunning);
  looks.add(WaitKind::kPoll);
  looks.add(WaitKind::kPoll);
  EXPECT_EQ(looks.of(WaitKind::kPoll), 2U);
  EXPECT_EQ(looks.all(), 3U);
  EXPECT_EQ(looks.asleep(), 2U);
}

}  // namespace
}  // namespace stoker
