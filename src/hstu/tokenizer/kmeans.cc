#include "hstu/tokenizer/kmeans.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/base/threads.h"

namespace hstu {
namespace {

constexpr std::int64_t kPoints = 64;   // of one task
constexpr std::int64_t kCenters = 64;  // side by side

// Centers by coordinate, in blocks: (blocks, D, kCenters), so that distances to many are computed side by
// side.
class CenterBlocks {
 public:
  CenterBlocks(std::span<const float> centers, std::int64_t width)
      : width_(width), clusters_(static_cast<std::int64_t>(centers.size()) / width) {
    blocks_.resize(static_cast<std::size_t>((clusters_ + kCenters - 1) / kCenters * width * kCenters), 0);
    for (std::int64_t k = 0; k < clusters_; ++k)
      for (std::int64_t d = 0; d < width; ++d)
        blocks_[static_cast<std::size_t>((k / kCenters * width + d) * kCenters + k % kCenters)] =
            centers[static_cast<std::size_t>(k * width + d)];
  }

  void find_nearest(const float* point, std::int32_t& nearest, float& distance) const {
    distance = std::numeric_limits<float>::infinity();
    nearest = 0;
    for (std::int64_t first = 0; first < clusters_; first += kCenters) {
      std::array<float, kCenters> sums{};
      const float* block = blocks_.data() + first * width_;
      for (std::int64_t d = 0; d < width_; ++d, block += kCenters) {
        const float x = point[d];
#pragma omp simd
        for (std::int64_t c = 0; c < kCenters; ++c)
          sums[static_cast<std::size_t>(c)] += (x - block[c]) * (x - block[c]);
      }
      const std::int64_t count = std::min(kCenters, clusters_ - first);
      for (std::int64_t c = 0; c < count; ++c) {
        if (sums[static_cast<std::size_t>(c)] >= distance) continue;
        distance = sums[static_cast<std::size_t>(c)];
        nearest = static_cast<std::int32_t>(first + c);
      }
    }
  }

 private:
  std::int64_t width_, clusters_;
  std::vector<float> blocks_;
};

class KMeans {
 public:
  KMeans(std::span<const float> points, std::int64_t width, const KMeansOptions& options)
      : points_(points),
        width_(width),
        n_(std::ssize(points) / width),
        options_(options),
        random_{options.key} {
    result_.centers.resize(static_cast<std::size_t>(options.clusters * width));
    result_.cluster.assign(static_cast<std::size_t>(n_), 0);
    result_.distance.assign(static_cast<std::size_t>(n_), std::numeric_limits<float>::infinity());
  }

  KMeansResult run() {
    begin();
    assign();
    for (std::int64_t i = 0; i < options_.iterations; ++i) {
      move_centers();
      if (!assign()) break;
    }
    return std::move(result_);
  }

 private:
  const float* point(std::int64_t i) const { return points_.data() + i * width_; }
  void put_center(std::int64_t cluster, std::int64_t of_point) {
    std::copy_n(point(of_point), width_, result_.centers.begin() + cluster * width_);
  }

  // The first center is any point; each next one a point drawn in proportion to its squared distance from the
  // nearest center so far.
  void begin() {
    std::int64_t chosen = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(n_)));
    for (std::int64_t k = 0; k < options_.clusters; ++k) {
      put_center(k, chosen);
      parallel_blocks(n_, 4096, [&](std::int64_t first, std::int64_t end) {
        for (std::int64_t i = first; i < end; ++i) {
          float sum = 0;
          for (std::int64_t d = 0; d < width_; ++d) {
            const float x = point(i)[d] - point(chosen)[d];
            sum += x * x;
          }
          float& nearest = result_.distance[static_cast<std::size_t>(i)];
          nearest = std::min(nearest, sum);
        }
      });
      chosen = draw_by_distance();
    }
  }

  std::int64_t draw_by_distance() {
    const double total = std::accumulate(result_.distance.begin(), result_.distance.end(), 0.0);
    double left = random_.uniform() * total;
    for (std::int64_t i = 0; i < n_; ++i) {
      left -= result_.distance[static_cast<std::size_t>(i)];
      if (left < 0) return i;
    }
    return n_ - 1;
  }

