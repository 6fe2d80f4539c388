// d_gexec_many and d_gwait_many against a scheduler that refuses and misbehaves.
#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/limits.h"
#include "pki/digest.h"
#include "c_calls.h"

using namespace dcs;
using namespace dcs::test;

namespace {

std::vector<d_grain_order> orders_of(std::size_t count, int first = 0) {
    std::vector<d_grain_order> orders(count);
    for (std::size_t i = 0; i < count; ++i) {
        d_grain_order_init(&orders[i], first + static_cast<int>(i));
        orders[i].grain.gargv = words;
    }
    return orders;
}

struct Submitted {
    int error;
    std::size_t taken, refused;
};
Submitted submit(const std::vector<d_grain_order> &orders) {
    Submitted s{};
    s.error = d_gexec_many(3, orders.data(), orders.size(), &s.taken, &s.refused);
    return s;
}

bool says(const std::string &part) { return std::string(d_errortext()).find(part) != std::string::npos; }

std::vector<std::size_t> sizes(const FakeScheduler &fake) {
    std::vector<std::size_t> all;
    for (const auto &[id, m] : fake.all<wire::GexecMany>()) all.push_back(m.orders.size());
    return all;
}

// Answers the nth batch with an error.
FakeScheduler::Script refusing(int nth, const wire::ErrorReply &error) {
    auto batches = std::make_shared<int>(0);
    return [=](const wire::AnyMessage &m, int) {
        Act a;
        a.reply = plausible(m);
        if (std::holds_alternative<wire::GexecMany>(m) && ++*batches == nth) a.reply = error;
        return a;
    };
}

struct Waited {
    int error, count;
};
Waited wait_many(d_result *results, int max, int block = D_BLOCK) {
    Waited w{0, -1};
    w.error = d_gwait_many(block, 3, max, results, &w.count);
    return w;
}

}  // namespace

TEST_CASE("many grains go in one request, and in several when there are too many or too large ones") {
    FakeScheduler fake;
    REQUIRE(d_get_auth("tester") == NO_ERROR);
    auto orders = orders_of(2500, 10);
    orders[7].grain.input = "in\0put";
    orders[7].grain.input_length = 6;
    orders[7].grain.wall_s = 5;
    const Submitted all = submit(orders);
    CHECK((all.error == NO_ERROR && all.taken == 2500 && all.refused == 2500));
    CHECK(sizes(fake) == std::vector<std::size_t>{1024, 1024, 452});
    const auto batches = fake.all<wire::GexecMany>();
    CHECK(batches[0].second.session == 3);
    CHECK(batches[0].second.orders[7].grain == 17);
    CHECK(batches[0].second.orders[7].spec.input == std::string("in\0put", 6));
    CHECK(batches[0].second.orders[7].spec.demands.wall_s == 5);
    CHECK(batches[2].second.orders[451].grain == 2509);
    CHECK(batches[0].first != batches[1].first);

    FakeScheduler other;
    REQUIRE(d_get_auth("tester") == NO_ERROR);
    const std::string half(limits::batch_bytes / 2, 'x'), whole(limits::batch_bytes + 1, 'y');
    orders = orders_of(6);
    for (const std::size_t i : {1u, 2u})
        orders[i].grain.input = half.data(), orders[i].grain.input_length = half.size();
    orders[3].grain.input = whole.data(), orders[3].grain.input_length = whole.size();
    CHECK(submit(orders).error == NO_ERROR);
    CHECK(sizes(other) == std::vector<std::size_t>{2, 1, 1, 2});
    CHECK((d_gexec_many(3, nullptr, 0, nullptr, nullptr) == NO_ERROR));
    CHECK(sizes(other).size() == 4);
}

TEST_CASE("a refusal names the grain, ends the call and says what was taken") {
    FakeScheduler fake;
    REQUIRE(d_get_auth("tester") == NO_ERROR);
    const auto orders = orders_of(3000, 100);
    for (const int code : {D_E_GRAIN_DIFFERS, D_E_GRAIN_EXISTS, D_E_REPLAY_END, D_E_LIMIT}) {
        fake.script(refusing(2, wire::ErrorReply{code, "argv[1]: recorded", 100 + 1024 + 6}));
        const Submitted s = submit(orders);
        CHECK((s.error == code && s.taken == 1024 && s.refused == 1030));
        CHECK(says("argv[1]: recorded"));
    }
    CHECK(sizes(fake).size() == 8);  // nothing was sent after it
    for (const int code : {D_E_NO_SPACE, D_E_SESSION_TAKEN, D_E_SESSION_CLOSED, D_E_SESSION_UNKNOWN, D_E_IO_ERROR}) {
        fake.script(refusing(3, wire::ErrorReply{code, "no"}));
        const Submitted s = submit(orders);
        CHECK((s.error == code && s.taken == 2048 && s.refused == 3000));
    }
    fake.script(refusing(1, wire::ErrorReply{D_E_GRAIN_DIFFERS, "about another part", 100 + 2000}));
    CHECK(submit(orders).refused == 3000);
}

