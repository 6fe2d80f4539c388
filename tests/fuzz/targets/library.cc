// The calls of the control program library over a real socket, while the scheduler answers with any message: no reply
// makes a call do anything but return, and what it hands out can be read to its end.
#include <cstring>

#include "dcs.h"
#include "fuzz.h"
#include "script.h"
#include "unit/client/fake_scheduler.h"

namespace dcs::fuzz {
namespace {

std::size_t readable(const char *text) { return text == nullptr ? 0 : std::strlen(text); }

void read_info(const d_info *info) {
    std::size_t sum = readable(info->version);
    for (std::size_t i = 0; i < info->host_count; ++i) {
        const d_host_row &row = info->hosts[i];
        for (const char *text : {row.name, row.state, row.binary_class, row.settings, row.note}) sum += readable(text);
        for (std::size_t u = 0; u < row.user_count; ++u) sum += readable(row.users[u]);
    }
    for (std::size_t i = 0; i < info->session_count; ++i)
        sum += readable(info->sessions[i].user) + readable(info->sessions[i].ident);
    for (std::size_t i = 0; i < info->grain_count; ++i) {
        const d_grain_row &row = info->grains[i];
        for (const char *text : {row.user, row.state, row.host, row.label, row.message}) sum += readable(text);
        for (char **word = row.argv; word != nullptr && *word != nullptr; ++word) sum += readable(*word);
        for (std::size_t n = 0; n < row.nogo_count; ++n) sum += readable(row.nogo[n]);
        for (std::size_t n = 0; n < row.move_count; ++n)
            sum += readable(row.moves[n].reason) + readable(row.moves[n].detail);
        for (std::size_t n = 0; n < row.file_count; ++n)
            sum += readable(row.files[n].name) + readable(row.files[n].digest);
    }
    expect(sum < 1u << 30, "texts have an end");
}

void query(int type) {
    d_info *info = nullptr;
    if (d_query(type, nullptr, 3, 17, &info) == 0) read_info(info);
    d_query_free(info);
}

void wait_one() {
    char *out = nullptr, *err = nullptr;
    std::size_t out_length = 0, err_length = 0;
    int grain = 0;
    if (d_gwait(D_NO_BLOCK, 3, &grain, nullptr, nullptr, nullptr, nullptr, nullptr, &out_length, &out, &err_length,
                &err) == 0)
        expect(readable(out) <= out_length + 20 * 1024 && readable(err) <= err_length + 20 * 1024,
               "outputs have an end");
}

void wait_many() {
    d_result results[4];
    d_result_init(results, 4);
    int count = -1;
    (void)d_gwait_many(D_NO_BLOCK, 3, 4, results, &count);
    expect(count >= 0 && count <= 4, "no more results than were asked for");
    for (int i = 0; i < count; ++i)
        expect(readable(results[i].output) + readable(results[i].error) < 1u << 20, "outputs have an end");
}

void streams(int how) {
    std::FILE *file = nullptr;
    if (how == 0) (void)d_grain_stream(nullptr, 3, 17, "out", &file);
    else (void)d_grain_file(nullptr, 3, 17, "out/result", &file);
    if (file != nullptr) std::fclose(file);
}

void explain() {
    d_explanation *why = nullptr;
    if (d_explain(nullptr, 3, 17, &why) == 0) {
        std::size_t sum = readable(why->state) + readable(why->summary);
        for (std::size_t i = 0; i < why->reason_count; ++i) {
            sum += readable(why->reasons[i].text);
            for (std::size_t n = 0; n < why->reasons[i].name_count; ++n) sum += readable(why->reasons[i].names[n]);
        }
        expect(sum < 1u << 30, "texts have an end");
    }
    d_explanation_free(why);
}

void call(int which) {
    d_grain grain;
    d_grain_init(&grain);
    char program[] = "/bin/x";
    char *argv[] = {program, nullptr};
    grain.gargv = argv;
    d_grain_order orders[2];
    for (int i = 0; i < 2; ++i) {
        d_grain_order_init(&orders[i], i + 1);
        orders[i].grain = grain;
    }
    switch (which % 12) {
    case 0: return static_cast<void>(d_get_auth("prog"));
    case 1: return static_cast<void>(d_resume_ses(3, 1));
    case 2: return wait_one();
    case 3: return wait_many();
    case 4: return query(D_Q_HOSTS);
    case 5: return query(D_Q_GRAIN);
    case 6: return query(D_Q_SESSIONS);
    case 7: return streams(0);
    case 8: return streams(1);
    case 9: return explain();
    case 10: return static_cast<void>(d_gexec_many(3, orders, 2, nullptr, nullptr));
    default: return static_cast<void>(d_close_ses(3));
    }
}

struct Script {
    std::vector<Item> items;
    std::size_t at = 0;
};
Script script;  // written between calls, read by the scheduler's thread during one

test::Act next_reply(const wire::AnyMessage &request, int) {
    if (std::holds_alternative<wire::Hello>(request)) return {test::plausible(request)};
    test::Act act;
    // Replies of one call are the items of one speaker in a row; then an error ends it.
    const bool more = script.at < script.items.size();
    const std::optional<wire::AnyMessage> message = more ? decoded(script.items[script.at]) : std::nullopt;
    ++script.at;
    act.reply = message ? *message : wire::AnyMessage(wire::ErrorReply{static_cast<int>(Code::limit), "no more"});
    return act;
}

}  // namespace

void run(std::string_view bytes) {
    static test::FakeScheduler scheduler;
    scheduler.script(&next_reply);
    const std::vector<Item> items = items_of(bytes);
    for (std::size_t i = 0; i < items.size() && i < 8;) {
        script = {};
        const int which = items[i].who;
        for (; i < items.size() && items[i].who == which; ++i) script.items.push_back(items[i]);
        call(which);
    }
}

std::vector<Seed> seeds() {
    const auto opened = [](std::vector<Item> rest) {
        std::vector<Item> all = {item(0, wire::AuthReply{std::string(32, 't')}), item(1, wire::OpenReply{})};
        all.insert(all.end(), rest.begin(), rest.end());
        return bytes_of(all);
    };
    const auto of = [](const char *name) {
        for (const wire::AnyMessage &m : samples())
            if (std::string_view(wire::kind_name(m)) == name) return m;
        return samples()[0];
    };
    const wire::GrainResult result = std::get<wire::GrainResult>(of("GrainResult"));
    wire::QueryReply page = std::get<wire::QueryReply>(of("QueryReply"));
    page.more = false;
    return {{"wait", opened({item(2, result)})},
            {"wait-many", opened({item(3, wire::GrainResults{{result, result}})})},
            {"hosts", opened({item(4, page)})},
            {"grain", opened({item(5, page)})},
            {"sessions", opened({item(6, page), item(6, page)})},
            {"stream", opened({item(7, wire::Piece{8, "some"}), item(7, wire::Piece{8, "more"})})},
            {"file", opened({item(8, page), item(8, wire::Piece{8, "somemore"})})},
            {"explain", opened({item(9, of("Explanation"))})},
            {"submit", opened({item(10, wire::Done{}), item(11, wire::Done{})})}};
}

}  // namespace dcs::fuzz
