#include "input/loader/fifo.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace stoker::loader {
namespace {

TEST(Fifo, DoesWhatADequeDoes) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    Fifo<int> fifo;
    std::deque<int> deque;
    const unsigned likely = 1 + random() % 9;  // of ten: some queues stay short, others grow
    for (int i = 0; i < 500; ++i) {
      if (random() % 10 < likely) {
        fifo.push_back(i);
        deque.push_back(i);
      } else if (!deque.empty()) {
        ASSERT_EQ(fifo.front(), deque.front()) << trial;
        fifo.pop_front();
        deque.pop_front();
      }
      ASSERT_EQ(fifo.size(), deque.size()) << trial;
      ASSERT_EQ(fifo.empty(), deque.empty()) << trial;
    }
    for (; !deque.empty(); deque.pop_front(), fifo.pop_front())
      ASSERT_EQ(fifo.front(), deque.front()) << trial;
    EXPECT_TRUE(fifo.empty());
  }
}

TEST(Fifo, APushOfItsOwnFrontIsSafe) {
  Fifo<std::vector<int>> fifo;
  for (int i = 0; i < 40; ++i) {
    fifo.push_back({i, i, i});
    if (i % 2 == 1) {
      const std::vector<int> front = fifo.front();
      fifo.pop_front();
      fifo.push_back(front);
    }
  }
  int sum = 0;
  for (; !fifo.empty(); fifo.pop_front()) sum += fifo.front()[2];
  EXPECT_EQ(sum, 39 * 40 / 2) << "each is there once";
}

}  // namespace
}  // namespace stoker::loader
