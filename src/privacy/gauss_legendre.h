// Nodes and weights of Gauss–Legendre rules on [−1, 1]: the positive half, the rest is symmetric.
#pragma once

#include <array>

namespace tsdp::privacy::gauss_legendre {

inline constexpr std::array<double, 2> nodes4 = {0.3399810435848562648, 0.8611363115940525752};
inline constexpr std::array<double, 2> weights4 = {0.6521451548625461426, 0.3478548451374538574};
inline constexpr std::array<double, 4> nodes8 = {0.1834346424956498049, 0.5255324099163289858, 0.7966664774136267396,
                                                 0.9602898564975362317};
inline constexpr std::array<double, 4> weights8 = {0.3626837833783619830, 0.3137066458778872873, 0.2223810344533744706,
                                                   0.1012285362903762591};

}  // namespace tsdp::privacy::gauss_legendre
