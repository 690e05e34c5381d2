#include "hstu/checkpoint/safetensors.h"

#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/support.h"

namespace hstu {
namespace {

using namespace testing_checkpoint;
using testing::HasSubstr;

void write_small(const Path& path) {
  SafetensorsWriter writer(path, {{"ids", DType::i64, {3}},
                                  {"wide", DType::f64, {1, 2}},
                                  {"rows", DType::f32, {3, 2}},
                                  {"none", DType::f32, {0, 7}},
                                  {"index", DType::i32, {1}},
                                  {"brain", DType::bf16, {1}},
                                  {"half", DType::f16, {1}},
                                  {"flags", DType::u8, {3}}});
  const std::int64_t ids[] = {-1, 5, 1LL << 40};
  const double wide[] = {0.1, -2e300};
  const float rows[] = {1, 2, 3, 4, 5, 6};
  const std::int32_t index[] = {-7};
  const std::uint8_t flags[] = {0, 255, 3};
  writer.write(ids, sizeof ids);
  writer.write(wide, sizeof wide);
  writer.write(rows, sizeof rows / 2);
  writer.write(rows + 3, sizeof rows / 2);
  writer.write(index, sizeof index);
  const BFloat16 brain(1.5f);
  const Float16 half(-2.25f);
  writer.write(&brain, sizeof brain);
  writer.write(&half, sizeof half);
  writer.write(flags, sizeof flags);
  writer.close();
  EXPECT_EQ(writer.checksum(), file_checksum(path));
  EXPECT_EQ(writer.bytes(), std::filesystem::file_size(path));
}

// A file with this header text, followed by `data` zeros.
void write_raw(const Path& path, const std::string& header, std::size_t data) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  scribble(path, bytes + header + std::string(data, '\0'));
}

TEST(Safetensors, RoundTripsEveryType) {
  const TemporaryFolder folder;
  const Path path = folder / "small.safetensors";
  write_small(path);
  const SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), 8u);
  EXPECT_EQ(file.values<std::int64_t>("ids", {3})[2], 1LL << 40);
  EXPECT_EQ(file.values<double>("wide", {1, 2})[1], -2e300);
  EXPECT_EQ(file.values<float>("rows", {3, 2})[5], 6.0f);
  EXPECT_TRUE(file.values<float>("none", {0, 7}).empty());
  EXPECT_EQ(file.values<std::int32_t>("index", {1})[0], -7);
  EXPECT_EQ(file.values<std::uint8_t>("flags", {3})[1], 255);
  EXPECT_EQ(static_cast<float>(file.values<BFloat16>("brain", {1})[0]), 1.5f);
  EXPECT_EQ(static_cast<float>(file.values<Float16>("half", {1})[0]), -2.25f);
  Tensor rows = Tensor::zeros({3, 2}, DType::f32);
  file.read("rows", rows);
  EXPECT_EQ(rows.data<float>()[0], 1.0f);
  EXPECT_EQ(rows.data<float>()[5], 6.0f);
}

TEST(Safetensors, HasTheBytesOfTheFormat) {
  const TemporaryFolder folder;
  const Path path = folder / "one.safetensors";
  SafetensorsWriter writer(path, {{"a", DType::f32, {1}}});
  const float one = 1.0f;
  writer.write(&one, sizeof one);
  writer.close();
  const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const std::size_t padded = (header.size() + 7) / 8 * 8;
  const std::string bytes = read_file(path);
  EXPECT_EQ(bytes, std::string(1, static_cast<char>(padded)) + std::string(7, '\0') + header +
                       std::string(padded - header.size(), ' ') + std::string("\x00\x00\x80\x3f", 4));
}

TEST(Safetensors, RefusesATruncationAtEveryByteByName) {
  const TemporaryFolder folder;
  const Path path = folder / "small.safetensors";
  write_small(path);
  const std::string bytes = read_file(path);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    scribble(path, bytes.substr(0, length));
    ASSERT_THAT(error_of([&] { SafetensorsFile{path}; }), HasSubstr("small.safetensors")) << length;
  }
  scribble(path, bytes + '\0');
  EXPECT_THROW(SafetensorsFile{path}, Error) << "a byte after the end";
}

TEST(Safetensors, AnAlteredByteIsRefusedOrLeavesTensorsWithinTheFile) {
  const TemporaryFolder folder;
  const Path path = folder / "small.safetensors";
  write_small(path);
  const std::string bytes = read_file(path);
  std::size_t refused = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string altered = bytes;
    altered[at] = static_cast<char>(altered[at] ^ (1 << (at % 8)));
    scribble(path, altered);
    try {
      const SafetensorsFile file(path);
      std::size_t total = 0;
      for (const TensorSpec& spec : file.tensors()) {
        Tensor tensor = Tensor::empty(spec.shape, spec.dtype);
        try {
          file.read(spec.name, tensor);  // The address sanitizer detects reads outside the map.
        } catch (const Error&) {         // Not aligned.
        }
        total += tensor.bytes();
      }
      ASSERT_LT(total, bytes.size());
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, bytes.size() / 3) << "most changes of the header are refused";
}

