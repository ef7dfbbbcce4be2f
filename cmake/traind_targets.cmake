# traind_library, traind_executable, traind_test: every target of the project is made by these.

set(TRAIND_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast)
if(TRAIND_WERROR)
  list(APPEND TRAIND_WARNINGS -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  list(APPEND TRAIND_WARNINGS -Wthread-safety)
endif()

function(_traind_configure target)
  target_compile_options(${target} PRIVATE ${TRAIND_WARNINGS})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  if(TRAIND_FAULT_POINTS)
    target_compile_definitions(${target} PRIVATE TRAIND_FAULT_POINTS=1)
  endif()
endfunction()

# traind_library(NAME SOURCES a.cc … DEPS x …)
function(traind_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  _traind_configure(${name})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
endfunction()

# traind_executable(NAME SOURCES a.cc … DEPS x …)
function(traind_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  _traind_configure(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()

# traind_test(NAME LABEL unit SOURCES a_test.cc … DEPS x … [TIMEOUT seconds])
# Each gtest case becomes one ctest test, so that they run in any order and in parallel.
function(traind_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  _traind_configure(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    TRAIND_TEST_DATA="${PROJECT_SOURCE_DIR}/tests" TRAIND_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    TRAIND_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()
