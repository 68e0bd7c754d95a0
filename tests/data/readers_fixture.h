// What tests of the readers share.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/series.h"
#include "support/temporary_folder.h"
#include "tsdp/base/error.h"
#include "tsdp/data/readers.h"
#include "tsdp/random/random.h"

namespace tsdp::data {

using test::at;
using test::missing;

/// gzip's form of `text`.
inline std::string packed(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  std::string copy = text;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline void expect_values(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i])))
        << "place " << i << ": " << found[i] << " is not " << expected[i];
}

class Readers : public test::TemporaryFolder {
 protected:
  std::filesystem::path put(const std::string& content, const std::string& name = "set.txt") const {
    std::filesystem::remove(folder_ / name);  // some file systems wait for the disk when a file is overwritten
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }

  static ReadOptions options(Format format, const std::string& frequency = "1h") {
    ReadOptions out{format, Frequency::parse(frequency), std::nullopt};
    if (format == Format::lstnet) out.start = at("2015-01-01");
    return out;
  }

  Dataset lstnet(const std::string& content, const std::string& frequency = "1h") const {
    return read_dataset(put(content), options(Format::lstnet, frequency));
  }
  Dataset csv(const std::string& content, const std::string& frequency = "1h") const {
    return read_dataset(put(content), options(Format::csv, frequency));
  }
  Dataset csv_long(const std::string& content, const std::string& frequency = "1h") const {
    return read_dataset(put(content), options(Format::csv_long, frequency));
  }
  Dataset jsonl(const std::string& content, const std::string& frequency = "1h") const {
    return read_dataset(put(content), options(Format::jsonl, frequency));
  }
  Dataset tsf(const std::string& content, const std::string& frequency = "10min") const {
    return read_dataset(put(content), options(Format::tsf, frequency));
  }

  /// The message of the DataError, without the folder's name.
  std::string error(const std::string& content, const ReadOptions& read_options) const {
    try {
      (void)read_dataset(put(content), read_options);
    } catch (const DataError& failure) {
      std::string what = failure.what();
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
      const std::string prefix = (folder_ / "").string();
      EXPECT_EQ(what.substr(0, prefix.size()), prefix);
      return what.substr(std::min(prefix.size(), what.size()));
    }
    return "no error";
  }
  std::string lstnet_error(const std::string& content) const { return error(content, options(Format::lstnet)); }
  std::string csv_error(const std::string& content, const std::string& frequency = "1h") const {
    return error(content, options(Format::csv, frequency));
  }
  std::string tsf_error(const std::string& content, const std::string& frequency = "10min") const {
    return error(content, options(Format::tsf, frequency));
  }

  std::string csv_long_error(const std::string& content, const std::string& frequency = "1h") const {
    return error(content, options(Format::csv_long, frequency));
  }
  std::string jsonl_error(const std::string& content) const { return error(content, options(Format::jsonl)); }

  /// Changes `text` again and again at random places; what comes of it must be read, or refused in one line that names
  /// the file.
  void expect_no_crash(const std::string& text, const std::string& bytes, const ReadOptions& read_options) const {
    RandomStream stream(SecretKey::from_seed(9), "corruption", 0);
    int read = 0;
    int refused = 0;
    const auto attempt = [&](const std::string& damaged) {
      const auto message = error(damaged, read_options);
      ++(message == "no error" ? read : refused);
      EXPECT_TRUE(message == "no error" || message.starts_with("set.txt:")) << message;
    };
    for (int trial = 0; trial < 3000; ++trial) {
      std::string damaged = text;
      for (auto changes = 1 + stream.below(3); changes > 0; --changes) {
        const auto place = static_cast<std::size_t>(stream.below(damaged.size()));
        const char byte =
            stream.below(4) == 0 ? static_cast<char>(stream.below(256)) : bytes[stream.below(bytes.size())];
        switch (stream.below(4)) {
          case 0: damaged[place] = byte; break;
          case 1: damaged.insert(place, 1 + stream.below(3), byte); break;
          case 2: damaged.erase(place, 1 + stream.below(5)); break;
          default: damaged += damaged.substr(place, stream.below(30));
        }
        if (damaged.empty()) damaged.assign(1, ' ');
      }
      attempt(damaged);
    }
    for (std::size_t size = 0; size < text.size(); ++size) attempt(text.substr(0, size));
    // Both must have happened, or nothing was tried.
    EXPECT_GT(read, 30);
    EXPECT_GT(refused, 300);
  }
};

}  // namespace tsdp::data
