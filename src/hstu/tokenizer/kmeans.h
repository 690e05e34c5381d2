// k-means: k-means++ (Arthur and Vassilvitskii, 2007), then Lloyd's iterations. The same bits for any number
// of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hstu {

struct KMeansOptions {
  std::int64_t clusters = 256;    // K
  std::int64_t iterations = 100;  // at most; fewer where no point changes its cluster
  std::uint64_t key = 0;          // of the draws
};

struct KMeansResult {
  std::vector<float> centers;         // (K, D)
  std::vector<std::int32_t> cluster;  // (n) the nearest center, the first of equal ones
  std::vector<float> distance;        // (n) squared
};

// points (n, D), n >= 1. A cluster that loses all of its points begins again at the point that is farthest
// from its center. With fewer different points than clusters some clusters have no point.
KMeansResult kmeans(std::span<const float> points, std::int64_t width, const KMeansOptions& options);

// Of each point (n, D) the nearest of the centers (K, D), the first of equal ones, and its squared distance.
void find_nearest(std::span<const float> points, std::span<const float> centers, std::int64_t width,
                  std::span<std::int32_t> cluster, std::span<float> distance);

}  // namespace hstu
