# Everything hstu links, found once. `./dev deps` installs what is missing.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(GTest REQUIRED)
include(GoogleTest)

# toml++ as headers only: the packaged library would be one more shared object to have at run time.
find_path(TOML_INCLUDE NAMES toml++/toml.h REQUIRED)
add_library(toml INTERFACE)
target_include_directories(toml SYSTEM INTERFACE ${TOML_INCLUDE})
target_compile_definitions(toml INTERFACE TOML_HEADER_ONLY=1)

# The headers of fmt alone: src/hstu/base/fmt.cc compiles the rest, once.
find_path(FMT_INCLUDE NAMES fmt/format-inl.h REQUIRED)
add_library(fmt INTERFACE)
target_include_directories(fmt SYSTEM INTERFACE ${FMT_INCLUDE})
# fmt 9 takes nvcc for a compiler without constexpr, which its C++20 parts then miss.
target_compile_definitions(fmt INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>)

find_path(XXHASH_INCLUDE NAMES xxhash.h REQUIRED)
find_library(XXHASH_STATIC NAMES libxxhash.a REQUIRED)
add_library(xxhash INTERFACE)
target_include_directories(xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE})
target_link_libraries(xxhash INTERFACE ${XXHASH_STATIC})

# SHA-256 and MD5 of published files; for hstu-prepare alone.
find_path(OPENSSL_INCLUDE NAMES openssl/evp.h REQUIRED)
find_library(CRYPTO_STATIC NAMES libcrypto.a REQUIRED)
find_package(Threads REQUIRED)
add_library(crypto INTERFACE)
target_include_directories(crypto SYSTEM INTERFACE ${OPENSSL_INCLUDE})
target_link_libraries(crypto INTERFACE ${CRYPTO_STATIC} Threads::Threads ${CMAKE_DL_LIBS})

# Beast and Asio, the HTTP of hstu serve: headers alone.
find_path(BOOST_INCLUDE NAMES boost/beast/http.hpp REQUIRED)
add_library(boost INTERFACE)
target_include_directories(boost SYSTEM INTERFACE ${BOOST_INCLUDE})
target_compile_definitions(boost INTERFACE BOOST_ERROR_CODE_HEADER_ONLY BOOST_ASIO_DISABLE_CONCEPTS)

# MPI for ranks on several machines; its part of hstu is a library that only ranks started by MPI load.
find_package(MPI COMPONENTS C)

# RocksDB for tables on a disk; its part of hstu is a library that only runs with such tables load.
find_path(ROCKSDB_INCLUDE NAMES rocksdb/db.h)
find_library(ROCKSDB_LIBRARY NAMES rocksdb)

# Kafka's library: its headers alone. hstu prepare kafka loads it when it runs.
find_path(RDKAFKA_INCLUDE NAMES librdkafka/rdkafka.h REQUIRED)

# Arrow and Parquet from the pinned pyarrow wheel, unpacked by `./dev deps` (never imported by Python).
set(HSTU_ARROW_ROOT ${PROJECT_SOURCE_DIR}/.deps/pyarrow CACHE PATH "Folder of an unpacked pyarrow wheel")
file(GLOB ARROW_SO ${HSTU_ARROW_ROOT}/libarrow.so.*)
file(GLOB PARQUET_SO ${HSTU_ARROW_ROOT}/libparquet.so.*)
if(NOT ARROW_SO OR NOT PARQUET_SO)
  message(FATAL_ERROR "Arrow not found under ${HSTU_ARROW_ROOT}: run ./dev deps, or set HSTU_ARROW_ROOT")
endif()
add_library(arrow INTERFACE)
target_include_directories(arrow SYSTEM INTERFACE ${HSTU_ARROW_ROOT}/include)
target_link_libraries(arrow INTERFACE ${PARQUET_SO} ${ARROW_SO})
set(CMAKE_BUILD_RPATH ${HSTU_ARROW_ROOT})
