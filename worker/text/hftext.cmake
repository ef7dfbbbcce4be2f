# The Rust library hftext: cargo builds it, always optimised, into a folder that all build folders
# share, so that a fresh configuration does not compile it again.
set(TRAIND_CARGO_TARGET_DIR "$ENV{HOME}/.cache/traind/cargo-target"
    CACHE PATH "Where cargo keeps what it builds")
set(_min_rust 1.80)

# Sets `result` to the version of a cargo, or to 0.
function(_traind_cargo_version cargo result)
  set(${result} 0 PARENT_SCOPE)
  execute_process(COMMAND ${cargo} --version OUTPUT_VARIABLE output ERROR_QUIET
                  RESULT_VARIABLE failed)
  if(NOT failed AND output MATCHES "cargo ([0-9]+\\.[0-9]+)")
    set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
  endif()
endfunction()

# A cargo on the PATH may be an old one of the distribution's or of rustup's; Debian 12's cargo-web
# package puts a recent one at /usr/bin/cargo.
find_program(TRAIND_CARGO cargo PATHS "$ENV{HOME}/.cargo/bin" DOC "Rust's package manager")
foreach(_candidate ${TRAIND_CARGO} /usr/bin/cargo)
  _traind_cargo_version(${_candidate} _version)
  if(_version VERSION_GREATER_EQUAL ${_min_rust})
    set(_cargo ${_candidate})
    break()
  endif()
endforeach()
if(NOT _cargo)
  message(FATAL_ERROR "traind-worker needs a Rust tool chain of version ${_min_rust} or later, and "
    "found ${TRAIND_CARGO} (version ${_version}). Install Debian's packages cargo-web and rustc-web, "
    "or Rust from https://rustup.rs, or configure with -DTRAIND_WORKER=OFF.")
endif()

# A compiler beside its cargo, so that two tool chains are never mixed.
get_filename_component(_cargo_bin ${_cargo} DIRECTORY)
set(_cargo_command ${CMAKE_COMMAND} -E env "CARGO_TARGET_DIR=${TRAIND_CARGO_TARGET_DIR}"
  "PATH=${_cargo_bin}:$ENV{PATH}" ${_cargo})

set(_crate ${CMAKE_CURRENT_SOURCE_DIR}/hftext)
set(_archive ${CMAKE_CURRENT_BINARY_DIR}/libhftext.a)
set(_crate_files Cargo.lock Cargo.toml src/ffi.rs src/filters.rs src/generation.rs src/gguf.rs
    src/lib.rs src/python_format.rs src/python_methods.rs src/template.rs src/tokenizer.rs)
list(TRANSFORM _crate_files PREPEND ${_crate}/)

# The copy belongs to this build folder: another checkout may build into the shared one meanwhile.
add_custom_command(OUTPUT ${_archive}
  COMMAND ${_cargo_command} build --locked --release --quiet --manifest-path ${_crate}/Cargo.toml
  COMMAND ${CMAKE_COMMAND} -E copy ${TRAIND_CARGO_TARGET_DIR}/release/libhftext.a ${_archive}
  DEPENDS ${_crate_files}
  COMMENT "Building the Rust library hftext" VERBATIM)
add_custom_target(hftext_build DEPENDS ${_archive})

add_library(hftext INTERFACE)
add_dependencies(hftext hftext_build)
target_include_directories(hftext INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(hftext INTERFACE ${_archive} Threads::Threads ${CMAKE_DL_LIBS} m)

if(TRAIND_TESTS)
  add_test(NAME hftext_cargo_test
    COMMAND ${_cargo_command} test --locked --release --quiet --manifest-path ${_crate}/Cargo.toml)
  set_tests_properties(hftext_cargo_test PROPERTIES LABELS torch TIMEOUT 900)
endif()