TEST(Safetensors, RefusesHeadersThatLie) {
  const TemporaryFolder folder;
  const Path path = folder / "lie.safetensors";
  const auto tensor = [](const char* name, const char* dtype, const char* shape, const char* offsets) {
    return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
  };
  const std::string a = tensor("a", "F32", "[2]", "[0,8]");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"gap", "{" + a + "," + tensor("b", "F32", "[1]", "[12,16]") + "}"},
      {"overlap", "{" + a + "," + tensor("b", "F32", "[3]", "[4,16]") + "}"},
      {"same place twice", "{" + a + "," + tensor("b", "F32", "[2]", "[0,8]") + "}"},
      {"too short", "{" + a + "}"},
      {"behind the end", "{" + tensor("a", "F32", "[5]", "[0,20]") + "}"},
      {"not from 0", "{" + tensor("a", "F32", "[2]", "[8,16]") + "}"},
      {"size and shape differ", "{" + tensor("a", "F32", "[3]", "[0,16]") + "}"},
      {"backwards", "{" + tensor("a", "F32", "[4]", "[16,0]") + "}"},
      {"negative offset", "{" + tensor("a", "F32", "[4]", "[-16,0]") + "}"},
      {"negative extent", "{" + tensor("a", "F32", "[-4]", "[0,16]") + "}"},
      {"fraction", "{" + tensor("a", "F32", "[4.0]", "[0,16]") + "}"},
      {"product overflows", "{" + tensor("a", "F32", "[4294967296,4294967296,4]", "[0,16]") + "}"},
      {"huge extent", "{" + tensor("a", "F32", "[18446744073709551615]", "[0,16]") + "}"},
      {"too many extents", "{" + tensor("a", "F32", "[1,1,4,1,1]", "[0,16]") + "}"},
      {"unknown type", "{" + tensor("a", "F8_E4M3", "[8]", "[0,8]") + "}"},
      {"name twice",
       "{" + tensor("a", "F32", "[4]", "[0,16]") + "," + tensor("a", "F32", "[4]", "[0,16]") + "}"},
      {"no shape", R"({"a":{"dtype":"F32","data_offsets":[0,16]}})"},
      {"no offsets", R"({"a":{"dtype":"F32","shape":[4]}})"},
      {"one offset", "{" + tensor("a", "F32", "[4]", "[16]") + "}"},
      {"not an object", "[1]"},
      {"entry not an object", R"({"a":5})"},
      {"metadata not text", R"({"__metadata__":{"x":5},)" + tensor("a", "F32", "[4]", "[0,16]") + "}"},
      {"not JSON", "{" + a},
      {"not UTF-8", "{\"\xff\":1}"},
  };
  for (const auto& [what, header] : cases) {
    write_raw(path, header, 16);
    EXPECT_THAT(error_of([&] { SafetensorsFile{path}; }), HasSubstr("lie.safetensors")) << what;
  }
  write_raw(path, "{" + tensor("a", "F32", "[4]", "[0,16]") + "}", 16);
  EXPECT_NO_THROW(SafetensorsFile{path}) << "the correct header";
  write_raw(path, R"({"__metadata__":{"format":"pt"},)" + tensor("a", "F32", "[4]", "[0,16]") + "}", 16);
  EXPECT_EQ(SafetensorsFile{path}.tensors().size(), 1u) << "metadata is no tensor";
  std::string claims(16, '\xff');
  scribble(path, claims);
  EXPECT_THROW(SafetensorsFile{path}, Error) << "a header of 2^64 - 1 bytes";
}

TEST(Safetensors, ReadingUnderAnotherNameTypeOrShapeNamesFileAndTensor) {
  const TemporaryFolder folder;
  const Path path = folder / "small.safetensors";
  write_small(path);
  const SafetensorsFile file(path);
  EXPECT_THAT(error_of([&] { file.values<float>("row", {3, 2}); }), HasSubstr("\"row\""));
  EXPECT_THAT(error_of([&] { file.values<float>("rows", {2, 3}); }), HasSubstr("(3, 2)"));
  EXPECT_THAT(error_of([&] { file.values<double>("rows", {3, 2}); }), HasSubstr("small.safetensors"));
  EXPECT_THAT(error_of([&] { file.expect({{"ids", DType::i64, {3}}}); }), HasSubstr("wide"));
}

TEST(Safetensors, AWriterThatGotTooLittleOrIsMisalignedIsADefect) {
  const TemporaryFolder folder;
  SafetensorsWriter writer(folder / "a", {{"a", DType::f32, {2}}});
  EXPECT_THROW(writer.close(), InternalError);
  EXPECT_THROW((SafetensorsWriter(folder / "b", {{"a", DType::u8, {1}}, {"b", DType::f32, {1}}})),
               InternalError);
}

}  // namespace
}  // namespace hstu
