#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace stoker::study {

/// A folder that lives as long as a test.
struct TestFolder {
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "stoker-study-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  TestFolder(TestFolder&&) = delete;
  TestFolder& operator=(TestFolder&&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

  std::filesystem::path path;
};

}  // namespace stoker::study