TEST_CASE("what is wrong with an order is found before its part is sent") {
    FakeScheduler fake;
    REQUIRE(d_get_auth("tester") == NO_ERROR);
    auto orders = orders_of(1030);
    orders[1025].grain.thrash = -1;
    Submitted s = submit(orders);
    CHECK((s.error == D_E_INVALID && s.taken == 1024 && s.refused == 1025 && says("grain 1025: thrash is -1")));
    CHECK(sizes(fake) == std::vector<std::size_t>{1024});
    // The numbers are looked at before anything is sent.
    orders = orders_of(1030);
    orders[1029].grain_num = 4;
    s = submit(orders);
    CHECK((s.error == D_E_INVALID && s.taken == 0 && s.refused == 1029 && says("grain 4: it occurs twice in orders")));
    orders[1029].grain_num = -4;
    s = submit(orders);
    CHECK((s.error == D_E_INVALID && s.taken == 0 && s.refused == 1029 && says("grain_num is -4")));
    CHECK(d_gexec_many(-1, orders.data(), 1, nullptr, nullptr) == D_E_INVALID);
    std::size_t taken = 9, refused = 9;
    CHECK(d_gexec_many(3, nullptr, 2, &taken, &refused) == D_E_INVALID);
    CHECK((taken == 0 && refused == 2 && says("orders is NULL")));
    CHECK(sizes(fake).size() == 1);
}

TEST_CASE("a batch whose connection breaks is repeated under its id, one that stays away is broken") {
    FakeScheduler fake;
    REQUIRE(d_get_auth("tester") == NO_ERROR);
    fake.script([](const wire::AnyMessage &m, int nth) {
        Act a;
        a.reply = plausible(m);
        a.cut_before = nth == 1;
        return a;
    });
    CHECK(submit(orders_of(1500)).error == NO_ERROR);
    const auto batches = fake.all<wire::GexecMany>();
    REQUIRE(batches.size() == 3);
    CHECK((batches[1].first == batches[2].first && batches[0].first != batches[1].first));
    CHECK(wire::encode(batches[1].second, 1) == wire::encode(batches[2].second, 1));
    ::setenv("DCS_PATIENCE_S", "0.2", 1);
    fake.script([](const wire::AnyMessage &m, int nth) {
        Act a;
        a.reply = plausible(m);
        a.cut_before = nth >= 1;
        return a;
    });
    const Submitted s = submit(orders_of(1500));
    CHECK((s.error == D_E_BROKEN && s.taken == 1024 && s.refused == 1500));
}

TEST_CASE("contents that a batch names are brought once, all that the scheduler lacks") {
    FakeScheduler fake;
    REQUIRE(d_get_auth("tester") == NO_ERROR);
    const std::string one = fake.dir() + "-one", two = fake.dir() + "-two";
    std::ofstream(one) << "first";
    std::ofstream(two) << "second";
    const std::string lacking = pki::sha256_text("second");
    auto here = std::make_shared<bool>(false);
    fake.script([=](const wire::AnyMessage &m, int) {
        Act a;
        a.reply = plausible(m);
        if (std::holds_alternative<wire::PutContent>(m)) *here = true;
        if (std::holds_alternative<wire::AskContents>(m)) a.reply = wire::MissingContents{{lacking}};
        if (std::holds_alternative<wire::GexecMany>(m) && !*here)
            a.reply = wire::ErrorReply{D_E_NOT_FOUND, "a content is missing", 2};
        return a;
    });
    auto orders = orders_of(40);
    d_file file_one = file_of("in", one.c_str()), file_two = file_of("in", two.c_str());
    for (std::size_t i = 0; i < orders.size(); ++i) {
        orders[i].grain.files = i % 2 == 0 ? &file_one : &file_two;
        orders[i].grain.file_count = 1;
    }
    CHECK(submit(orders).error == NO_ERROR);
    CHECK(fake.all<wire::AskContents>().at(0).second.digests.size() == 2);
    REQUIRE(fake.all<wire::PutContent>().size() == 1);
    CHECK(fake.all<wire::PutContent>()[0].second.bytes == "second");
    CHECK(sizes(fake) == std::vector<std::size_t>{40, 40});
    *here = false;
    ::unlink(two.c_str());
    const Submitted s = submit(orders);
    CHECK((s.error == D_E_NOT_FOUND && s.taken == 0 && s.refused == 1 && says("grain 1: the file " + two)));
    ::unlink(one.c_str());
}

