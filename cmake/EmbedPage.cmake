# Makes one .cc of the page's template, style and scripts:
#   cmake -DASSETS=DIR -DOUT=FILE -DSCRIPTS="a.js;b.js" -P EmbedPage.cmake
# Style and scripts are allowed by their hashes alone, so that nothing else on a page can ever run. The scripts are
# joined into one, and what begins a line with // is left out.

# The SHA-256 of a text in base64, as a content security policy wants it.
function(sha256_base64 text out)
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(SHA256 hex "${text}")
  string(APPEND hex "00")  # 64 digits and two make 22 groups of three: 43 letters count
  set(result "")
  foreach(group RANGE 0 21)
    math(EXPR at "${group} * 3")
    string(SUBSTRING "${hex}" ${at} 3 digits)
    math(EXPR high "0x${digits} >> 6")
    math(EXPR low "0x${digits} & 63")
    string(SUBSTRING "${alphabet}" ${high} 1 first)
    string(SUBSTRING "${alphabet}" ${low} 1 second)
    string(APPEND result "${first}${second}")
  endforeach()
  string(SUBSTRING "${result}" 0 43 result)
  set(${out} "${result}=" PARENT_SCOPE)
endfunction()

# Lists split at semicolons and swallow brackets: files are kept in quotes throughout.
function(read_joined out)
  set(all "")
  foreach(name IN LISTS ARGN)
    file(READ "${ASSETS}/${name}" text)
    string(APPEND all "${text}")
  endforeach()
  set(${out} "${all}" PARENT_SCOPE)
endfunction()

read_joined(style page.css)
read_joined(library vendor/d3.min.js)
read_joined(own ${SCRIPTS})
string(REGEX REPLACE "\n *//[^\n]*" "" own "${own}")
set(script "${library}\n(() => {\n\"use strict\";\n${own}\n})();\n")
sha256_base64("${style}" style_hash)
sha256_base64("${script}" script_hash)
set(policy "default-src 'none'; script-src 'sha256-${script_hash}'; style-src 'sha256-${style_hash}'; base-uri 'none'; form-action 'none'")

file(READ "${ASSETS}/page.html" page)
string(REPLACE "@POLICY@" "${policy}" page "${page}")
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
file(WRITE "${OUT}.new"
  "// Made by cmake/EmbedPage.cmake of src/report/html/assets.\n"
  "#include \"report/html/page_template.h\"\n"
  "namespace stoker::page {\n"
  "std::string_view page_template() {\n  static constexpr std::string_view kPage = R\"STOKERPAGE(")
file(APPEND "${OUT}.new" "${page}")
file(APPEND "${OUT}.new" ")STOKERPAGE\";\n  return kPage;\n}\n}  // namespace stoker::page\n")
file(RENAME "${OUT}.new" "${OUT}")
