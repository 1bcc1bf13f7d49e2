# Target helpers. Nothing global: every flag hangs on the targets made here.

if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(STOKER_CCACHE ccache)
  mark_as_advanced(STOKER_CCACHE)
  if(STOKER_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${STOKER_CCACHE})
  endif()
endif()

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

# stoker_library(NAME SOURCES a.cc ... DEPENDS step base ... LIBRARIES ZLIB::ZLIB ... [TESTS a_test.cc ...]
# [TEST_DEPENDS ...]) makes the library stoker_NAME and, when tests are on, the test program NAME_test, which
# may need modules further right.
function(stoker_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES;TESTS;TEST_DEPENDS" ${ARGN})
  add_library(stoker_${name} STATIC ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPENDS PREPEND stoker_)
  target_link_libraries(stoker_${name}
    PUBLIC stoker_options tl::expected ${ARG_DEPENDS}
    PRIVATE ${ARG_LIBRARIES})
  if(STOKER_TESTS AND ARG_TESTS)
    add_executable(${name}_test ${ARG_TESTS})
    list(TRANSFORM ARG_TEST_DEPENDS PREPEND stoker_)
    target_link_libraries(${name}_test PRIVATE
      stoker_${name} ${ARG_TEST_DEPENDS} GTest::gtest_main ${ARG_LIBRARIES})
    target_compile_definitions(${name}_test PRIVATE
      STOKER_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
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