TEST_CASE("many results come at once, and count when the next are asked for") {
    FakeScheduler fake;
    REQUIRE(d_get_auth("tester") == NO_ERROR);
    REQUIRE(d_open_ses(3) == NO_ERROR);
    d_result results[5];
    d_result_init(results, 5);
    Waited w = wait_many(results, 5);
    CHECK((w.error == NO_ERROR && w.count == 2));
    CHECK((results[0].grain_num == 100 && results[1].grain_num == 101));
    CHECK((results[0].sent == 1 && results[1].sent == 2 && results[1].completed == 9));
    CHECK((std::strcmp(results[0].output, "out") == 0 && std::strcmp(results[1].error, "err") == 0));
    CHECK((results[0].outlen == 3 && results[1].errlen == 3));
    CHECK(wait_many(results, 1).count == 1);
    CHECK(results[0].grain_num == 102);
    int grain = 0;  // mixed with the other form
    REQUIRE(d_gwait(D_BLOCK, 3, &grain, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                    nullptr) == NO_ERROR);
    CHECK(grain == 103);
    CHECK(wait_many(results, 2000000, D_NO_BLOCK).count == 2);
    const auto asked = fake.all<wire::GwaitMany>();
    REQUIRE(asked.size() == 3);
    CHECK((asked[0].second.next == 0 && asked[1].second.next == 2 && asked[2].second.next == 4));
    CHECK((asked[0].second.most == 5 && asked[1].second.most == 1 && asked[2].second.most == 1024));
    CHECK((asked[0].second.block && !asked[2].second.block));
    REQUIRE(d_close_ses(3) == NO_ERROR);
    CHECK(fake.all<wire::CloseSession>().at(0).second.acknowledged == 6);
    CHECK((wait_many(results, 5).error == D_E_SESSION_CLOSED));
}

TEST_CASE("a wait for many that fails hands out nothing and moves nothing") {
    FakeScheduler fake;
    REQUIRE(d_get_auth("tester") == NO_ERROR);
    REQUIRE(d_open_ses(3) == NO_ERROR);
    d_result results[3];
    d_result_init(results, 3);
    int count = 7;
    CHECK((d_gwait_many(D_BLOCK, -1, 3, results, &count) == D_E_INVALID && count == 0));
    CHECK((wait_many(results, 0).error == D_E_INVALID && says("max is 0")));
    CHECK((wait_many(nullptr, 3).error == D_E_INVALID && says("must not be NULL")));
    CHECK(d_gwait_many(D_BLOCK, 3, 3, results, nullptr) == D_E_INVALID);
    CHECK(d_gwait_many(D_BLOCK, 44, 3, results, &count) == D_E_SESSION_UNKNOWN);
    for (const int code : {D_E_NOTHING_YET, D_E_NOTHING_LEFT, D_E_CANNOT_RUN, D_E_REPLAY_END, D_E_IO_ERROR}) {
        fake.script([=](const wire::AnyMessage &, int) {
            Act a;
            a.reply = wire::ErrorReply{code, ""};
            return a;
        });
        const Waited w = wait_many(results, 3);
        CHECK((w.error == code && w.count == 0));
    }
    wire::GrainResult first, second;
    first.sent = 1, second.sent = 1;
    using Results = std::vector<wire::GrainResult>;
    for (const Results &nonsense : {Results{}, Results{first, second}, Results{first, first, first, first}}) {
        fake.script([=](const wire::AnyMessage &, int) {
            Act a;
            a.reply = wire::GrainResults{nonsense};
            return a;
        });
        const Waited w = wait_many(results, 3);
        CHECK((w.error == D_E_PROTOCOL && w.count == 0));
    }
    fake.script(nullptr);
    CHECK(wait_many(results, 3).count == 2);
    CHECK(fake.all<wire::GwaitMany>().back().second.next == 0);
}
