#include "cli/arguments/man_page.h"

#include <algorithm>

#include "base/text.h"
#include "cli/arguments/help.h"
#include "cli/arguments/version.h"

namespace stoker::cli {
namespace {

/// Text that troff takes as it is: no escapes, no requests at the beginning of a line.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() && (c == '.' || c == '\'')) out += "\\&";
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '"':
        out += "\\(dq";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '`':
        out += "\\(ga";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string heading(std::string_view request, std::string_view words) {
  return "." + std::string(request) + " \"" + plain(words) + "\"\n";
}

std::string tagged(const std::string& tag, const std::string& words) {
  return ".TP\n\\fB" + plain(tag) + "\\fR\n" + plain(words) + "\n";
}

/// Lines as they are.
std::string verbatim(const std::string& text) {
  std::string out = ".PP\n.nf\n";
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty()) out += plain(line) + "\n";
  }
  return out + ".fi\n";
}

std::string verb_part(const Command& command) {
  std::string text = heading("SS", "stoker " + command.name) + plain(command.summary) + "\n" +
                     verbatim(usage_text(command));
  for (const SettingRow* s : settings_of(command.name))
    text += tagged(usage_of(*s), help_words(*s, HelpPart::kAll));
  if (!command.run)
    text += ".PP\nIts work is Python\\(aqs: \\fBstoker " + plain(command.name) +
            " \\-\\-help\\-all\\fR shows all of its flags.\n";
  return command.examples.empty() ? text : text + verbatim(command.examples);
}

constexpr std::pair<const char*, const char*> kEverywhere[] = {
    {"-h, --help", "the flags that matter first, in a screen"},
    {"--help-all", "all flags"},
    {"-q, --quiet", "without what an answer rests on, assumed and left out"},
    {"--color auto|always|never",
     "colour for verdicts; auto: on a terminal, unless NO_COLOR is set"},
    {"--version", "the version"}};

constexpr std::pair<const char*, const char*> kEnvironment[] = {
    {"STOKER_PYTHON",
     "the Python that captures, probes and measures; default: the one beside the "
     "binary, else python3"},
    {"STOKER_DATA", "folder of the catalogue, the coefficients and the captured models"},
    {"STOKER_BINARY", "the binary that the Python package runs"},
    {"XDG_CACHE_HOME", "where captures and probes are kept; default: ~/.cache"},
    {"NO_COLOR", "any text: no colour"}};

constexpr std::pair<const char*, const char*> kExits[] = {
    {"0", "fine"},
    {"1", "the answer is no: it does not fit, nothing satisfies the limits, a band was missed"},
    {"2", "the command line cannot be meant"},
    {"3", "bad input: the sentence names file, line or field, and the cure"}};

}  // namespace

std::string man_page(std::span<const Section> sections) {
  std::string text = ".TH STOKER 1 \"\" \"stoker " + std::string(kVersion) + "\"\n.ad l\n.nh\n" +
                     heading("SH", "NAME") +
                     "stoker \\- says before a GPU is rented how a training job will run, and "
                     "why\n" +
                     heading("SH", "SYNOPSIS") +
                     "\\fBstoker\\fR \\fIVERB\\fR [\\fIFLAGS\\fR]\n.br\n\\fBstoker help\\fR "
                     "[\\fIVERB\\fR]\n" +
                     heading("SH", "DESCRIPTION") +
                     "From a model, a folder of data and the name of a machine: the best settings, "
                     "memory, time, cost and what limits them, each figure with its 90 % band and "
                     "what it rests on. It needs no GPU.\n" +
                     heading("SH", "OPTIONS OF EVERY VERB");
  for (const auto& [flag, words] : kEverywhere) text += tagged(flag, words);
  for (const Section& section : sections) {
    std::string title = section.heading;
    std::transform(title.begin(), title.end(), title.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    text += heading("SH", title);
    for (const Command& command : section.commands) text += verb_part(command);
  }
  text += heading("SH", "EXIT STATUS");
  for (const auto& [code, words] : kExits) text += tagged(code, words);
  text += heading("SH", "ENVIRONMENT");
  for (const auto& [name, words] : kEnvironment) text += tagged(name, words);
  return text;
}

}  // namespace stoker::cli
