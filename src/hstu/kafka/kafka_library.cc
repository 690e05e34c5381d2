#include "hstu/kafka/kafka_library.h"

#include <dlfcn.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr const char* kName = "librdkafka.so.1";

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  check(function != nullptr, "{} has no function {}: install a later version", kName, name);
}

KafkaLibrary load() {
  void* const library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  check(library != nullptr, "Kafka's library cannot be loaded: install the package librdkafka1 ({})",
        library == nullptr ? ::dlerror() : "");
  KafkaLibrary k{};
  find(library, "rd_kafka_conf_new", k.conf_new);
  find(library, "rd_kafka_conf_set", k.conf_set);
  find(library, "rd_kafka_conf_destroy", k.conf_destroy);
  find(library, "rd_kafka_new", k.create);
  find(library, "rd_kafka_destroy", k.destroy);
  find(library, "rd_kafka_poll_set_consumer", k.poll_set_consumer);
  find(library, "rd_kafka_topic_new", k.topic_new);
  find(library, "rd_kafka_topic_destroy", k.topic_destroy);
  find(library, "rd_kafka_metadata", k.metadata);
  find(library, "rd_kafka_metadata_destroy", k.metadata_destroy);
  find(library, "rd_kafka_query_watermark_offsets", k.query_watermark_offsets);
  find(library, "rd_kafka_topic_partition_list_new", k.list_new);
  find(library, "rd_kafka_topic_partition_list_add", k.list_add);
  find(library, "rd_kafka_topic_partition_list_destroy", k.list_destroy);
  find(library, "rd_kafka_assign", k.assign);
  find(library, "rd_kafka_consumer_poll", k.consumer_poll);
  find(library, "rd_kafka_consumer_close", k.consumer_close);
  find(library, "rd_kafka_message_destroy", k.message_destroy);
  find(library, "rd_kafka_err2str", k.err2str);
  return k;
}

}  // namespace

const KafkaLibrary& kafka_library() {
  static const KafkaLibrary library = load();
  return library;
}

}  // namespace hstu
