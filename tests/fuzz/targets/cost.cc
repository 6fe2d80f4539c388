// What the scheduler's own process reads of foreign bytes, and the cost of that alone: everything that a connection can
// bring before a decision is made. An input is a script; of each item `who` says by what it is read. The other targets
// ask whether it is read right. `fuzz_cost --each N` reads each hot kind so often, with changes of its own.
#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/resources.h"
#include "crowd.h"
#include "field_mutator.h"
#include "meter.h"
#include "net/connection.h"
#include "pki/authority.h"
#include "pki/certificate.h"
#include "pki/key.h"
#include "script.h"
#include "wire/checks.h"
#include "wire/import_rows.h"

namespace dcs::fuzz {
namespace {

enum Reader : std::uint8_t { message, message_of_0_1, stream, certificate, request, key, offer, rows, readers };

// What users and hosts send all day.
using Hot = std::variant<wire::Hello, wire::OpenSession, wire::CloseSession, wire::Gexec, wire::GexecMany, wire::Gkill,
                         wire::Gwait, wire::GwaitMany, wire::Fetch, wire::Query, wire::Explain, wire::AskContents,
                         wire::PutContent, wire::FirstCall, wire::CallIn, wire::GrainReport, wire::LaunchResult,
                         wire::WantContent, wire::Peeked, wire::HandOver>;
template <std::size_t... I> std::vector<std::uint8_t> hot_kinds(std::index_sequence<I...>) {
    const std::vector<wire::AnyMessage> all = {wire::AnyMessage(std::variant_alternative_t<I, Hot>())...};
    std::vector<std::uint8_t> hot;
    for (const wire::AnyMessage &one : all) hot.push_back(static_cast<std::uint8_t>(one.index()));
    return hot;
}

// Elements take at most 32 times their bytes (archives.h), strings their bytes and what malloc rounds up.
constexpr Cost of_message{.memory = 40, .memory_beside = 16 * 1024, .steps = 64, .steps_beside = 4'000, .ns = 2'000};
constexpr Cost of_stream{.memory = 8, .memory_beside = 16 * 1024, .steps = 64, .steps_beside = 4'000, .ns = 2'000};
// Of OpenSSL, whose steps are not counted; an input is 2 KiB at most.
constexpr Cost of_certificate{.memory = 64,
                              .memory_beside = 64 * 1024,
                              .allocations_beside = 4096,
                              .steps = 64,
                              .steps_beside = 4'000,
                              .ns = 20'000,
                              .ns_beside = 200'000'000};
// Its ranges may say limits::host_resources * limits::resource_indices numbers in few bytes, and no more.
constexpr Cost of_offer{.memory = 40,
                        .memory_beside = 512 * 1024,
                        .allocations_beside = 1024,
                        .steps = 64,
                        .steps_beside = 2'000'000,
                        .ns = 2'000};
constexpr Cost of_rows{.memory = 40, .memory_beside = 16 * 1024, .steps = 64, .steps_beside = 4'000, .ns = 2'000};

void check(const wire::AnyMessage &read) {
    if (const auto *one = std::get_if<wire::Gexec>(&read)) (void)wire::check_files(one->spec);
    if (const auto *many = std::get_if<wire::GexecMany>(&read))
        for (const wire::GrainOrder &order : many->orders)
            if (!wire::check_files(order.spec)) return;
}

// And, of a submission, what is wrong with it.
void read_message(const Item &item, wire::Form form) {
    wire::FrameHeader header = header_of(item.kind, item.payload);
    if (form == wire::positional_form) header.protocol = form;
    const char *const kind = wire::kind_name(samples()[item.kind]);
    const Meter meter;
    const auto read = wire::decode_payload(header, item.payload);
    if (read) check(*read);
    meter.expect(item.payload.size(), of_message, kind);
}

void read_stream(std::string_view bytes, std::size_t step) {
    const Meter meter;
    net::FrameReader reader;
    std::vector<net::Frame> frames;
    for (std::string_view left = bytes; !left.empty(); left.remove_prefix(std::min(step, left.size())))
        if (!reader.feed(left.substr(0, step), limits::server_frame_bytes, &frames)) break;
    meter.expect(bytes.size(), of_stream, "a stream of frames");
}

void read_rows(std::string_view bytes) {
    const Meter meter;
    wire::ImportRows rows(bytes);
    const auto head = rows.head();
    bool good = bool(head);
    for (std::uint32_t i = 0; good && i < rows.count(); ++i) good = bool(rows.grain());
    if (good) (void)rows.known();
    meter.expect(bytes.size(), of_rows, "an import's rows");
}

template <class Read> void read_certified(std::string_view bytes, const char *what, Read read) {
    bytes = bytes.substr(0, limits::certificate_bytes);
    const Meter meter;
    read(bytes);
    meter.expect(bytes.size(), of_certificate, what);
}

void read_item(const Item &item) {
    switch (item.who % readers) {
    case message: return read_message(item, wire::newest_form);
    case message_of_0_1: return read_message(item, wire::positional_form);
    case stream: return read_stream(item.payload, item.kind + 1u);
    case certificate:
        return read_certified(item.payload, "a certificate", [](auto der) { (void)pki::read_certificate(der); });
    case request: return read_certified(item.payload, "a request", [](auto der) { (void)pki::read_request(der); });
    case key: return read_certified(item.payload, "a key", [](auto der) { (void)pki::hash_of_public_key(der); });
    case rows: return read_rows(item.payload);
    default: break;
    }
    const Meter meter;
    (void)offers_of(item.payload);
    (void)amounts_of(std::string_view(item.payload).substr(0, limits::demand_bytes));
    meter.expect(item.payload.size(), of_offer, "an offer and a demand");
}

// A few bytes become others, go, or come twice.
void change(std::string &bytes, Random &random) {
    if (bytes.empty()) return;
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
        const std::size_t at = random.below(bytes.size());
        switch (random.below(6)) {
        case 0: bytes[at] = static_cast<char>(random.below(256)); break;
        case 1: bytes[at] = static_cast<char>(bytes[at] ^ 1 << random.below(8)); break;
        case 2: bytes[at] = static_cast<char>(0x7f + random.below(3)); break;
        case 3: bytes.insert(at, std::string(bytes, at, 1 + random.below(16))); break;
        case 4: bytes.resize(at + 1); break;
        default: bytes.erase(at, std::min<std::size_t>(1 + random.below(8), bytes.size() - 1)); break;
        }
        if (bytes.empty()) return;
    }
}

struct RealOnes {
    std::string own = pki::new_key(), open = *pki::public_key_of(own), request = *pki::make_request(own), host;
    RealOnes() {
        const std::int64_t now = 1'700'000'000;
        host = *pki::issue(pki::make_authority(now), open, pki::Role::grain_server, "h1", now);
        // OpenSSL makes its tables at the first use.
        expect(pki::read_certificate(host) && pki::read_request(request) && pki::hash_of_public_key(open),
               "they are good");
    }
    static const RealOnes &all() {
        static const RealOnes ones;
        return ones;
    }
};

// So that what was made for it is made.
void use(const void *bytes) { asm volatile("" : : "r"(bytes) : "memory"); }

// Planted decoders that are not linear; the meter has to find them by small inputs.
bool finds_what_is_planted() {
    const std::string input(16 * 1024, 'x');
    const auto found = [&](auto decode) {
        const Meter meter;
        decode();
        return !meter.excess(input.size(), of_message).empty();
    };
    const bool linear = found([&] {
        const std::string copy(input);
        for (const char &c : copy) use(&c);
    });
    const bool copies = found([&] {
        for (std::size_t i = 0; i < input.size(); i += 32) use(std::string(input, i).data());
    });
    const bool allocates = found([&] {
        for (std::size_t i = 0; i < 2 * input.size(); ++i) use(std::vector<char>(1).data());
    });
    const bool walks = steps() == 0 || found([&] {
                           std::size_t sum = 0;
                           for (std::size_t i = 0; i < input.size(); ++i)
                               for (std::size_t k = 0; k < i / 32; ++k)
                                   sum += static_cast<unsigned char>(input[k]), use(&sum);
                       });
    return !linear && copies && allocates && walks;
}

Item item_of(Reader reader, std::string payload, std::uint8_t kind = 0) {
    payload.resize(std::min<std::size_t>(payload.size(), 0xffff));
    return Item{reader, kind, std::move(payload)};
}

// As deep as a grain's files can lie.
wire::Gexec deep_files() {
    wire::Gexec call;
    call.spec.argv = {"/bin/p"};
    std::string name;
    while (name.size() + 2 < limits::file_name_bytes - 2) name += "a/";
    for (const char file : {'a', 'b', 'c'}) call.spec.files.push_back({wire::FileRole::output, name + file, "", 0, ""});
    return call;
}

std::string offer_text(const char *indices) {
    std::string text;
    for (std::size_t i = 0; i < limits::host_resources; ++i)
        text += (i == 0 ? "a" : ",a") + std::to_string(i) + "=" + indices;
    return text;
}

std::string some_rows() {
    wire::ExportedSession head;
    head.ident = "prog", head.grains = 2;
    wire::ExportedGrain grain;
    grain.spec.argv = {"/bin/p"};
    grain.state = "ready", grain.nogo = {"h1"}, grain.out = {2, true, "ok"};
    ByteWriter bytes;
    bytes.text(wire::pack(head)), bytes.text(wire::pack(grain));
    grain.grain = 1;
    bytes.text(wire::pack(grain));
    return *wire::rows_of_import(bytes.bytes());
}

// Items of one kind, each changed up to 16 times in a row, until so many were read.
void read_many(const std::vector<Item> &begin, std::uint64_t times) {
    Random random(begin.front().who * kinds + begin.front().kind);
    for (std::uint64_t n = 0; n < times;) {
        Item item = begin[random.below(begin.size())];
        auto read = item.who == message ? decoded(item) : std::nullopt;
        if (read) {
            for (std::uint64_t fields = random.below(4); fields > 0; --fields) mutate_field(*read, random);
            item.payload = payload_of(*read);
            item.payload.resize(std::min<std::size_t>(item.payload.size(), 0xffff));
        }
        for (int changes = 0; changes < 16 && n < times; ++changes, ++n) {
            read_item(item);
            change(item.payload, random);
        }
    }
}

}  // namespace

void run(std::string_view bytes) {
    (void)RealOnes::all();
    static const bool good = finds_what_is_planted();
    expect(good, "the meter finds a decoder that is not linear, and no other");
    for (const Item &item : items_of(bytes)) read_item(item);
}

std::vector<Seed> seeds() {
    std::vector<Seed> list;
    std::vector<Item> all;
    std::string frames;
    for (const wire::AnyMessage &sample : samples()) {
        all = {item(message, sample)};
        frames += wire::encode(sample, 77);
        if (const auto frame = wire::encode(sample, 1, wire::positional_form))
            all.push_back(item_of(message_of_0_1, frame->substr(wire::header_bytes), item(0, sample).kind));
        // And with many elements, but not longer than what the fuzzer may make.
        for (const std::size_t inner : {0, 2})
            for (std::size_t outer = 4'000; outer > 8; outer /= 2) {
                wire::AnyMessage crowded = sample;
                crowd(crowded, outer, inner);
                const Item one = item(message, crowded);
                if (one.payload.size() > 4'000) continue;
                all.push_back(one);
                break;
            }
        list.push_back({wire::kind_name(sample), bytes_of(all)});
    }
    const RealOnes &real = RealOnes::all();
    list.push_back({"certificates", bytes_of({item_of(certificate, real.host), item_of(request, real.request),
                                              item_of(key, real.open)})});
    list.push_back({"stream", bytes_of({item_of(stream, frames.substr(0, 2000), 6), item_of(stream, frames, 79)})});
    list.push_back({"deep-files", bytes_of({item(message, deep_files())})});
    list.push_back({"texts", bytes_of({item_of(offer, offer_text("[0,1,4-7,100]")), item_of(rows, some_rows())})});
    list.push_back({"long-ranges", bytes_of({item_of(offer, offer_text("[0-1023]"))})});
    return list;
}

// What is read for each connection only, a tenth of that.
void each(std::uint64_t times) {
    const std::vector<Seed> all = seeds();
    const auto of = [&](auto &&wanted) {
        std::vector<Item> items;
        for (const Seed &seed : all)
            for (Item &item : items_of(seed.bytes))
                if (wanted(item)) items.push_back(std::move(item));
        return items;
    };
    for (const std::uint8_t kind : hot_kinds(std::make_index_sequence<std::variant_size_v<Hot>>{}))
        for (const Reader reader : {message, message_of_0_1}) {
            const auto items = of([&](const Item &item) { return item.who == reader && item.kind == kind; });
            if (!items.empty()) read_many(items, times / (reader == message ? 1 : 10));
        }
    for (const Reader reader : {stream, rows, offer, certificate, request, key})
        read_many(of([&](const Item &item) { return item.who == reader; }), times / (reader == stream ? 1 : 10));
}

}  // namespace dcs::fuzz
