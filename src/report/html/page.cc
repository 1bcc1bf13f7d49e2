#include "report/html/page.h"

#include <map>

#include "base/text.h"
#include "report/html/page_template.h"

namespace stoker::page {
namespace {

/// Text between tags.
std::string markup_safe(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

/// JSON within a script element: without "<" nothing in it can end the element or begin another.
std::string script_safe(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') safe += "\\u003c";
    else safe += c;
  }
  return safe;
}

/// `page` up to `mark`, which it is cut behind.
std::string_view before(std::string_view& page, std::string_view mark) {
  const std::size_t at = page.find(mark);
  const std::string_view part = page.substr(0, at);
  page = at == std::string_view::npos ? std::string_view() : page.substr(at + mark.size());
  return part;
}

/// What figures rest on, and notes, are the same a hundred times over: each stands once in `texts`,
/// and its number in its places.
void share_texts(Json& value, std::map<std::string, std::int64_t>& known, Json& texts) {
  if (value.is_array()) {
    for (Json& one : value) share_texts(one, known, texts);
    return;
  }
  for (const json::Member& member : value.items()) {
    Json& child = value[member.key];
    const bool shared = member.key == "basis" || member.key == "note";
    if (!shared || !child.is_string()) {
      share_texts(child, known, texts);
      continue;
    }
    const auto next = static_cast<std::int64_t>(known.size());
    const auto [found, is_new] = known.try_emplace(child.as_string(), next);
    if (is_new) texts.push_back(found->first);
    child = found->second;
  }
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "good";
    case Verdict::kRisky:
      return "risky";
    case Verdict::kBad:
      return "bad";
    case Verdict::kNone:
      break;
  }
  return "none";
}

Verdict verdict_of(MemoryVerdictWord word) {
  switch (word) {
    case MemoryVerdictWord::kFits:
      return Verdict::kGood;
    case MemoryVerdictWord::kRisky:
      return Verdict::kRisky;
    case MemoryVerdictWord::kDoesNotFit:
      return Verdict::kBad;
  }
  return Verdict::kNone;
}

Page::Page(std::string_view kind, std::string title, std::string subtitle)
    : title_(printable(title)) {
  document_ = {{"kind", kind}, {"title", title_}, {"subtitle", printable(subtitle)}};
  document_["tiles"] = Json::array();
  document_["sections"] = Json::array();
  document_["footer"] = Json::array();
}

void Page::headline(Verdict verdict, std::string_view text, const std::vector<std::string>& lines) {
  document_["headline"] = {{"verdict", name_of(verdict)}, {"text", text}, {"lines", lines}};
}

void Page::tile(std::string_view label, const Shown& figure, std::string_view note) {
  document_["tiles"].push_back({{"label", label}, {"figure", figure.json()}, {"note", note}});
}

void Page::section(std::string_view title, std::string_view lead, const std::vector<Json>& blocks) {
  Json list = Json::array();
  for (const Json& block : blocks) {
    if (!block.is_null()) list.push_back(block);
  }
  if (list.empty()) return;
  document_["sections"].push_back({{"title", title}, {"lead", lead}, {"blocks", std::move(list)}});
}

void Page::footer(std::string_view label, const std::vector<std::string>& items) {
  if (items.empty()) return;
  document_["footer"].push_back({{"label", label}, {"items", items}});
}

void Page::text(std::string_view text) { text_ = printable_lines(text); }

std::string Page::html(std::string_view tool) const { return html_of(document_, text_, tool); }

std::string html_of(Json document, std::string_view text, std::string_view tool) {
  std::map<std::string, std::int64_t> known;
  Json texts = Json::array();
  share_texts(document, known, texts);
  document["texts"] = std::move(texts);
  document["tool"] = tool;
  const std::string title(document["title"].as_string());
  std::string_view rest = page_template();
  std::string out(before(rest, "@TITLE@"));
  out += markup_safe(title.empty() ? "Stoker" : title + " - Stoker");
  out += before(rest, "@TEXT@");
  out += markup_safe(printable_lines(text));
  out += before(rest, "@DATA@");
  out += script_safe(escaped(document.dump()));
  return out += rest;
}

}  // namespace stoker::page
