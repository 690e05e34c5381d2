# Toolchain file of the presets for Linux on 64-bit Arm, compiled on another machine: Debian's cross compiler, the libraries
# that `./dev deps arm64` unpacks into .deps/arm64, and qemu, which runs the tests.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CUDA_HOST_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)

# Libraries are Arm's. Headers that both have are this machine's: the cross compiler looks into /usr/include last.
get_filename_component(HSTU_ARM64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../.deps/arm64 ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${HSTU_ARM64_ROOT} ${HSTU_ARM64_ROOT}/../cuda-arm64)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_CXX_FLAGS_INIT "-isystem ${HSTU_ARM64_ROOT}/usr/include/aarch64-linux-gnu")
set(HSTU_CROSS_LIBRARIES /usr/aarch64-linux-gnu/lib)  # of the compiler, for packages
