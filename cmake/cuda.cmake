# CUDA when the toolkit is there: HSTU_WITH_CUDA says so to CMake and to the code. Kernels compile on machines without a GPU.
set(HSTU_WITH_CUDA OFF)
if(NOT HSTU_CUDA STREQUAL "OFF")
  find_program(HSTU_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda/bin)
  if(HSTU_NVCC)
    execute_process(COMMAND ${HSTU_NVCC} --version OUTPUT_VARIABLE version)
    if(version MATCHES "release ([0-9]+)\\.([0-9]+)" AND CMAKE_MATCH_1 GREATER_EQUAL 13)
      set(HSTU_WITH_CUDA ON)
    endif()
  endif()
  if(HSTU_CUDA STREQUAL "ON" AND NOT HSTU_WITH_CUDA)
    message(FATAL_ERROR "HSTU_CUDA is ON, but no nvcc of CUDA 13 or newer was found: set CUDA_HOME, or HSTU_CUDA to OFF")
  endif()
endif()
message(STATUS "GPU kernels: ${HSTU_WITH_CUDA} (HSTU_CUDA=${HSTU_CUDA})")

if(HSTU_WITH_CUDA)
  set(CMAKE_CUDA_COMPILER ${HSTU_NVCC})
  set(CMAKE_CUDA_ARCHITECTURES OFF)  # each folder names its own: files for one architecture alone are the rule
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  set(CMAKE_CUDA_STANDARD 17)  # the newest that CMake 3.25 knows for nvcc; it would ask for CMAKE_CXX_STANDARD otherwise
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
endif()

# The kernels that run on any GPU, as machine code of each generation and as PTX for those to come.
set(HSTU_EVERY_ARCHITECTURE)
foreach(architecture 80 86 89 90 100 120)
  list(APPEND HSTU_EVERY_ARCHITECTURE -gencode=arch=compute_${architecture},code=sm_${architecture})
endforeach()
list(APPEND HSTU_EVERY_ARCHITECTURE -gencode=arch=compute_120,code=compute_120)

# hstu_cuda_sources(FOLDER): adds src/hstu/FOLDER/cuda to hstu_FOLDER. *_sm90*.cu are for Hopper alone.

function(hstu_cuda_sources name)
  if(NOT HSTU_WITH_CUDA)
    return()
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/src/hstu/${name}/cuda)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc ${folder}/*.cu)
  target_sources(hstu_${name} PRIVATE ${sources})
  target_compile_definitions(hstu_${name} PUBLIC HSTU_WITH_CUDA)
  target_link_libraries(hstu_${name} PUBLIC CUDA::cudart_static)
  foreach(source IN LISTS sources)
    if(source MATCHES "\\.cu$")
      get_filename_component(file ${source} NAME)
      if(file MATCHES "_sm90")
        set(architectures -gencode=arch=compute_90a,code=sm_90a)
      else()
        set(architectures ${HSTU_EVERY_ARCHITECTURE})
      endif()
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${architectures}")
    endif()
  endforeach()
endfunction()

# libhstu_attention.so: include/hstu/attention.h for programs in any language. It exports nothing but that header's functions
# and carries the run-time libraries of C++ and CUDA within, so that it needs the NVIDIA driver alone.
function(hstu_shared_library)
  target_include_directories(hstu_c PUBLIC ${PROJECT_SOURCE_DIR}/include)
  if(NOT HSTU_WITH_CUDA)
    return()
  endif()
  set_target_properties(hstu_base hstu_attention hstu_c PROPERTIES POSITION_INDEPENDENT_CODE ON)
  set(exports ${PROJECT_SOURCE_DIR}/src/hstu/c/exports.map)
  file(WRITE ${CMAKE_BINARY_DIR}/nothing.cc "")
  add_library(hstu_attention_so SHARED ${CMAKE_BINARY_DIR}/nothing.cc)
  set_target_properties(hstu_attention_so PROPERTIES OUTPUT_NAME hstu_attention LINK_DEPENDS ${exports}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} SOVERSION ${PROJECT_VERSION_MAJOR} VERSION ${PROJECT_VERSION})
  target_link_libraries(hstu_attention_so PRIVATE -Wl,--whole-archive hstu_c -Wl,--no-whole-archive)
  target_link_options(hstu_attention_so PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--no-undefined
    -Wl,--gc-sections -Wl,--version-script=${exports})
endfunction()
