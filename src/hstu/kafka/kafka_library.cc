#include "hstu/kafka/kafka_library.h"

#include <dlfcn.h>

#include "hstu/base/error.h"
#include "hstu/base/library_function.h"

namespace hstu {
namespace {

constexpr const char* kName = "librdkafka.so.1";

KafkaLibrary load() {
  void* const library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  check(library != nullptr, "Kafka's library cannot be loaded: install the package librdkafka1 ({})",
        library == nullptr ? ::dlerror() : "");
  KafkaLibrary k{};
  const auto find = [&](const char* name, auto& function) { find_function(library, kName, name, function); };
  find("rd_kafka_conf_new", k.conf_new);
  find("rd_kafka_conf_set", k.conf_set);
  find("rd_kafka_conf_destroy", k.conf_destroy);
  find("rd_kafka_new", k.create);
  find("rd_kafka_destroy", k.destroy);
  find("rd_kafka_poll_set_consumer", k.poll_set_consumer);
  find("rd_kafka_topic_new", k.topic_new);
  find("rd_kafka_topic_destroy", k.topic_destroy);
  find("rd_kafka_metadata", k.metadata);
  find("rd_kafka_metadata_destroy", k.metadata_destroy);
  find("rd_kafka_query_watermark_offsets", k.query_watermark_offsets);
  find("rd_kafka_topic_partition_list_new", k.list_new);
  find("rd_kafka_topic_partition_list_add", k.list_add);
  find("rd_kafka_topic_partition_list_destroy", k.list_destroy);
  find("rd_kafka_assign", k.assign);
  find("rd_kafka_consumer_poll", k.consumer_poll);
  find("rd_kafka_consumer_close", k.consumer_close);
  find("rd_kafka_message_destroy", k.message_destroy);
  find("rd_kafka_err2str", k.err2str);
  return k;
}

}  // namespace

const KafkaLibrary& kafka_library() {
  static const KafkaLibrary library = load();
  return library;
}

}  // namespace hstu
