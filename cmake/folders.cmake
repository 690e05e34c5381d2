# hstu_folder(NAME DEPENDS ...): the library hstu_NAME from src/hstu/NAME/*.cc (main.cc apart).
# A folder without sources is header-only. Names of other folders may be given without the prefix; each folder gets base.
# LOOPS: these files, or "all", are compiled one by one, so that the machine code of a loop depends on nothing but its own
# file. COLD: no loop over data is in the folder, and it is compiled with -Og, in about half of the time. COLD_FILES: those
# files of the folder alone. NESTED: the .cc files of its folders belong to it.
set(HSTU_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual
                  -Woverloaded-virtual -Werror)
set(HSTU_C_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wcast-qual -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  list(APPEND HSTU_WARNINGS -Wno-restrict)  # g++ 12 reports false overlaps in std::string (GCC bug 105651)
else()
  list(APPEND HSTU_WARNINGS -Wno-pass-failed)  # clang warns of every `omp simd` loop that it does not vectorise
endif()

# Folders that read nothing from outside: their code does without the coverage that tests/fuzz needs.
set(HSTU_NOT_FUZZED attention balance benchmark comm device experiment kernels loss model ops optimizer plan profile step
                    synthetic tensor training)

# Folders whose loops take most of the time of a sanitizer's tests. The others are compiled with -O0 there, in half of the time.
set(HSTU_OPTIMISED_IN_SANITIZERS attention balance base baseline batching columns dataset embedding kernels loss metrics
                                 model ops optimizer rows tensor tokenizer)

function(hstu_resolve out)
  set(result)
  foreach(name IN LISTS ARGN)
    if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/src/hstu/${name})
      list(APPEND result hstu_${name})
    else()
      list(APPEND result ${name})
    endif()
  endforeach()
  set(${out} ${result} PARENT_SCOPE)
endfunction()

