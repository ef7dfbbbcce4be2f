# traind::torch: LibTorch's CPU half from the PyPI wheel, and the Rust tool chain.
set(_torch ${TRAIND_LIBTORCH_DIR}/torch)
if(NOT EXISTS ${_torch}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "LibTorch is not at ${TRAIND_LIBTORCH_DIR}. "
    "Run `scripts/fetch_libtorch.sh ${TRAIND_LIBTORCH_DIR}`, or configure with -DTRAIND_WORKER=OFF "
    "to build the daemon and the client only.")
endif()
add_library(traind_torch INTERFACE)
add_library(traind::torch ALIAS traind_torch)
# -idirafter: the wheel ships an old Protobuf and fmt, which must never win over the system's.
target_compile_options(traind_torch INTERFACE
  "SHELL:-idirafter ${_torch}/include"
  "SHELL:-idirafter ${_torch}/include/torch/csrc/api/include" -fopenmp)
target_compile_definitions(traind_torch INTERFACE AT_PARALLEL_OPENMP=1)
target_link_libraries(traind_torch INTERFACE
  -Wl,--no-as-needed ${_torch}/lib/libtorch_cpu.so ${_torch}/lib/libc10.so ${_torch}/lib/libgomp.so.1
  -Wl,--as-needed -Wl,-rpath-link,${TRAIND_LIBTORCH_DIR}/nvidia/cu13/lib)
