// What is wrong with the bytes of a message: the field, and why.
#include <limits>

#include "base/limits.h"
#include "support/about.h"
#include "support/catch.h"
#include "wire/message.h"
#include "wire/archives.h"

using namespace dcs;
using namespace dcs::wire;

namespace {

template <class M> std::string bytes_of(const M &message, Form form = positional_form) {
    Writer writer(form);
    writer << message;
    return writer.bytes();
}

template <class M> std::string why(const std::string &bytes, Form form = positional_form) {
    M read;
    Reader reader(bytes, form);
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
    CHECK(why<Gwait>(neither) == about("field neither 0"));
    CHECK(why<Gwait>(gwait + "xy") == "2 bytes too many");
    CHECK(why<Gwait>(gwait.substr(0, 2)) == about("field session bytes end early"));

    SetHost host;
    host.limit_s = std::numeric_limits<double>::quiet_NaN();
    CHECK(why<SetHost>(bytes_of(host)) == about("field limit_s not"));

    Fetch fetch;
    fetch.stream = static_cast<Stream>(200);
    CHECK(why<Fetch>(bytes_of(fetch)) == about("field stream not"));

    std::string claims = bytes_of(GetAuth{"abc"});
    claims[3] = '\x7f';
    CHECK(why<GetAuth>(claims) == about("field 2130706435 elements"));

    const std::size_t most = limits::name_bytes;
    CHECK(why<GetAuth>(bytes_of(GetAuth{std::string(most + 1, 'x')})) ==
          about("field ident " + std::to_string(most + 1) + " elements limit " + std::to_string(most)));
}

TEST_CASE("numbered fields that are no message: each error names the field and what is wrong") {
    const auto tagged = [](const auto &message) { return bytes_of(message, newest_form); };
    const std::string gwait = tagged(Gwait{7, 3, true});
    CHECK(gwait == std::string("\x09\x0e\x11\x06\x18\x01\x00", 7));
    std::string neither = gwait;
    neither[5] = 2;
    CHECK(why<Gwait>(neither, 9) == about("field neither 0"));
    CHECK(why<Gwait>(gwait + "xy", 9) == "2 bytes too many");
    CHECK(why<Gwait>(gwait.substr(0, 1), 9) == about("field session bytes early kind"));
    std::string another = gwait;
    another[0] = 0x0b;  // bytes, where a number is due
    CHECK(why<Gwait>(another, 9) == about("field session bytes early kind"));
    ByteWriter wide;
    put_tag(wide, 1, FieldKind::integer);
    wide.svar(std::int64_t{1} << 31);
    end_fields(wide);
    CHECK(why<Gwait>(wide.bytes(), 9) == about("field session not"));
    Fetch fetch;
    fetch.stream = static_cast<Stream>(200);
    CHECK(why<Fetch>(tagged(fetch), 9) == about("field stream not"));
    CHECK(why<GetAuth>(tagged(GetAuth{std::string(limits::name_bytes + 1, 'x')}), 9) ==
          about("field ident " + std::to_string(limits::name_bytes + 1) + " elements limit " +
                std::to_string(limits::name_bytes)));
    QueryReply reply;
    reply.grains.resize(1000);  // each of them one byte
    CHECK(why<QueryReply>(tagged(reply), 9) == about("field 1000 elements"));
}

TEST_CASE("a report that was kept and is not whole is called that") {
    const std::string report = pack(GrainReport{});
    CHECK(unpack_report(report));
    CHECK(unpack_report(report + "x").status().text.find("a report: ") == 0);  // no numbered fields
    CHECK(unpack_report(report.substr(1)).status().text.find("a report: ") == 0);
}