add_library(hstu_flags INTERFACE)
target_include_directories(hstu_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
# A collection of the compiler's garbage takes a tenth of its time; below 1 GB of heap there is none.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(hstu_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1000000>)
endif()
# No errno and no floating-point traps: both forbid vectorising, neither is used. Results stay IEEE otherwise.
target_compile_options(hstu_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno -fno-trapping-math>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(hstu_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=x86-64-v3>)
endif()
if(HSTU_SANITIZE)
  target_compile_options(hstu_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(hstu_flags INTERFACE -fsanitize=address,undefined)
elseif(HSTU_TSAN)
  target_compile_options(hstu_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=thread>)
  target_link_options(hstu_flags INTERFACE -fsanitize=thread)
endif()

# hstu_unity(TARGET): with HSTU_UNITY the compiler gets the files of a target in batches. Most of its time goes to
# headers and to the templates of JSON, CLI11 and GoogleTest, and the files of a batch need them once.
function(hstu_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${HSTU_UNITY} UNITY_BUILD_BATCH_SIZE 32)
endfunction()

# hstu_in_library(TARGET): between set and unset of CMAKE_POSITION_INDEPENDENT_CODE, TARGET is part of a shared library. No
# program replaces its functions, so that they may be inlined as in a program.
function(hstu_in_library target)
  if(CMAKE_POSITION_INDEPENDENT_CODE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
  endif()
endfunction()

function(hstu_folder name)
  cmake_parse_arguments(ARG "COLD;NESTED" "" "LOOPS;COLD_FILES;DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/hstu/${name}/*.cc)
  if(ARG_NESTED)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/hstu/${name}/*.cc)
  endif()
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  hstu_resolve(depends ${ARG_DEPENDS})
  if(NOT name STREQUAL base)
    list(PREPEND depends hstu_base)
  endif()
  if(sources)
    if(ARG_LOOPS STREQUAL all)
      list(TRANSFORM sources REPLACE ".*/(.+)\\.cc" "\\1" OUTPUT_VARIABLE ARG_LOOPS)
    endif()
    foreach(files IN ITEMS LOOPS COLD_FILES)
      list(TRANSFORM ARG_${files} REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/src/hstu/${name}/\\1.cc")
    endforeach()
    set_source_files_properties(${ARG_LOOPS} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    set(cold ${ARG_COLD_FILES})
    list(REMOVE_ITEM sources ${cold})
    add_library(hstu_${name} STATIC ${sources})
    set(libraries hstu_${name})
    if(cold)
      add_library(hstu_${name}_cold OBJECT ${cold})
      target_sources(hstu_${name} PRIVATE $<TARGET_OBJECTS:hstu_${name}_cold>)
      list(APPEND libraries hstu_${name}_cold)
    endif()
    foreach(library IN LISTS libraries)
      target_compile_options(${library} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${HSTU_WARNINGS}>")
      target_link_libraries(${library} PUBLIC hstu_flags ${depends})
      if(HSTU_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES Clang AND NOT name IN_LIST HSTU_NOT_FUZZED)
        target_compile_options(${library} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
      endif()
      if((HSTU_SANITIZE OR HSTU_TSAN) AND (library MATCHES "_cold$" OR NOT name IN_LIST HSTU_OPTIMISED_IN_SANITIZERS))
        target_compile_options(${library} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
      elseif(ARG_COLD OR library MATCHES "_cold$")
        target_compile_options(${library} PRIVATE "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Og>")
      endif()
      hstu_in_library(${library})
      hstu_unity(${library})
    endforeach()
  else()
    add_library(hstu_${name} INTERFACE)
    target_link_libraries(hstu_${name} INTERFACE hstu_flags ${depends})
  endif()
endfunction()

# hstu_loops(FOLDER): src/hstu/FOLDER/loops/table.cc, once for each instruction set.
function(hstu_loops folder)
  set(sets baseline)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND sets avx512)
    target_compile_definitions(hstu_${folder} PRIVATE HSTU_WITH_AVX512)
  endif()
  add_library(hstu_loops_baseline_flags INTERFACE)
  add_library(hstu_loops_avx512_flags INTERFACE)  # linked after hstu_flags: the last -march counts
  target_compile_options(hstu_loops_avx512_flags INTERFACE -march=x86-64-v4 -mprefer-vector-width=512)
  foreach(set IN LISTS sets)
    add_library(hstu_loops_${set} OBJECT ${PROJECT_SOURCE_DIR}/src/hstu/${folder}/loops/table.cc)
    target_link_libraries(hstu_loops_${set} PRIVATE hstu_flags hstu_base hstu_loops_${set}_flags)
    target_compile_options(hstu_loops_${set} PRIVATE ${HSTU_WARNINGS})
    hstu_in_library(hstu_loops_${set})
    target_compile_definitions(hstu_loops_${set} PRIVATE HSTU_LOOPS=${set})
    target_sources(hstu_${folder} PRIVATE $<TARGET_OBJECTS:hstu_loops_${set}>)
  endforeach()
endfunction()

# hstu_shared_library(NAME FOLDER): libhstu_NAME.so, which exports what src/hstu/FOLDER/exports.map says and nothing else, and
# carries the run-time library of C++ (and CUDA's) within.
function(hstu_shared_library name folder)
  set(exports ${PROJECT_SOURCE_DIR}/src/hstu/${folder}/exports.map)
  file(WRITE ${CMAKE_BINARY_DIR}/nothing.cc "")
  add_library(hstu_${name}_so SHARED ${CMAKE_BINARY_DIR}/nothing.cc)
  set_target_properties(hstu_${name}_so PROPERTIES OUTPUT_NAME hstu_${name} LINK_DEPENDS ${exports}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} SOVERSION ${PROJECT_VERSION_MAJOR} VERSION ${PROJECT_VERSION})
  target_link_libraries(hstu_${name}_so PRIVATE -Wl,--whole-archive hstu_${folder} -Wl,--no-whole-archive)
  target_link_options(hstu_${name}_so PRIVATE -Wl,--as-needed -Wl,--gc-sections -Wl,--version-script=${exports})
  if(NOT HSTU_SANITIZE AND NOT HSTU_TSAN)  # whose run-time libraries are the program's
    target_link_options(hstu_${name}_so PRIVATE -static-libstdc++ -static-libgcc -Wl,--no-undefined)
  endif()
endfunction()

# libhstu_score.so: include/hstu/score.h for programs in any language.
function(hstu_score_library)
  target_include_directories(hstu_score PUBLIC ${PROJECT_SOURCE_DIR}/include)
  hstu_shared_library(score score)
endfunction()

# libhstu_tables.so: include/hstu/tables.h.
function(hstu_tables_library)
  target_include_directories(hstu_tables PUBLIC ${PROJECT_SOURCE_DIR}/include)
  hstu_shared_library(tables tables)
endfunction()

function(hstu_program name source)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  if(EXISTS ${PROJECT_SOURCE_DIR}/${source})
    hstu_resolve(depends ${ARG_DEPENDS})
    add_executable(${name} ${source})
    target_compile_options(${name} PRIVATE ${HSTU_WARNINGS})
    target_link_libraries(${name} PRIVATE ${depends})
  endif()
endfunction()

# hstu_test(FOLDER DEPENDS ...): the program test_FOLDER from tests/FOLDER/*.cc and *.c. TOGETHER: ctest runs its tests in
# one process, because they share what is slow to make. QUICK: of many short tests that start no process; under a sanitizer
# ctest runs them in four processes, as the start and the end of each take longer than most of them.
function(hstu_test name)
  cmake_parse_arguments(ARG "TOGETHER;QUICK" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${name}/*.cc
                                     ${PROJECT_SOURCE_DIR}/tests/${name}/*.c)
  if(sources)
    hstu_resolve(depends ${ARG_DEPENDS})
    add_executable(test_${name} ${sources})
    target_compile_options(test_${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${HSTU_WARNINGS}>"
                                                "$<$<COMPILE_LANGUAGE:C>:${HSTU_C_WARNINGS}>")
    target_compile_definitions(test_${name} PRIVATE HSTU_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden"
                                                    HSTU_PROGRAM_DIR="${CMAKE_BINARY_DIR}"
                                                    HSTU_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    hstu_unity(test_${name})
    # Compiling the tests took most of the time of a build; the folders that they test stay optimised.
    if(HSTU_SANITIZE OR HSTU_TSAN)
      target_compile_options(test_${name} PRIVATE -O0)
    else()
      target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    endif()
    target_link_libraries(test_${name} PRIVATE ${depends} GTest::gmock GTest::gtest_main)
    if(ARG_TOGETHER)
      add_test(NAME ${name} COMMAND test_${name})
      set_tests_properties(${name} PROPERTIES TIMEOUT 600)
    elseif(ARG_QUICK AND (HSTU_SANITIZE OR HSTU_TSAN))
      foreach(share RANGE 3)
        add_test(NAME ${name}.share${share} COMMAND test_${name})
        set_tests_properties(${name}.share${share} PROPERTIES
          TIMEOUT 600 ENVIRONMENT "GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${share}")
      endforeach()
    else()
      gtest_discover_tests(test_${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
    endif()
  endif()
endfunction()
