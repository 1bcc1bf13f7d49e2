#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ranges.h"
#include "base/result.h"
#include "base/units.h"

namespace stoker {

class TomlTable;

/// A parsed TOML text. Keeps toml++ out of everybody else's compile time.
class TomlDocument {
 public:
  /// `file` is the name that errors point at; `page` documents the keys of this kind of file.
  [[nodiscard]] static Result<TomlDocument> parse(
      std::string_view text, const std::string& file,
      std::string page = "docs/reference/machine-file.md");
  /// Valid as long as this document.
  [[nodiscard]] TomlTable root() const;

 private:
  std::shared_ptr<const void> parsed_;  ///< a toml::parse_result
  std::string file_, page_;
};

/// Reads one TOML table key by key and remembers what was wrong; the error that stands first in the
/// file is the one that is reported. A key that nobody asked for is an error, too. Borrows from its
/// document.
class TomlTable {
 public:
  /// False when the file has no such table: then every key is absent.
  [[nodiscard]] bool present() const { return table_ != nullptr; }
  [[nodiscard]] bool empty() const;
  [[nodiscard]] bool has(std::string_view key) const;

  /// Each sets `target` when the key is there and good.
  void number(const char* key, const Range& range, double scale, double& target);
  void integer(const char* key, const Range& range, int& target);
  void size(const char* key, const Range& range, Bytes& target);
  void text(const char* key, std::string& target);
  void boolean(const char* key, bool& target);
  /// A text, or a number as it is written ("8.6" or 8.6).
  [[nodiscard]] std::optional<std::string> word(const char* key);
  /// A list of texts, numbers and switches, or one of them, each as text; nullopt when the key is
  /// absent.
  [[nodiscard]] std::optional<std::vector<std::string>> words(const std::string& key);
  /// A list of such lists.
  [[nodiscard]] std::optional<std::vector<std::vector<std::string>>> rows(const std::string& key);
  [[nodiscard]] bool is_table(std::string_view key) const;
  [[nodiscard]] bool is_text(std::string_view key) const;
  /// The keys of this table in the order in which they stand in the file.
  [[nodiscard]] std::vector<std::string> keys() const;
  /// "study.toml:12, [axes] batch", for errors that are found later.
  [[nodiscard]] std::string place(std::string_view key) const;
  /// The table under `key`; errors call it "[key]".
  [[nodiscard]] TomlTable table(const std::string& key);
  /// The tables that stand under [[key]], in their order.
  [[nodiscard]] std::vector<TomlTable> tables(const char* key);
  /// The keys of this table that were not asked for yet, which must be whole numbers.
  [[nodiscard]] std::map<std::string, std::int64_t> other_integers();
  /// Whether this table begins after another in the file.
  [[nodiscard]] bool stands_after(const TomlTable& other) const {
    return line("") > other.line("");
  }
  /// "lab.toml:31".
  [[nodiscard]] std::string location() const;
  /// All keys of this table, which must be texts.
  [[nodiscard]] std::map<std::string, std::string> texts();
  /// The table as TOML text under its own name.
  [[nodiscard]] std::string as_toml() const;

  /// Records an error at `key`, or at the table when the key is absent.
  void reject(std::string_view key, std::string message);
  /// The first error in the file's order, keys that were never asked for included.
  [[nodiscard]] std::optional<Error> finish();

 private:
  friend class TomlDocument;
  TomlTable(const void* table, std::string key, std::string file, std::string page)
      : table_(table), key_(std::move(key)), file_(std::move(file)), page_(std::move(page)) {}

  /// What stands between the brackets above a table of this one.
  [[nodiscard]] std::string heading(const std::string& key) const;
  [[nodiscard]] std::string where(std::string_view key) const;
  [[nodiscard]] std::uint32_t line(std::string_view key) const;

  const void* table_;  ///< a toml::table
  std::string key_;    ///< under which it stands; empty for the root
  std::string file_, page_;
  std::vector<std::string> asked_;
  std::optional<Error> error_;
  std::uint32_t error_line_ = 0;
};

}  // namespace stoker
