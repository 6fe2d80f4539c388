// Numbered fields: what a reader knows it gets, what it does not know it passes over, and bytes of any party do no
// harm.
#include <catch2/catch.hpp>

#include "base/bytes.h"

using namespace dcs;

namespace {

std::string sample() {
    ByteWriter w;
    put_tag(w, 1, FieldKind::natural);
    w.var(300);
    put_tag(w, 2, FieldKind::integer);
    w.svar(-7);
    put_tag(w, 3, FieldKind::fields);
    put_tag(w, 9, FieldKind::bytes);
    put_bytes(w, "inner");
    end_fields(w);
    put_tag(w, 4, FieldKind::list);
    w.u8(static_cast<std::uint8_t>(FieldKind::bytes));
    w.var(2);
    put_bytes(w, "a");
    put_bytes(w, "bc");
    put_tag(w, 5, FieldKind::real);
    w.u64(42);
    put_tag(w, 17, FieldKind::bytes);
    put_bytes(w, "last");
    end_fields(w);
    return w.bytes();
}

}  // namespace

TEST_CASE("a reader that knows the first and the last field passes over those between", "[tagged]") {
    const std::string bytes = sample();
    ByteReader in(bytes);
    FieldReader fields(in);
    REQUIRE(fields.at(1, FieldKind::natural));
    CHECK(in.var() == 300);
    CHECK_FALSE(fields.skipped());
    REQUIRE(fields.at(17, FieldKind::bytes));
    CHECK(get_bytes(in) == "last");
    CHECK(fields.skipped());
    fields.finish();
    CHECK(in.at_end());
}

TEST_CASE("a field that is not there is not found, and the next one still is", "[tagged]") {
    const std::string bytes = sample();
    ByteReader in(bytes);
    FieldReader fields(in);
    CHECK(fields.at(2, FieldKind::integer));
    CHECK(in.svar() == -7);
    CHECK(fields.at(5, FieldKind::real));
    CHECK(in.u64() == 42);
    CHECK_FALSE(fields.at(6, FieldKind::natural));
    CHECK_FALSE(fields.at(16, FieldKind::natural));
    CHECK(fields.at(17, FieldKind::bytes));
    CHECK(get_bytes(in) == "last");
    CHECK_FALSE(fields.at(18, FieldKind::bytes));
    fields.finish();
    CHECK(in.at_end());
}

TEST_CASE("a reader that knows no field passes over all of them", "[tagged]") {
    const std::string bytes = sample() + "behind";
    ByteReader in(bytes);
    FieldReader fields(in);
    fields.finish();
    CHECK(in.raw(6) == "behind");
    CHECK(in.at_end());
}

TEST_CASE("fields of another kind, out of order, twice, cut off or without end spoil the bytes", "[tagged]") {
    const auto spoiled = [](std::string bytes) {
        ByteReader in(bytes);
        FieldReader fields(in);
        if (fields.at(1, FieldKind::natural)) in.var();
        fields.finish();
        return !in.good();
    };
    const std::string bytes = sample();
    CHECK_FALSE(spoiled(bytes));
    for (std::size_t n = 0; n < bytes.size(); ++n) CHECK(spoiled(bytes.substr(0, n)));
    ByteWriter other;
    put_tag(other, 1, FieldKind::bytes);
    put_bytes(other, "x");
    end_fields(other);
    CHECK(spoiled(other.bytes()));
    for (const std::uint32_t second : {1u, 2u}) {
        ByteWriter w;
        put_tag(w, 2, FieldKind::natural);
        w.var(1);
        put_tag(w, second, FieldKind::natural);
        w.var(1);
        end_fields(w);
        CHECK(spoiled(w.bytes()));
    }
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += "\x0c";  // number 1, fields, in each other
    CHECK(spoiled(deep));
    ByteWriter many;
    put_tag(many, 2, FieldKind::list);
    many.u8(0);
    many.var(UINT64_MAX);
    CHECK(spoiled(many.bytes()));
    ByteWriter strange;
    strange.var(8 * 2 + 7);
    strange.var(0);
    CHECK(spoiled(strange.bytes()));
}
