#include "parquet.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/floor_divide.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/data/dataset.h"

namespace tsdp::data::detail {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw DataError(cat(file.string(), ": ", why));
}

template <class T>
T value_or_refuse(arrow::Result<T> result, const std::filesystem::path& file) {
  if (!result.ok()) refuse(file, cat("cannot be read as Parquet (", result.status().message(), ")"));
  return std::move(result).ValueUnsafe();
}

void append_quoted(std::string& out, std::string_view text) {
  if (text.find_first_of(",;\t\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

template <class Number>
void append_number(std::string& out, Number number) {
  std::array<char, 32> text{};
  out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr);
}

/// `count` units of which `per_second` make a second, since 1970.
void append_time(std::string& out, std::int64_t count, std::int64_t per_second) {
  constexpr std::int64_t year_1 = -62'135'596'800, year_10000 = 253'402'300'800;
  const auto seconds = floor_divide(count, per_second);
  if (seconds < year_1 || seconds >= year_10000) {  // the calendar's own arithmetic would wrap
    out += "a time beyond the years 1 to 9999";
    return;
  }
  out += moment_text(seconds);
  if (const auto rest = count - seconds * per_second; rest != 0) {
    auto digits = std::to_string(per_second + rest);  // with a leading 1, so that zeros stay
    digits.front() = '.';
    out += digits;
  }
}

std::int64_t per_second(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND: return 1;
    case arrow::TimeUnit::MILLI: return 1'000;
    case arrow::TimeUnit::MICRO: return 1'000'000;
    case arrow::TimeUnit::NANO: return 1'000'000'000;
  }
  return 1;
}

/// Parquet keeps moments in UTC, and with them the place that they belong to.
std::string zone_text(const std::string& zone) {
  if (zone.empty()) return "";
  return zone == "UTC" ? "Z" : cat("Z[", zone, "]");
}

bool is_time(const arrow::DataType& type) {
  return type.id() == arrow::Type::TIMESTAMP || type.id() == arrow::Type::DATE32;
}

/// Appends the value of a row of `array`, which is not null.
using Append = std::function<void(std::string& out, const arrow::Array& array, std::int64_t row)>;

template <class Array>
Append numbers() {
  return [](std::string& out, const arrow::Array& array, std::int64_t row) {
    append_number(out, static_cast<const Array&>(array).Value(row));
  };
}

template <class Array>
Append texts() {
  return [](std::string& out, const arrow::Array& array, std::int64_t row) {
    append_quoted(out, static_cast<const Array&>(array).GetView(row));
  };
}

/// Null for types that are not numbers, texts or times.
Append append_of(const arrow::DataType& type) {
  using arrow::Type;
  switch (type.id()) {
    case Type::INT8: return numbers<arrow::Int8Array>();
    case Type::INT16: return numbers<arrow::Int16Array>();
    case Type::INT32: return numbers<arrow::Int32Array>();
    case Type::INT64: return numbers<arrow::Int64Array>();
    case Type::UINT8: return numbers<arrow::UInt8Array>();
    case Type::UINT16: return numbers<arrow::UInt16Array>();
    case Type::UINT32: return numbers<arrow::UInt32Array>();
    case Type::UINT64: return numbers<arrow::UInt64Array>();
    case Type::FLOAT: return numbers<arrow::FloatArray>();
    case Type::DOUBLE: return numbers<arrow::DoubleArray>();
    case Type::STRING: return texts<arrow::StringArray>();
    case Type::LARGE_STRING: return texts<arrow::LargeStringArray>();
    case Type::BOOL:
      return [](std::string& out, const arrow::Array& array, std::int64_t row) {
        out += static_cast<const arrow::BooleanArray&>(array).Value(row) ? "True" : "False";
      };
    case Type::DECIMAL128:
      return [](std::string& out, const arrow::Array& array, std::int64_t row) {
        out += static_cast<const arrow::Decimal128Array&>(array).FormatValue(row);
      };
    case Type::DATE32:
      return [](std::string& out, const arrow::Array& array, std::int64_t row) {
        append_time(out, std::int64_t{86400} * static_cast<const arrow::Date32Array&>(array).Value(row), 1);
      };
    case Type::TIMESTAMP:
      return [unit = per_second(static_cast<const arrow::TimestampType&>(type).unit()),
              zone = zone_text(static_cast<const arrow::TimestampType&>(type).timezone())](
                 std::string& out, const arrow::Array& array, std::int64_t row) {
        append_time(out, static_cast<const arrow::TimestampArray&>(array).Value(row), unit);
        out += zone;
      };
    case Type::DICTIONARY: {  // pandas' categories
      const auto of_values = append_of(*static_cast<const arrow::DictionaryType&>(type).value_type());
      if (!of_values) return {};
      return [of_values](std::string& out, const arrow::Array& array, std::int64_t row) {
        const auto& categories = static_cast<const arrow::DictionaryArray&>(array);
        of_values(out, *categories.dictionary(), categories.GetValueIndex(row));
      };
    }
    default: return {};
  }
}

std::shared_ptr<arrow::Table> table_of(const std::filesystem::path& file) {
  const auto input = value_or_refuse(arrow::io::ReadableFile::Open(file.string()), file);
  auto properties = parquet::default_reader_properties();
  properties.set_page_checksum_verification(true);
  parquet::arrow::FileReaderBuilder builder;
  if (const auto status = builder.Open(input, properties); !status.ok())
    refuse(file, cat("cannot be read as Parquet (", status.message(), ")"));
  const auto reader = value_or_refuse(builder.Build(), file);
  return value_or_refuse(reader->ReadTable(), file);
}

struct Column {
  std::shared_ptr<arrow::Field> field;
  std::shared_ptr<arrow::ChunkedArray> values;
  Append append;
};

std::vector<Column> columns_of(const arrow::Table& table) {
  std::vector<Column> columns;
  for (int i = 0; i < table.num_columns(); ++i) {
    const auto& field = table.field(i);
    auto append = append_of(*field->type());
    // Columns of other types may be ones that nobody reads.
    if (!append)
      append = [type = cat("a ", field->type()->ToString())](std::string& out, const arrow::Array&, std::int64_t) {
        append_quoted(out, type);
      };
    columns.push_back({field, table.column(i), std::move(append)});
  }
  return columns;
}

void put_times_first(std::vector<Column>& columns) {
  auto first_time =
      std::find_if(columns.begin(), columns.end(), [](const Column& column) { return is_time(*column.field->type()); });
  if (first_time == columns.end())  // Times that are texts may be pandas' index without a name, which it writes last.
    first_time = std::find_if(columns.begin(), columns.end(), [](const Column& column) {
      return column.field->name() == "__index_level_0__" && (column.field->type()->id() == arrow::Type::STRING ||
                                                             column.field->type()->id() == arrow::Type::LARGE_STRING);
    });
  if (first_time != columns.end()) std::rotate(columns.begin(), first_time, first_time + 1);
}

void append_names(std::string& out, const std::vector<Column>& columns) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) out += ',';
    append_quoted(out, columns[i].field->name());
  }
  out += '\n';
}

void append_rows(std::string& out, const std::vector<Column>& columns, std::int64_t rows) {
  // Where each column's row lies: which of its chunks, and where in it.
  struct Place {
    int chunk = 0;
    std::int64_t row = 0;
  };
  std::vector<Place> places(columns.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) out += ',';
      auto& place = places[i];
      while (place.row == columns[i].values->chunk(place.chunk)->length()) place = {place.chunk + 1, 0};
      const auto& array = *columns[i].values->chunk(place.chunk);
      if (!array.IsNull(place.row)) columns[i].append(out, array, place.row);
      ++place.row;
    }
    out += '\n';
  }
}

}  // namespace

std::string parquet_as_csv(const std::filesystem::path& file) {
  const auto table = table_of(file);
  auto columns = columns_of(*table);
  if (columns.empty()) refuse(file, "found no columns; expected times and values");
  put_times_first(columns);
  std::string out;
  append_names(out, columns);
  append_rows(out, columns, table->num_rows());
  return out;
}

}  // namespace tsdp::data::detail
