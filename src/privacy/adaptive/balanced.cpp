#include "balanced.h"

#include <algorithm>
#include <cstddef>

namespace tsdp::privacy {

void convex_from_below(const std::vector<double>& z, std::vector<double>& f) {
  std::vector<std::size_t> kept;
  const auto slope = [&](std::size_t a, std::size_t b) { return (f[b] - f[a]) / (z[b] - z[a]); };
  for (std::size_t i = 0; i < z.size(); ++i) {
    while (kept.size() >= 2 && slope(kept[kept.size() - 2], kept.back()) > slope(kept.back(), i)) kept.pop_back();
    kept.push_back(i);
  }
  for (std::size_t k = 0; k + 1 < kept.size(); ++k)
    for (auto i = kept[k] + 1; i < kept[k + 1]; ++i)
      f[i] = f[kept[k]] + slope(kept[k], kept[k + 1]) * (z[i] - z[kept[k]]);
}

void falling_hull(const std::vector<double>& z, std::vector<double>& f) {
  for (std::size_t i = 1; i < f.size(); ++i) f[i] = std::min(f[i], f[i - 1]);
  convex_from_below(z, f);
}

}  // namespace tsdp::privacy