  // Returns whether a point has changed its cluster.
  bool assign() {
    const std::vector<std::int32_t> before = result_.cluster;
    find_nearest(points_, result_.centers, width_, result_.cluster, result_.distance);
    return result_.cluster != before;
  }

  // To the means, each summed over its points in their order.
  void move_centers() {
    const auto clusters = static_cast<std::size_t>(options_.clusters);
    std::vector<std::int64_t> offsets(clusters + 1, 0), members(static_cast<std::size_t>(n_));
    for (const std::int32_t k : result_.cluster) ++offsets[static_cast<std::size_t>(k) + 1];
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1);
    for (std::int64_t i = 0; i < n_; ++i)
      members[static_cast<std::size_t>(
          next[static_cast<std::size_t>(result_.cluster[static_cast<std::size_t>(i)])]++)] = i;
    parallel_blocks(options_.clusters, 4, [&](std::int64_t first, std::int64_t end) {
      std::vector<double> sum(static_cast<std::size_t>(width_));
      for (std::int64_t k = first; k < end; ++k) {
        const auto begin_of = offsets[static_cast<std::size_t>(k)],
                   end_of = offsets[static_cast<std::size_t>(k) + 1];
        if (begin_of == end_of) continue;
        std::fill(sum.begin(), sum.end(), 0.0);
        for (std::int64_t m = begin_of; m < end_of; ++m)
          for (std::int64_t d = 0; d < width_; ++d)
            sum[static_cast<std::size_t>(d)] += point(members[static_cast<std::size_t>(m)])[d];
        for (std::int64_t d = 0; d < width_; ++d)
          result_.centers[static_cast<std::size_t>(k * width_ + d)] =
              static_cast<float>(sum[static_cast<std::size_t>(d)] / static_cast<double>(end_of - begin_of));
      }
    });
    restart_empty(offsets);
  }

  // Each takes the farthest point that no other has taken.
  void restart_empty(const std::vector<std::int64_t>& offsets) {
    std::vector<std::int64_t> empty;
    for (std::int64_t k = 0; k < options_.clusters; ++k)
      if (offsets[static_cast<std::size_t>(k)] == offsets[static_cast<std::size_t>(k) + 1])
        empty.push_back(k);
    if (empty.empty()) return;
    std::vector<std::int64_t> farthest(static_cast<std::size_t>(n_));
    std::iota(farthest.begin(), farthest.end(), std::int64_t{0});
    const auto taken = std::min<std::int64_t>(std::ssize(empty), n_);
    const auto& distance = result_.distance;
    std::partial_sort(
        farthest.begin(), farthest.begin() + taken, farthest.end(), [&](std::int64_t a, std::int64_t b) {
          const float x = distance[static_cast<std::size_t>(a)], y = distance[static_cast<std::size_t>(b)];
          return x != y ? x > y : a < b;
        });
    for (std::int64_t e = 0; e < taken; ++e) {
      const std::int64_t i = farthest[static_cast<std::size_t>(e)];
      if (distance[static_cast<std::size_t>(i)] == 0) break;  // every point has a center of its own
      put_center(empty[static_cast<std::size_t>(e)], i);
    }
  }

  std::span<const float> points_;
  std::int64_t width_, n_;
  const KMeansOptions& options_;
  RandomStream random_;
  KMeansResult result_;
};

}  // namespace

void find_nearest(std::span<const float> points, std::span<const float> centers, std::int64_t width,
                  std::span<std::int32_t> cluster, std::span<float> distance) {
  const CenterBlocks blocks(centers, width);
  parallel_blocks(std::ssize(cluster), kPoints, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      blocks.find_nearest(points.data() + i * width, cluster[at], distance[at]);
    }
  });
}

KMeansResult kmeans(std::span<const float> points, std::int64_t width, const KMeansOptions& options) {
  require(width >= 1 && options.clusters >= 1 && std::ssize(points) >= width, "k-means: expected points");
  return KMeans(points, width, options).run();
}

}  // namespace hstu
