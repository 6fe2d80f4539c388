// What is wrong with the bytes of a message: the field, and why.
#include <limits>

#include "base/limits.h"
#include "support/catch.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

using namespace dcs;
using namespace dcs::wire;

namespace {

template <class M> std::string bytes_of(const M &message) {
    Writer writer;
    writer << message;
    return writer.bytes();
}

template <class M> std::string why(const std::string &bytes) {
    M read;
    Reader reader(bytes);
    reader >> read;
    const Status s = reader.status();
    CHECK(s.code == Code::protocol);
    return s.text;
}

}  // namespace

TEST_CASE("bytes that are no message: each error names the field and what is wrong") {
    const std::string gwait = bytes_of(Gwait{7, 3, true});
    std::string neither = gwait;
    neither.back() = 2;
    CHECK(why<Gwait>(neither) == "field block: a truth value that is neither 0 nor 1");
    CHECK(why<Gwait>(gwait + "xy") == "2 bytes too many");
    CHECK(why<Gwait>(gwait.substr(0, 2)) == "field session: the bytes end too early");

    SetHost host;
    host.limit_s = std::numeric_limits<double>::quiet_NaN();
    CHECK(why<SetHost>(bytes_of(host)) == "field limit_s: not a finite number");

    Fetch fetch;
    fetch.stream = static_cast<Stream>(200);
    CHECK(why<Fetch>(bytes_of(fetch)) == "field stream: a value that this type does not have");

    std::string claims = bytes_of(GetAuth{"abc"});
    claims[3] = '\x7f';
    CHECK(why<GetAuth>(claims) == "field ident: claims 2130706435 elements, more than there are bytes for");

    const std::size_t most = cap_of_field("ident");
    CHECK(why<GetAuth>(bytes_of(GetAuth{std::string(most + 1, 'x')})) ==
          "field ident: has " + std::to_string(most + 1) + " elements, the limit is " + std::to_string(most));
}

TEST_CASE("a report that was kept and is not whole is called that") {
    const std::string report = pack(GrainReport{});
    CHECK(unpack_report(report));
    CHECK(unpack_report(report + "x").status().text == "a report: 1 bytes too many");
    CHECK(unpack_report(report.substr(1)).status().text.find("a report: ") == 0);
}
