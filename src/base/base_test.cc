#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/diagnostics.h"
#include "base/durations.h"
#include "base/files.h"
#include "base/text.h"
#include "base/units.h"

namespace stoker {
namespace {

class FilesTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(testing::TempDir()) / ("stoker_files_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path gzip(const std::string& content) const {
    const auto path = folder_ / "x.gz";
    gzFile file = gzopen(path.c_str(), "wb9");
    gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    gzclose(file);
    return path;
  }
  std::filesystem::path folder_;
};

TEST_F(FilesTest, GzipRoundTrip) {
  EXPECT_EQ(read_gzip_file(gzip("hello"), kMiB).value(), "hello");
}

TEST_F(FilesTest, AHugeClaimInAFewBytesIsRefused) {
  const auto result = read_gzip_file(gzip(std::string(64 << 20, 'a')), kMiB);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("decompresses to more"), std::string::npos);
}

TEST_F(FilesTest, CutShortAndNotGzipAreToldApart) {
  const auto path = gzip(std::string(100000, 'x') + "tail");
  std::filesystem::resize_file(path, 40);
  EXPECT_NE(read_gzip_file(path, kMiB).error().message.find("cut short"), std::string::npos);
  std::ofstream(path) << "plain text";
  EXPECT_NE(read_gzip_file(path, kMiB).error().message.find("not gzip"), std::string::npos);
}

TEST_F(FilesTest, MissingFileAndFolderSayWhich) {
  EXPECT_EQ(read_file(folder_ / "none", kMiB).error().code, ErrorCode::kIo);
  EXPECT_NE(read_file(folder_, kMiB).error().message.find("folder"), std::string::npos);
}

TEST_F(FilesTest, WriteReplacesAndLeavesNothingBehind) {
  const auto path = folder_ / "out";
  ASSERT_TRUE(write_file(path, "one"));
  ASSERT_TRUE(write_file(path, "two"));
  EXPECT_EQ(read_file(path, kMiB).value(), "two");
  EXPECT_FALSE(write_file(folder_ / "no" / "out", "x"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

/// Limits the size of files that this process may write, for the life of the object.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  SizeLimit(const SizeLimit&) = delete;
  SizeLimit& operator=(const SizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_F(FilesTest, WriteThatFailsKeepsTheOldFileAndLeavesNothing) {
  const std::filesystem::path path = folder_ / "out";
  ASSERT_TRUE(write_file(path, "old"));
  {
    const SizeLimit limit(1000);
    const Status status = write_file(path, std::string(100'000, 'x'));
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find("the old file is untouched"), std::string::npos)
        << status.error().text();
  }
  EXPECT_EQ(*read_file(path, kMiB), "old");
  int entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    (void)entry;
    ++entries;
  }
  EXPECT_EQ(entries, 1);
}

TEST_F(FilesTest, DevicesAreWrittenToAndNotReplaced) {
  EXPECT_TRUE(write_file("/dev/null", "x"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  const Status full = write_file("/dev/full", "x");
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find("No space left"), std::string::npos) << full.error().text();
}

/// One environment variable, given back at the end; null: not set.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* had = std::getenv(name)) had_ = had;
    if (value != nullptr) ::setenv(name, value, 1);
    else ::unsetenv(name);
  }
  ~Environment() {
    if (had_) ::setenv(name_, had_->c_str(), 1);
    else ::unsetenv(name_);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> had_;
};

/// The cases of python/tests/test_cache.py: both keep what they make in one folder.
TEST(CacheFolder, FollowsTheEnvironment) {
  const auto folder = [](const char* given, const char* home) {
    const Environment xdg("XDG_CACHE_HOME", given), user("HOME", home);
    return cache_folder().string();
  };
  EXPECT_EQ(folder("/caches", "/home/ann"), "/caches/stoker");
  EXPECT_EQ(folder(nullptr, "/home/ann"), "/home/ann/.cache/stoker");
  EXPECT_EQ(folder("", "/home/ann"), "/home/ann/.cache/stoker");
  const std::string own = "/tmp/cache-" + std::to_string(::getuid()) + "/stoker";
  EXPECT_EQ(folder(nullptr, nullptr), own);
  EXPECT_EQ(folder(nullptr, ""), own);
}

TEST(Text, NearestName) {
  const std::vector<std::string> names{"v100-sxm2-16gb", "a100-pcie-40gb", "rtx-3090"};
  EXPECT_EQ(nearest_name("rtx3091", names), "rtx-3090");
  EXPECT_EQ(nearest_name("a100", names), "a100-pcie-40gb");
  EXPECT_EQ(nearest_name("zzzzzzzz", names), "");
}

TEST(Text, ParseBytes) {
  EXPECT_EQ(parse_bytes("64G").value(), 64 * kGiB);
  EXPECT_EQ(parse_bytes("1.5 GiB").value().count(), 3 * kGiB.count() / 2);
  EXPECT_EQ(parse_bytes("512MB").value(), 512 * kMiB);
  EXPECT_EQ(parse_bytes("1000").value(), Bytes(1000));
  for (const char* bad : {"", "x", "-1G", "1Q", "1e40G", "nan", "G"}) {
    EXPECT_FALSE(parse_bytes(bad)) << bad;
  }
}

TEST(Text, HashIsTheReferenceFnv1a) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325ULL);  // the algorithm's own test vectors
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8ULL);
}

TEST(Text, HumanForms) {
  EXPECT_EQ(human_bytes(Bytes(512)), "512 B");
  EXPECT_EQ(human_bytes(12 * kGiB), "12.0 GiB");
  EXPECT_EQ(human_time(Nanos(41e3)), "41 us");
  EXPECT_EQ(human_time(kSecond * 200.0), "3 min 20 s");
  EXPECT_EQ(human_time(kSecond * 7500.0), "2 h 05 min");
  EXPECT_EQ(with_commas(1281167), "1,281,167");
  EXPECT_EQ(with_commas(-1000), "-1,000");
}

TEST(DiagnosticsTest, CountsByName) {
  Diagnostics d;
  d.add("uncosted", Severity::kWarning, "costed by bytes");
  d.add("uncosted", Severity::kWarning, "costed by bytes", 2);
  EXPECT_EQ(d.count("uncosted"), 3);
  EXPECT_EQ(d.all().size(), 1U);
}

TEST(Durations, SayWhatTheyAreInAnotherUnit) {
  EXPECT_EQ(as_nanos(1.5_us), 1500_ns);
  EXPECT_EQ(as_nanos(2_s), kSecond * 2);
  EXPECT_EQ(as_nanos(1_us), kMicrosecond);
  EXPECT_EQ(as_micros(2500_ns), 2.5_us);
  EXPECT_EQ(as_micros(0.25_s), 250000_us);
  EXPECT_EQ(as_seconds(500000_us), 0.5_s);
  EXPECT_EQ(as_seconds(3e9_ns), 3_s);
  EXPECT_EQ(as_seconds(kMillisecond).count(), seconds(kMillisecond));
}

TEST(Units, KeepTheirUnit) {
  EXPECT_EQ((kGiB / kMiB), 1024.0);
  EXPECT_EQ((Bytes(5) + Bytes(7)).count(), 12);
  EXPECT_LT(kMicrosecond, kMillisecond);
}

}  // namespace
}  // namespace stoker
