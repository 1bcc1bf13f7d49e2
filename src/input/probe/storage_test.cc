#include "input/probe/storage.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "input/data/image_pipeline.h"
#include "input/data/test_pictures.h"
#include "input/probe/cache_what_if.h"
#include "system/clocks.h"

namespace stoker {
namespace {

constexpr const char* kMounts =
    "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    "23 22 0:21 / /dev/shm rw - tmpfs tmpfs rw\n"
    "24 22 0:40 / /data rw shared:7 master:2 - nfs4 server:/export rw,vers=4.2\n"
    "25 24 0:41 / /data/fast\\040disk rw - xfs /dev/sdb1 rw\n"
    "26 22 0:42 / /layers rw - overlay overlay rw,lowerdir=/a:/b:/c,upperdir=/u,workdir=/w\n"
    "27 22 0:43 / /bucket rw - fuse.s3fs s3fs rw\n"
    "28 22 0:44 / /host rw - virtiofs tag rw\n"
    "29 22 0:45 / /odd rw - newfs none rw\n"
    "garbage\n";

TEST(FileSystem, IsThatOfTheLongestMountPoint) {
  const std::tuple<const char*, const char*, FileSystemKind> cases[] = {
      {"/home/me", "ext4", FileSystemKind::kLocal},
      {"/dev/shm/x", "tmpfs", FileSystemKind::kMemory},
      {"/data", "nfs4", FileSystemKind::kNetwork},
      {"/data/pictures", "nfs4", FileSystemKind::kNetwork},
      {"/database", "ext4", FileSystemKind::kLocal},
      {"/data/fast disk/x", "xfs", FileSystemKind::kLocal},
      {"/bucket", "fuse.s3fs", FileSystemKind::kFuse},
      {"/host/a", "virtiofs", FileSystemKind::kGuest},
      {"/odd/a", "newfs", FileSystemKind::kUnknown},
  };
  for (const auto& [path, name, kind] : cases) {
    const FileSystemFacts facts = file_system_from(kMounts, path, 0);
    EXPECT_EQ(facts.name, name) << path;
    EXPECT_EQ(facts.kind, kind) << path;
  }
  const FileSystemFacts overlay = file_system_from(kMounts, "/layers/x", 0);
  EXPECT_EQ(overlay.kind, FileSystemKind::kOverlay);
  EXPECT_EQ(overlay.layers, 3);
  EXPECT_TRUE(overlay.upper);
}

TEST(FileSystem, GoesByItsMagicNumberWithoutMounts) {
  EXPECT_EQ(file_system_from("", "/x", 0x58465342).name, "xfs");
  EXPECT_EQ(file_system_from("", "/x", 0x0BD00BD0).kind, FileSystemKind::kNetwork);
  EXPECT_EQ(file_system_from("", "/x", 0xFF534D42).name, "cifs");
  EXPECT_EQ(file_system_from("", "/x", 12345).name, "unknown");
  EXPECT_EQ(file_system_from("", "/x", 0).kind, FileSystemKind::kUnknown);
}

TEST(FileSystem, KindsHaveNames) {
  for (std::size_t k = 0; k < kFileSystemKinds; ++k) {
    const auto kind = static_cast<FileSystemKind>(k);
    EXPECT_EQ(file_system_kind_named(file_system_kind_name(kind)), kind);
  }
  EXPECT_FALSE(file_system_kind_named("floppy"));
}

std::vector<DataFile> some_files(const ScratchFolder& folder, int count, std::size_t size) {
  std::vector<DataFile> files;
  for (int i = 0; i < count; ++i) {
    files.push_back({folder.write(std::to_string(i) + ".jpg", std::string(size, 'x')),
                     Bytes(static_cast<std::int64_t>(size))});
  }
  return files;
}

TEST(Residency, BothWaysAgree) {
  const ScratchFolder folder;
  const std::vector<DataFile> files = some_files(folder, 20, 30'000);
  const Residency asked = residency_of(files, 1000, wall_time() + 10.0 * kSecond);
  const Residency mapped = residency_by_mincore(files);
  EXPECT_EQ(asked.files, 20);
  EXPECT_EQ(mapped.files, 20);
  EXPECT_EQ(mapped.method, "mincore");
  // Written a moment ago and not yet forgotten.
  EXPECT_NEAR(asked.share, mapped.share, 0.02);
  EXPECT_GT(asked.share, 0.9);
}

TEST(Residency, LooksAtASampleAndLeavesOutWhatIsGone) {
  const ScratchFolder folder;
  std::vector<DataFile> files = some_files(folder, 10, 5000);
  std::filesystem::remove(files[0].path);
  ASSERT_EQ(::mkfifo(files[0].path.c_str(), 0600), 0);  // must not hang
  std::filesystem::remove(files[1].path);
  EXPECT_EQ(residency_of(files, 5, wall_time() + 10.0 * kSecond).files, 3);
  EXPECT_EQ(residency_of({}, 5, {}).files, 0);
}

StorageFacts measured(const std::vector<DataFile>& files, Bytes max_read, Diagnostics& odd,
                      double seconds = 0.6) {
  StorageFacts facts;
  facts.file_system = file_system_of(files.front().path);
  measure_storage(files, {.deadline = wall_time() + seconds * kSecond, .max_read = max_read}, facts,
                  odd);
  return facts;
}

/// A cell with too few reads is left out, which on a busy machine happens within a short budget:
/// then a longer one is given.
StorageFacts measured_at_every_depth(const std::vector<DataFile>& files, Bytes max_read) {
  StorageFacts facts;
  for (const double seconds : {0.6, 3.0, 12.0}) {
    Diagnostics odd;
    facts = measured(files, max_read, odd, seconds);
    if (facts.method == ColdMethod::kNone) break;
    if (!facts.random_4k.empty() && facts.random_4k[0].depth == 1 && !facts.whole_files.empty() &&
        facts.sequential_bytes_per_s > 0 && facts.small_file_warm_us > 0)
      break;
  }
  return facts;
}

TEST(Storage, ReadsEveryDepthWithinItsBytes) {
  const ScratchFolder folder;
  std::vector<DataFile> files = some_files(folder, 200, 20'000);
  files.push_back({folder.write("large.bin", std::string(17'000'000, 'y')), Bytes(17'000'000)});
  const StorageFacts facts = measured_at_every_depth(files, 200 * kMiB);
  EXPECT_LE(facts.read.count(), 201 * kMiB.count());
  EXPECT_GT(facts.small_file_warm_us, 0);
  if (facts.method == ColdMethod::kNone) GTEST_SKIP() << "no cold reads in " << folder.path();
  ASSERT_FALSE(facts.random_4k.empty());
  EXPECT_EQ(facts.random_4k[0].depth, 1);
  for (const DepthFacts& row : facts.random_4k) {
    EXPECT_GE(row.reads, 8);
    EXPECT_NEAR(row.bytes_per_s / row.reads_per_s, 4096, 1);
    EXPECT_LE(row.mean_ms * row.reads_per_s / 1000, row.depth * 1.05)
        << "Little's law: no more reads at once than threads";
  }
  ASSERT_FALSE(facts.whole_files.empty());
  ASSERT_NE(facts.best_whole_files(), nullptr);
  EXPECT_GE(facts.best_whole_files()->reads_per_s, facts.whole_files[0].reads_per_s);
  EXPECT_GT(facts.sequential_bytes_per_s, 0);
}

TEST(Storage, StopsAtItsLimitOfBytes) {
  const ScratchFolder folder;
  const std::vector<DataFile> files = some_files(folder, 50, 2'000'000);
  Diagnostics odd;
  StorageFacts facts;
  measure_storage(files, {.deadline = wall_time() + 0.05 * kSecond, .max_read = Bytes(1)}, facts,
                  odd);
  if (facts.method != ColdMethod::kDirect) GTEST_SKIP() << "O_DIRECT is refused here";
  EXPECT_LE(facts.read.count(), 50'000) << "a limit of one byte stops after a read or two a cell";
}

TEST(Storage, SurvivesFilesThatAreGone) {
  const ScratchFolder folder;
  std::vector<DataFile> files = some_files(folder, 5, 10'000);
  for (const DataFile& file : files) std::filesystem::remove(file.path);
  Diagnostics odd;
  const StorageFacts facts = measured(files, 100 * kMiB, odd);
  EXPECT_TRUE(facts.random_4k.empty());
  EXPECT_TRUE(facts.whole_files.empty());
}

TEST(Storage, MemoryHasNoColdReads) {
  std::error_code error;
  if (!std::filesystem::is_directory("/dev/shm", error)) GTEST_SKIP() << "no /dev/shm";
  const std::filesystem::path folder = "/dev/shm/stoker-storage-test-" + std::to_string(::getpid());
  std::filesystem::create_directory(folder, error);
  if (error) GTEST_SKIP() << "/dev/shm cannot be written";
  std::ofstream(folder / "a.jpg") << std::string(10'000, 'x');
  Diagnostics odd;
  const StorageFacts facts = measured({{folder / "a.jpg", Bytes(10'000)}}, kGiB, odd);
  std::filesystem::remove_all(folder, error);
  EXPECT_EQ(facts.file_system.kind, FileSystemKind::kMemory);
  EXPECT_EQ(facts.method, ColdMethod::kNone);
  EXPECT_TRUE(facts.whole_files.empty());
  EXPECT_EQ(odd.count("no_cold_reads"), 1);
}

SystemFiles files_of(std::map<std::string, std::string> content) {
  return [content = std::move(content)](const std::string& path) -> std::optional<std::string> {
    const auto found = content.find(path);
    if (found == content.end()) return std::nullopt;
    return found->second;
  };
}

TEST(HostMemory, IsTheSmallerOfAvailableAndLimit) {
  constexpr const char* kMemory = "MemTotal: 33554432 kB\nMemAvailable:   16777216 kB\n";
  StorageFacts two;
  read_host_memory(
      files_of({{"/proc/meminfo", kMemory},
                {"/proc/self/cgroup", "0::/job\n"},
                {"/proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                {"/sys/fs/cgroup/job/memory.max", "4294967296\n"}}),
      two);
  EXPECT_EQ(two.available, 16 * kGiB);
  EXPECT_EQ(two.limit, 4 * kGiB);
  EXPECT_EQ(two.usable_memory(), 4 * kGiB);
  StorageFacts one;
  read_host_memory(files_of({{"/proc/meminfo", kMemory},
                             {"/proc/self/cgroup", "4:memory:/job\n"},
                             {"/proc/self/mountinfo",
                              "30 1 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"},
                             {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "8589934592\n"}}),
                   one);
  EXPECT_EQ(one.limit, 8 * kGiB);
  StorageFacts none;
  read_host_memory(files_of({}), none);
  EXPECT_EQ(none.usable_memory(), Bytes{});
}

Probe example(double files_per_s) {
  Probe probe;
  probe.dataset.files = probe.dataset.samples = 1'000'000;
  probe.dataset.total_bytes = 100 * kGiB;
  probe.parallel.threads = 8;
  probe.parallel.efficiency = 0.5;
  StorageFacts& storage = probe.storage.emplace();
  storage.whole_files = {{.depth = 1, .reads = 9, .reads_per_s = files_per_s / 4},
                         {.depth = 8, .reads = 9, .reads_per_s = files_per_s}};
  storage.available = 20 * kGiB;
  return probe;
}

SampleCost cost_of(double ms) {
  SampleCost cost;
  cost.cpu = {ms * kMillisecond};
  return cost;
}

TEST(CacheWhatIf, MoreMemoryMovesTheLimitToTheCores) {
  // The cores prepare 8 * 0.5 / 4 ms = 1,000 a second, storage gives 500.
  const auto rows = cache_what_if(example(500), cost_of(4), {20 * kGiB, 1000 * kGiB});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_TRUE(rows[0].this_host);
  EXPECT_DOUBLE_EQ(rows[0].first_per_s, 500);
  EXPECT_DOUBLE_EQ(rows[0].later_per_s, std::min(1000.0, 500 / (1 - rows[0].cached)));
  EXPECT_GT(rows[0].cached, 0);
  EXPECT_LT(rows[0].cached, 0.2);
  EXPECT_TRUE(rows[0].disk_bound);
  EXPECT_DOUBLE_EQ(rows[1].later_per_s, rows[0].later_per_s);
  EXPECT_DOUBLE_EQ(rows[2].cached, 1);
  EXPECT_DOUBLE_EQ(rows[2].later_per_s, 1000);
  EXPECT_FALSE(rows[2].disk_bound);
  EXPECT_DOUBLE_EQ(rows[2].later_seconds, 1000);
  EXPECT_DOUBLE_EQ(rows[2].first_seconds, 2000);
}

TEST(CacheWhatIf, SaysNothingWhereNothingWasMeasured) {
  Probe probe = example(500);
  probe.storage->whole_files.clear();
  EXPECT_TRUE(cache_what_if(probe, cost_of(4), {kGiB}).empty());
  probe.storage.reset();
  EXPECT_TRUE(cache_what_if(probe, cost_of(4), {kGiB}).empty());
  Probe records = example(500);
  records.kind = DataKind::kRecords;
  EXPECT_TRUE(cache_what_if(records, cost_of(4), {kGiB}).empty());
}

TEST(CacheWhatIf, CountsShardsByTheirBytes) {
  Probe probe = example(500);
  probe.kind = DataKind::kTarShards;
  probe.storage->sequential_bytes_per_s = 1e9;
  const double mean = static_cast<double>(probe.dataset.total_bytes.count()) / 1e6;
  EXPECT_DOUBLE_EQ(storage_samples_per_s(probe), 1e9 / mean);
}

}  // namespace
}  // namespace stoker
