#include "report/html/page.h"

#include <memory>

#include "base/files.h"
#include "cli/outside/output.h"
#include "cli/verbs/verbs.h"
#include "json/text.h"

namespace stoker::cli {
namespace {

struct PageArguments {
  std::string document, output;
};

/// What Python's verbs hand over: {"document": {...}, "text": "..."}, the document as
/// report/html/page.h makes it.
Result<int> run_page(const PageArguments& o) {
  constexpr Bytes kLargest = 64 * kMiB;
  constexpr json::DocumentKind kKind{"a document of a page", "make it again", 16};
  const auto given =
      TRY(json::parse_document(TRY(read_file(o.document, kLargest)), o.document, kKind));
  const json::Value document = given["document"];
  for (const char* list : {"tiles", "sections", "footer"}) {
    if (!document.is_object() || !document.contains(list) || !document[list].is_array())
      return fail(
          ErrorCode::kBadInput,
          std::string("is no document of a page: \"document\" has no list \"") + list + "\"",
          o.document);
  }
  if (!document["title"].is_string() || !given["text"].is_string())
    return fail(ErrorCode::kBadInput, "is no document of a page: a title and a text are needed",
                o.document);
  TRY(write_page(o.output, page::html_of(document, given["text"].as_string(), STOKER_VERSION)));
  return 0;
}

}  // namespace

Command page_command() {
  auto o = std::make_shared<PageArguments>();
  return {"page",
          "a page with charts of a document of blocks, as `observation --html` hands it over",
          "Example: stoker page document.json -o page.html",
          {{"document", &o->document}, {"output", &o->output}},
          [o] { return run_page(*o); }};
}

}  // namespace stoker::cli
