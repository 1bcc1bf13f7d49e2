# Target helpers. Nothing global: every flag hangs on the targets made here.

if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(STOKER_CCACHE ccache)
  mark_as_advanced(STOKER_CCACHE)
  if(STOKER_CCACHE)
    # Relative names, so that another checkout finds what this one compiled.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${STOKER_CCACHE})
  endif()
endif()

# -O3 compiles a tenth longer than -O2 and runs no faster here (bench/forecast_bench.cc).
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

add_library(stoker_options INTERFACE)
target_compile_features(stoker_options INTERFACE cxx_std_20)
target_include_directories(stoker_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(stoker_options INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough
    -Werror
    # gcc 12 sees overlaps in std::string that are not there (GCC bug 105651).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
endif()

# The archive behind fmt::fmt is in no package of Debian's, and its header-only form compiles fmt's implementation
# again in each file: src/base/fmt.cc compiles it once, and everybody else sees its headers alone.
get_target_property(STOKER_FMT_INCLUDE fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
add_library(stoker_fmt INTERFACE)
target_include_directories(stoker_fmt SYSTEM INTERFACE ${STOKER_FMT_INCLUDE})

# Tests are compiled for the debugger, not for speed: what they test is in the libraries. They share one precompiled
# header, since reading GoogleTest's takes as long as compiling the rest. What the compiler cache must overlook for that
# (the time of the precompiled header) does not decide what is compiled.
if(STOKER_TESTS)
  if(STOKER_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_SLOPPINESS=pch_defines,time_macros ${STOKER_CCACHE})
  endif()
  add_library(stoker_test_options INTERFACE)
  target_link_libraries(stoker_test_options INTERFACE stoker_options stoker_fmt tl::expected GTest::gtest_main)
  target_compile_options(stoker_test_options INTERFACE $<$<CONFIG:Release>:-O0>)
  if(NOT EXISTS ${CMAKE_BINARY_DIR}/precompiled.cc)
    file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cc "")
  endif()
  add_library(stoker_test_headers OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
  target_link_libraries(stoker_test_headers PRIVATE stoker_test_options)
  target_precompile_headers(stoker_test_headers PRIVATE <gtest/gtest.h> <algorithm> <cmath> <filesystem> <fstream>
    <functional> <map> <memory> <optional> <sstream> <string> <tl/expected.hpp> <variant> <vector>)
endif()

# stoker_source_dir(FILE...): defines STOKER_SOURCE_DIR for those of the files that use it. The others compile to
# the same object in every checkout, and a compiler cache knows them again.
function(stoker_source_dir)
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} used REGEX STOKER_SOURCE_DIR LIMIT_COUNT 1)
    if(used)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS
        "STOKER_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
    endif()
  endforeach()
endfunction()

# stoker_unity(TARGET FILE...): the files of one folder are compiled as one, which spares reading the headers again for each:
# two thirds of the compiler's time. Names in unnamed namespaces therefore differ within a folder.
function(stoker_unity target)
  foreach(source IN LISTS ARGN)
    get_filename_component(folder ${source} DIRECTORY)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
    string(MAKE_C_IDENTIFIER ${folder} group)
    set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A class of such a file may hold what its unnamed namespace declares; gcc takes the file for a header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# stoker_library(NAME DEPENDS step base ... [LIBRARIES ZLIB::ZLIB ...] [TEST_DEPENDS ...]) makes the library
# stoker_NAME of all x.cc below this folder, and, when tests are on, the test program NAME_test of all x_test.cc,
# which may need modules further right. Programs have files of their own: main.cc, x_fuzz.cc, and those in folders named
# testdata.
function(stoker_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES;TEST_DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/testdata/|_fuzz\\.cc$|/main\\.cc$")
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  add_library(stoker_${name} STATIC ${sources})
  if(STOKER_UNITY)
    stoker_unity(stoker_${name} ${sources})
  endif()
  if(STOKER_COVERAGE)
    # The libraries alone: what tests run of themselves tells nothing.
    target_compile_options(stoker_${name} PRIVATE --coverage -fprofile-abs-path -fprofile-update=atomic)
    target_link_options(stoker_${name} INTERFACE --coverage)
  endif()
  list(TRANSFORM ARG_DEPENDS PREPEND stoker_)
  target_link_libraries(stoker_${name}
    PUBLIC stoker_options stoker_fmt tl::expected ${ARG_DEPENDS}
    PRIVATE ${ARG_LIBRARIES})
  if(STOKER_TESTS AND tests)
    add_executable(${name}_test ${tests})
    list(TRANSFORM ARG_TEST_DEPENDS PREPEND stoker_)
    target_link_libraries(${name}_test PRIVATE
      stoker_${name} ${ARG_TEST_DEPENDS} stoker_test_options ${ARG_LIBRARIES})
    stoker_source_dir(${tests})
    target_precompile_headers(${name}_test REUSE_FROM stoker_test_headers)
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES
      ENVIRONMENT "STOKER_DATA=${PROJECT_SOURCE_DIR}/data")
  endif()
endfunction()

# stoker_fuzzer(NAME SOURCES x_fuzz.cc DEPENDS step): a libFuzzer program, only in the fuzz preset.
function(stoker_fuzzer name)
  if(NOT STOKER_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPENDS PREPEND stoker_)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE stoker_options ${ARG_DEPENDS} ${ARG_LIBRARIES})
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/StokerBinary.cmake)
