// Logs of a schema with one action, prepared in a folder of the test.
#pragma once

#include <gtest/gtest.h>

#include "hstu/events/schema.h"
#include "temporary_folder.h"

namespace hstu {

class LogTest : public testing::Test {
 protected:
  explicit LogTest(const std::string& files) : input_(temporary_folder()) {
    schema_.name = "own";
    schema_.files = {files};
    schema_.user = "user";
    schema_.time = "at";
    schema_.item = "item";
    schema_.relative_time = true;
    schema_.actions = {{.name = "any", .bit = 1, .when = {}}};
    schema_.label = "any";
    schema_.pools = {"any"};
    schema_.csv.emplace();
  }

  Path input_;
  Schema schema_;
};

}  // namespace hstu
