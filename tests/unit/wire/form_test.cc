// Programs of two releases: what each writes for the other, and what it makes of what arrived.
#include "support/about.h"
#include "wire/form.h"

#include "base/bytes.h"
#include "samples.h"
#include "support/catch.h"
#include "wire/message.h"
#include "wire/archives.h"

using namespace dcs;
using namespace dcs::wire;

namespace {

// A struct of this release, and what a later one makes of it: fields more, one of them in a nested struct.
struct Inner {
    std::int32_t a = 1;
};
struct Struct {
    std::string name;
    Inner inner;
    std::vector<Inner> list;
};
struct LaterInner {
    std::int32_t a = 1;
    std::vector<std::string> words;
};
struct Later {
    std::string name;
    LaterInner inner;
    std::vector<LaterInner> list;
    double real = 0.5;
    LaterInner more;
    std::string seen;
};

// clang-format off
template <class A> void serialize(A &a, Inner &x, unsigned) { a & DCS_FIELD(a); }
template <class A> void serialize(A &a, Struct &x, unsigned) {
    a & DCS_FIELD(name) & DCS_FIELD(inner) & DCS_FIELD(list);
}
template <class A> void serialize(A &a, LaterInner &x, unsigned) { a & DCS_FIELD(a) & since<10>(DCS_FIELD(words)); }
template <class A> void serialize(A &a, Later &x, unsigned) {
    a & DCS_FIELD(name) & DCS_FIELD(inner) & DCS_FIELD(list) & since<10>(DCS_FIELD(real)) & since<11>(DCS_FIELD(more))
      & shown_since<12>(DCS_FIELD(seen));
}
// clang-format on

template <class T> std::string written(const T &value, Form form) {
    Writer writer(form);
    writer << value;
    return writer.bytes();
}
template <class T> Result<T> read(std::string_view bytes, Form form) {
    T value;
    Reader reader(bytes, form);
    reader >> value;
    if (Status s = reader.status(); !s) return s;
    return value;
}

Later later() {
    Later x;
    x.name = "n", x.inner = {2, {"w"}}, x.list = {{3, {"v", ""}}, {}}, x.real = 7, x.more = {4, {}}, x.seen = "text";
    return x;
}

FrameHeader header_of(const std::string &frame) { return *decode_header(frame.substr(0, header_bytes), 1u << 20); }

}  // namespace

TEST_CASE("a reader passes over the fields that it does not know") {
    const auto old = read<Struct>(written(later(), 12), 9);
    REQUIRE(old);
    CHECK((old->name == "n" && old->inner.a == 2 && old->list.size() == 2 && old->list[0].a == 3));
    CHECK(old->list[1].a == 1);  // its default
    const auto again = read<Later>(written(*old, 9), 12);
    REQUIRE(again);
    CHECK((again->name == "n" && again->real == 0.5 && again->inner.words.empty()));
}

TEST_CASE("a field that has its default takes no room") {
    CHECK(written(Later{}, 12) == std::string(1, '\0'));
    Later one;
    one.more.a = 4;
    CHECK(written(one, 12) == std::string("\x2c\x09\x08\x00\x00", 5));
}

TEST_CASE("an older peer gets what it knows, and what it would miss is told") {
    CHECK(needed_for(Later{}).form == 8);
    CHECK(needed_for(later()).form == 11);
    CHECK(needed_for(later()).what == "more");
    Later one = later();
    one.more = {};
    CHECK(needed_for(one).form == 10);
    one.real = 0.5, one.inner.words.clear();
    CHECK(needed_for(one).what == "words");  // in the list
    one.list.clear();
    CHECK(needed_for(one).form == 8);  // the text is for people
    CHECK(written(one, 9) == written(one, 11));
    CHECK(read<Later>(written(one, 9), 9)->seen.empty());
    const auto old = encode(ApproveHost{"h1", "words", 1}, 3, positional_form);
    CHECK(old.status().code == Code::invalid);
    CHECK(old.status().text == about("8 not ApproveHost 9"));
    CHECK(encode(ApproveHost{"h1", "words", 0}, 3, positional_form));
    CHECK(form_needed(samples::demands()) == 8);
}

TEST_CASE("release 0.1 is not asked for a grain that demands resources, and is told of no host's") {
    Gexec call{3, 17, samples::spec()};
    Launch launch;
    REQUIRE(encode(call, 3, positional_form));
    REQUIRE(encode(launch, 3, positional_form));
    call.spec.demands.resources = launch.demands.resources = "gpu=1";
    CHECK(encode(call, 3, positional_form).status().text == about("resources 9"));
    CHECK(!encode(launch, 3, positional_form));
    CHECK(form_needed(launch.demands) == 9);
    launch.demands.resources.clear();
    launch.offers = "gpu=[0]";
    CHECK(!encode(launch, 3, positional_form));
    CallIn found, none;
    found.resources = "gpu=[0]";
    CHECK(*encode(found, 3, positional_form) == *encode(none, 3, positional_form));
    CHECK(out_of_range({.resources = "gpu"}) == about("resources gpu"));
}

