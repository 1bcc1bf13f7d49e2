#include "system/page_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/opened_file.h"

namespace stoker {
namespace {
namespace fs = std::filesystem;

TEST(PageCache, CountsWholePages) {
  const double page = static_cast<double>(page_size().count());
  EXPECT_GE(page, 4096);
  EXPECT_DOUBLE_EQ(pages_in(Bytes{}), 0);
  EXPECT_DOUBLE_EQ(pages_in(Bytes(1)), 1);
  EXPECT_DOUBLE_EQ(pages_in(page_size()), 1);
  EXPECT_DOUBLE_EQ(pages_in(page_size() + Bytes(1)), 2);
}

TEST(PageCache, HoldsAFileThatWasJustWritten) {
  const fs::path path =
      fs::temp_directory_path() / ("stoker_page_cache_" + std::to_string(::getpid()));
  const Bytes size = page_size() * 3 + Bytes(5);
  ASSERT_TRUE(write_file(path, std::string(static_cast<std::size_t>(size.count()), 'x')));
  {
    const OpenedFile file(path);
    ASSERT_TRUE(file.good());
    EXPECT_EQ(cached_pages_by_mincore(file.handle(), size), 4);
    EXPECT_EQ(cached_pages_by_cachestat(file.handle()).value_or(4), 4)
        << "older kernels do not tell";
    EXPECT_EQ(cached_pages_by_mincore(file.handle(), Bytes{}), 0);
    drop_cached_pages(file.handle());  // tmpfs keeps them, and so do pages that are not written yet
    EXPECT_LE(*cached_pages_by_mincore(file.handle(), size), 4);
  }
  fs::remove(path);
}

TEST(PageCache, AHandleThatIsNoneTellsNothing) {
  EXPECT_FALSE(cached_pages_by_cachestat(-1));
  EXPECT_FALSE(cached_pages_by_mincore(-1, Bytes(4096)));
}

}  // namespace
}  // namespace stoker
