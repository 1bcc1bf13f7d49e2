#include "base/tar_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>

namespace stoker {
namespace {

constexpr std::size_t kBlock = 512;

/// One member of a ustar archive: its header claims `size` bytes, whatever `content` holds.
std::string member(const std::string& name, std::uint64_t size, std::string content) {
  std::string header(kBlock, '\0');
  const auto put = [&](std::size_t at, const std::string& text) {
    std::ranges::copy(text, header.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0, name);
  put(100, "0000644");
  put(124, fmt::format("{:011o}", size));
  put(148, std::string(8, ' '));
  put(156, "0");
  put(257, "ustar");
  put(263, "00");
  put(148, fmt::format("{:06o}", std::accumulate(header.begin(), header.end(), 0U)));
  content.resize((content.size() + kBlock - 1) / kBlock * kBlock);
  return header + content;
}

std::string written(const std::string& archive) {
  const std::string path = testing::TempDir() + "tar_reader.tar";
  std::ofstream(path, std::ios::binary) << archive;
  return path;
}

TEST(TarReader, ReadsMembersOneAfterTheOther) {
  const std::string path = written(member("a", 5, "first") + member("b", 1000, "second") +
                                   std::string(kBlock, '\0') + std::string(2 * kBlock, '\0'));
  TarReader archive(path);
  ASSERT_TRUE(archive.is_tar());
  std::string content;
  ASSERT_EQ(archive.next(), TarReader::Step::kMember);
  EXPECT_EQ(archive.name(), "a");
  EXPECT_TRUE(archive.read(content));
  EXPECT_EQ(content, "first");
  ASSERT_EQ(archive.next(), TarReader::Step::kMember);
  EXPECT_TRUE(archive.read(content));
  EXPECT_EQ(content.size(), 1000U);
  EXPECT_EQ(archive.next(), TarReader::Step::kEnd);
}

TEST(TarReader, AMemberThatClaimsMoreThanIsThereTakesNoMemoryForIt) {
  TarReader archive(written(member("a", (8ULL << 30) - 1, std::string(3 * kBlock, 'x'))));
  ASSERT_EQ(archive.next(), TarReader::Step::kMember);
  EXPECT_EQ(archive.size(), (8LL << 30) - 1);
  std::string content;
  EXPECT_FALSE(archive.read(content));
  EXPECT_EQ(content, std::string(3 * kBlock, 'x'));
  EXPECT_LE(content.capacity(), 2 * TarReader::kReadBlock);
}

TEST(TarReader, WhatIsNoArchiveIsTold) {
  EXPECT_FALSE(TarReader(written("no archive")).is_tar());
  EXPECT_FALSE(TarReader(testing::TempDir() + "there_is_none.tar").readable());
}

}  // namespace
}  // namespace stoker
