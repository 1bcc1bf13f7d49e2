#pragma once

#include <span>
#include <string>

#include "cli/arguments/arguments.h"

namespace stoker::cli {

/// `stoker --help`: what it is for by examples, on part of a screen.
[[nodiscard]] std::string short_help(std::span<const Section> sections);
/// `stoker --help-all`: all verbs, under what a user wants.
[[nodiscard]] std::string main_help(std::span<const Section> sections);

enum class HelpPart {
  kFirst,  ///< what matters first, in about fifteen lines
  kAll
};

/// `stoker VERB --help` and `--help-all`.
[[nodiscard]] std::string verb_help(const Command& command, HelpPart part);

/// What a setting is, with its default and, among all flags, what others call it.
[[nodiscard]] std::string help_words(const SettingRow& setting, HelpPart part);

/// "Usage: stoker predict [MODEL] --gpu GPU [FLAGS]"
[[nodiscard]] std::string usage_text(const Command& command);

/// "--workers N", "--[no-]pin", "-o, --output FILE", "MODEL".
[[nodiscard]] std::string usage_of(const SettingRow& setting);

/// A setting's line of help, cut to one: at a comma or a word, with "..." behind it.
[[nodiscard]] std::string short_line(const std::string& left, const std::string& words);

/// `words` behind `left`, in lines of at most 100 columns, or the terminal's.
[[nodiscard]] std::string help_line(const std::string& left, const std::string& words);

}  // namespace stoker::cli
