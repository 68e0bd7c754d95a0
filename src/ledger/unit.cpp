#include "ledger/unit.h"

#include <limits>
#include <string>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::mechanism {

using Json = nlohmann::ordered_json;
using privacy::PrivacyUnit;
using privacy::Relation;

namespace {

constexpr const char* of_owner = "owner";

bool places_contain(const PrivacyUnit& outer, const PrivacyUnit& inner) {
  if (outer.relation == Relation::series || inner.relation == Relation::series)
    return outer.relation == inner.relation && outer.owners == inner.owners;
  if (outer.w < inner.w) return false;
  switch (outer.relation) {
    case Relation::series:
    case Relation::user: return true;
    case Relation::event: return inner.relation == Relation::event || inner.w == 1;
  }
  throw Error(ExitCode::failure, "a relation that contains nothing");
}

}  // namespace

std::string unit_text(const PrivacyUnit& unit) {
  if (unit.variables > 1) {
    auto of_one = unit;
    of_one.variables = 1;
    return cat(unit_text(of_one), ", of ", unit.variables, " variables at every step");
  }
  if (!unit.owners.empty())
    return cat("series: all series of one owner, present or absent, grouped as ", unit.owners.substr(0, 8));
  if (unit.relation == Relation::series) return "series: one whole series, present or absent";
  return cat(name(unit.relation), " with w = ", unit.w,
             unit.v ? cat(", v = ", *unit.v) : std::string(", any change of a value"));
}

bool contains(const PrivacyUnit& outer, const PrivacyUnit& inner) {
  // Whether the values of one are among those of the other, nothing here tells.
  if (outer.variables != inner.variables) return false;
  const bool sizes = !outer.v || (inner.v && *inner.v <= *outer.v);
  return sizes && places_contain(outer, inner);
}

PrivacyUnit guaranteed_unit(const PrivateMechanism& mechanism) {
  auto unit = mechanism.unit();
  if (!mechanism.scheme().has_noise_on_data()) unit.v.reset();
  return unit;
}

Json unit_json(const PrivacyUnit& unit) {
  // A kind of its own: programs that know no owners read it as nothing that they know.
  Json out = {{"kind", unit.owners.empty() ? name(unit.relation) : of_owner},
              {"w", unit.w},
              {"v", unit.v ? Json(*unit.v) : Json(nullptr)}};
  if (!unit.owners.empty()) out["owners_sha256"] = unit.owners;
  if (unit.variables > 1) out["variables"] = unit.variables;
  return out;
}

PrivacyUnit read_unit(const Fields& fields) {
  PrivacyUnit out;
  if (fields.text("kind") == of_owner) {
    out.relation = Relation::series;
    out.owners = fields.sha256("owners_sha256");
  } else {
    out.relation = fields.one_of<Relation>("kind");
  }
  out.w = fields.length("w");
  if (fields.has("variables")) out.variables = fields.length("variables");
  if (!fields.at("v").is_null()) out.v = fields.number("v", std::numeric_limits<double>::denorm_min(), 1e300);
  return out;
}

}  // namespace tsdp::mechanism