TEST_CASE("what is stored begins with what release 0.1 wrote and has the rest as fields") {
    const Later all = later();
    const std::string bytes = Writer::stored(all);
    const std::string known = written(all, positional_form);
    CHECK(bytes.substr(0, known.size()) == known);
    Later back;
    REQUIRE(Reader::stored(bytes, back));
    CHECK((back.name == "n" && back.inner.a == 2 && back.inner.words == all.inner.words && back.real == 7));
    Later none;
    none.name = "n";
    CHECK(Writer::stored(none) == written(none, positional_form));
    REQUIRE(Reader::stored(std::string_view(known).substr(0, 5), back = Later{}));  // ends behind the name
    CHECK((back.name == "n" && back.inner.a == 1 && back.real == 0.5));
    CHECK(!Reader::stored(std::string_view(known).substr(0, 7), back));
}

TEST_CASE("values that release 0.1 has not go to it as their nearest, and are not taken from it") {
    GrainReport report;
    report.innocent = true, report.given_back = GivenBack::by_itself;
    const std::string frame = *encode(report, 0, positional_form);
    const auto old = decode_payload(header_of(frame), std::string_view(frame).substr(header_bytes));
    REQUIRE(old);
    CHECK(std::get<GrainReport>(*old).given_back == GivenBack::no);
    CHECK(unpack_report(pack(report))->given_back == GivenBack::by_itself);
    LaunchResult result;
    const auto code_after = [&](Code code, Form form) {
        result.code = static_cast<std::int32_t>(code);
        const std::string f = *encode(result, 0, form);
        const auto back = decode_payload(header_of(f), std::string_view(f).substr(header_bytes));
        return static_cast<Code>(std::get<LaunchResult>(*back).code);
    };
    CHECK(code_after(Code::invalid, 9) == Code::invalid);
    CHECK(code_after(Code::invalid, 8) == Code::not_found);
    CHECK(code_after(Code::io_error, 8) == Code::io_error);
    FrameHeader header = header_of(*encode(result, 0, positional_form));
    Writer from_0_1(positional_form);
    result.code = static_cast<std::int32_t>(Code::invalid);  // the host's trouble, there
    from_0_1 << result;
    header.crc = crc32c(from_0_1.bytes());
    CHECK(std::get<LaunchResult>(*decode_payload(header, from_0_1.bytes())).code ==
          static_cast<std::int32_t>(Code::io_error));
}

TEST_CASE("an offer is told from a request id, and the newest common form is taken") {
    CHECK(offer_in(offer_of({8, 9})) == Forms{8, 9});
    CHECK(!offer_in(1));
    CHECK(!offer_in(UINT64_MAX));
    CHECK(!offer_in(offer_of({9, 8})));
    CHECK(!offer_in(offer_of({7, 8})));
    CHECK(*common_form({8, 8}) == 8);
    CHECK(*common_form({8, 20}) == newest_form);
    CHECK(common_form({10, 12}).status().text == about("10 12 8"));
}

TEST_CASE("both ends of a connection come to the newest common form with the first frame each way") {
    PeerForm server, client;
    const std::string hello = encode(Hello{opening_form, ""}, 7);
    CHECK(header_of(hello).protocol == opening_form);
    REQUIRE(server.hear(header_of(hello)));
    CHECK(server.form() == newest_form);
    REQUIRE(client.hear(header_of(*encode(Welcome{1, "ann"}, offer_of(our_forms), server.form()))));
    CHECK(client.form() == newest_form);
    // A peer of release 0.1 offers nothing, and takes our offer for a request id.
    PeerForm with_old_client, with_old_server;
    FrameHeader old = header_of(hello);
    old.request = 1;
    REQUIRE(with_old_client.hear(old));
    CHECK(with_old_client.form() == 8);
    REQUIRE(with_old_server.hear(header_of(*encode(Welcome{1, "ann"}, offer_of(our_forms), positional_form))));
    CHECK(with_old_server.form() == 8);
    // A later one.
    PeerForm with_later;
    FrameHeader later_hello = header_of(hello);
    later_hello.request = offer_of({8, 12});
    REQUIRE(with_later.hear(later_hello));
    CHECK(with_later.form() == newest_form);
    later_hello.request = offer_of({10, 12});
    CHECK(!with_later.hear(later_hello));
    // Only what begins a connection offers.
    FrameHeader gwait = header_of(encode(Gwait{}, offer_of({10, 12})));
    gwait.protocol = 8;
    PeerForm plain;
    CHECK(plain.hear(gwait));
    CHECK(plain.form() == 8);
}
