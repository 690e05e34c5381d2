// The texts of a submission's folder benchmarks/: what it is, and the scripts that repeat it.
#pragma once

#include <string_view>

namespace hstu {

// {system}, {version}
inline constexpr std::string_view kPackReadme = R"text(# dlrmv4 on {system}

Trained by hstu.cpp {version}. `implementations/hstu.cpp/config.toml` is the whole resolved configuration of the
first run; the others differ in their seeds alone, which each run drew from the system's random numbers.

    ./setup.sh            builds the program
    ./init_datasets.sh    downloads, prepares and verifies the data, untimed
    ./run_and_time.sh     one run: empties the file caches, trains, prints the verdict on its log

The optimizers are Adam and row-wise Adagrad as docs/model.md of the program's sources states them by formula. The
data are read in the order of their times, without a shuffle; a window's last partial batch is left out.
)text";

inline constexpr std::string_view kPackSource = R"text(# hstu.cpp

Version {version}, which names the commit of the sources. Every hyperparameter is in config.toml; docs/mlperf.md of
the sources says what each line of a log is made of.
)text";

inline constexpr std::string_view kPackSetup = R"text(#!/usr/bin/env bash
# In a checkout of the sources.
set -euo pipefail
./dev build hstu hstu-prepare
)text";

inline constexpr std::string_view kPackData = R"text(#!/usr/bin/env bash
# In a checkout of the sources. DATA: a folder with room for the downloaded files and the dataset.
set -euo pipefail
data=${1:?the folder for data}
./dev download mlcommons --output "$data/mlcommons"
build/hstu prepare verify "$data/mlcommons/processed_5b"
build/hstu prepare mlcommons --input "$data/mlcommons/processed_5b/hstu_cache_L4086" \
  --metadata "$data/mlcommons/shared_metadata" --output "$data/dataset"
build/hstu prepare verify "$data/dataset"
)text";

inline constexpr std::string_view kPackRun = R"text(#!/usr/bin/env bash
# One run. DATASET: of init_datasets.sh. RUN: the folder to make. Needs root for the file caches.
set -euo pipefail
dataset=${1:?the dataset} run=${2:?the folder of the run}
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
sync && echo 3 >/proc/sys/vm/drop_caches
began=$(date +%s)
build/hstu train "$here/../implementations/hstu.cpp/config.toml" --set data.path="$dataset" \
  --set seed=random --set submission.caches_cleared=true --output "$run"
echo "RESULT,dlrmv4,$(($(date +%s) - began)) s with initialisation"
)text";

}  // namespace hstu
