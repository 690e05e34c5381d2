// The bodies of requests that hstu serve reads, as JSON and as numbers: rejected, or of the form that scoring
// expects.
#include "fuzz/harness.h"
#include "hstu/dataset/names_writer.h"
#include "hstu/dataset/writer.h"
#include "hstu/serve/binary_requests.h"
#include "hstu/serve/json_requests.h"

namespace {

using namespace hstu;

const Dataset& schema() {
  static const Dataset dataset(fuzz::made_folder("serve", [](const Path& folder) {
    Manifest description;
    description.name = "small";
    description.actions = {{"like", 1}, {"skip", 4}};
    description.label = "like";
    description.pools = {"like"};
    description.context = {"worth", "place"};
    Manifest manifest = DatasetWriter(folder, description).finish({});
    write_code_names(folder, "context_place", std::vector<std::string>{"home", "a,b"}, manifest);
    manifest.id = dataset_id(manifest.columns);
    write_file(folder / kManifestFile, manifest_to_json(manifest));
  }));
  return dataset;
}

void expect_request(const ScoreRequest& request) {
  require(request.context.empty() || request.context.size() == 2, "contexts of another dataset");
  if (!request.events) return;
  require(request.events->context.empty() || request.events->context.size() == 2,
          "columns of another dataset");
}

}  // namespace

// Input: a byte that chooses the form, and the body.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const RequestForm form(schema(), {true, false}, {false, true});
  static const std::vector<std::string> tasks{"like", "skip"};
  const Asked asked = static_cast<Asked>(data[0] % 3);
  const std::string_view body = fuzz::text_of(data + 1, size - 1);
  return fuzz::accept_or_refuse([&] {
    if ((data[0] & 4) != 0) {
      for (const ScoreRequest& request : read_binary_requests(body, asked, 2)) expect_request(request);
    } else {
      for (const ScoreRequest& request : read_json_requests(body, asked, form, tasks).requests)
        expect_request(request);
    }
  });
}
