// librdkafka, which is loaded when a topic is read: other uses of the program need not have it.
#pragma once

#include <librdkafka/rdkafka.h>

namespace hstu {

struct KafkaLibrary {
  decltype(&rd_kafka_conf_new) conf_new;
  decltype(&rd_kafka_conf_set) conf_set;
  decltype(&rd_kafka_conf_destroy) conf_destroy;
  decltype(&rd_kafka_new) create;
  decltype(&rd_kafka_destroy) destroy;
  decltype(&rd_kafka_poll_set_consumer) poll_set_consumer;
  decltype(&rd_kafka_topic_new) topic_new;
  decltype(&rd_kafka_topic_destroy) topic_destroy;
  decltype(&rd_kafka_metadata) metadata;
  decltype(&rd_kafka_metadata_destroy) metadata_destroy;
  decltype(&rd_kafka_query_watermark_offsets) query_watermark_offsets;
  decltype(&rd_kafka_topic_partition_list_new) list_new;
  decltype(&rd_kafka_topic_partition_list_add) list_add;
  decltype(&rd_kafka_topic_partition_list_destroy) list_destroy;
  decltype(&rd_kafka_assign) assign;
  decltype(&rd_kafka_consumer_poll) consumer_poll;
  decltype(&rd_kafka_consumer_close) consumer_close;
  decltype(&rd_kafka_message_destroy) message_destroy;
  decltype(&rd_kafka_err2str) err2str;
};

// Error that says how to install it, if the system does not have it.
const KafkaLibrary& kafka_library();

}  // namespace hstu
