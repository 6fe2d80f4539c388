// docs/PROTOCOL.md has a part that is made from the lists of fields: here it is made, and compared.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include <boost/archive/detail/interface_oarchive.hpp>
#include <boost/core/demangle.hpp>

#include "places.h"
#include "support/catch.h"
#include "wire/message.h"

using namespace dcs;
using namespace dcs::wire;

namespace {

const char *const headers[] = {"user_calls",    "system_row",   "batch_calls",   "wait_calls",
                               "session_calls", "policy_calls", "content_calls", "join_calls",
                               "server_calls",  "backup_calls", "demands"};

std::string text_of(const std::string &path) {
    std::ifstream in(std::string(DCS_SOURCE_DIR) + "/" + path);
    REQUIRE(in);
    return {std::istreambuf_iterator<char>(in), {}};
}

struct Way {
    const char *words, *kinds;
};
const Way ways[] = {
    {"from a control program or command to the scheduler",
     " Hello GetAuth OpenSession CloseSession CleanSession Gexec Gkill Gwait Fetch Query ExportPage ImportPiece "
     "ImportSession Doctor Explain SetHost RestartGrain Reload SetLogLevel AskContents GexecMany GwaitMany CreateToken "
     "ListTokens RevokeToken ApproveHost RemoveHost SetSession "},
    {"from the scheduler to a control program or command",
     " Welcome AuthReply OpenReply Done GrainResult Piece QueryReply ExportReply DoctorReply Explanation "
     "MissingContents GrainResults TokenCreated TokenList "},
    {"in answer to any message", " ErrorReply "},
    {"from a control program or a grain server to the scheduler", " PutContent "},
    {"from a grain server to the scheduler, or while it is away to the backup", " FirstCall GrainReport "},
    {"from a grain server to the scheduler", " CallIn LaunchResult WantContent HeldByBackup Peeked "},
    {"from the scheduler to a grain server",
     " Configure Launch Withdraw LogLevel ContentTaken ContentPiece BackupPlace ReportAck Peek "},
    {"from the scheduler or the backup to a daemon that called; after MirrorCall from the backup, why it cannot keep "
     "the copy",
     " Refused "},
    {"from a host that joins to the scheduler", " JoinHost "},
    {"from the scheduler to a host that joins", " Joined JoinPending "},
    {"from a daemon or a control program of another host to the scheduler", " RenewCertificate "},
    {"from the scheduler to a daemon or a control program of another host", " Renewed "},
    {"from `dcs_begin` of another host to the scheduler", " BeginControl "},
    {"from the scheduler to `dcs_begin` of another host", " Begun "},
    {"from the backup to a grain server", " BackupReady BackupHas "},
    {"from the backup to the scheduler", " BackupCall HandOver MirrorCall MirrorContents MirrorHas "},
    {"from the scheduler to the backup", " BackupKnown HandOverTaken MemberKeys MirrorPage "},
    {"from a command to the backup", " AskBackup "},
    {"from the backup to a command", " BackupStatus "},
    {"from a command to the scheduler or the backup", " AskMirror "},
    {"from the scheduler or the backup to a command", " MirrorStatus "}};

std::string way_of(const std::string &kind) {
    std::string found;
    for (const Way &way : ways)
        if (std::string(way.kinds).find(" " + kind + " ") != std::string::npos) found += way.words;
    return found;
}

// By name: the comment above a struct and the struct, as its header has them.
std::map<std::string, std::string> definitions() {
    std::map<std::string, std::string> all;
    for (const char *header : headers) {
        std::istringstream in(text_of(std::string("libdcs/wire/") + header + ".h"));
        std::string comment, body, name;
        for (std::string line; std::getline(in, line);) {
            if (!name.empty()) {
                body += line + "\n";
            } else if (line.rfind("struct ", 0) == 0) {
                name = line.substr(7, line.find_first_of(" {", 7) - 7);
                body = line + "\n";
            } else {
                comment = line.rfind("//", 0) == 0 && line.rfind("// ----", 0) != 0 ? comment + line + "\n" : "";
                continue;
            }
            const bool one_line = body.find('\n') + 1 == body.size() && line.find("};") != std::string::npos;
            if (!one_line && line.rfind("};", 0) != 0) continue;
            all[name] = comment + body;
            name.clear();
            comment.clear();
        }
    }
    std::string body = "struct Demands {\n";  // in its header it is a list
    for (const DemandRow &row : demand_rows)
        body +=
            std::string("    ") + row.type + " " + row.name + " = " + row.default_text + ";  // " + row.meaning + "\n";
    all["Demands"] = body + "};\n";
    return all;
}

std::string text_of_number(double value) {
    std::ostringstream out;
    out << value;
    return out.str();
}

template <class T> std::string name_of_type() {
    const std::string name = boost::core::demangle(typeid(T).name());
    return name.substr(name.rfind(':') + 1);
}

class Rows : public boost::archive::detail::interface_oarchive<Rows> {
public:
    std::string table;
    std::map<std::string, std::function<std::string()>> inner;  // structs that are in this one

    template <class T> void save_override(const FieldOf<T> &field) {
        std::string bound;
        if (field.most != SIZE_MAX)
            bound = "at most " + std::to_string(field.most) + (is_vector<T> ? " elements" : " bytes");
        if (field.least < field.greatest) bound = std::to_string(field.least) + " to " + std::to_string(field.greatest);
        std::string since = field.since > 8 ? std::to_string(field.since) : "";
        if (field.for_people) since += ", left out for older";
        std::string kind_words = kind<T>();
        if constexpr (std::is_arithmetic_v<T>)
            if (field.const_value() != T{}) kind_words += "; default " + text_of_number(field.const_value());
        table += "| " + std::to_string(++number_) + " | `" + field.name() + "` | " + kind_words;
        table += " | " + bound + " | " + since + " |\n";
    }

private:
    template <class T> std::string kind() {
        if constexpr (is_vector<T>) {
            return "list of " + kind<typename T::value_type>();
        } else if constexpr (std::is_same_v<T, bool>) {
            return "natural, 0 or 1";
        } else if constexpr (ByteEnum<T>) {
            return "natural, " + name_of_type<T>() + " up to " + std::to_string(static_cast<int>(last_of(T{})));
        } else if constexpr (FixedInteger<T>) {
            const std::string bits = std::to_string(8 * sizeof(T)) + " bits";
            return (std::is_signed_v<T> ? "integer, " : "natural, ") + bits;
        } else if constexpr (std::is_same_v<T, double>) {
            return "real";
        } else if constexpr (std::is_same_v<T, std::string>) {
            return "bytes";
        } else {
            inner[name_of_type<T>()] = [] { return rows<T>(); };
            return "fields of " + name_of_type<T>();
        }
    }
    template <class T> static std::string rows() {
        Rows all;
        walk_fields(all, T{});
        pending().insert(all.inner.begin(), all.inner.end());
        return all.table;
    }
    int number_ = 0;

public:
    // Structs that are named in what was made so far.
    static std::map<std::string, std::function<std::string()>> &pending() {
        static std::map<std::string, std::function<std::string()>> all;
        return all;
    }
    template <class T> static std::string of() { return rows<T>(); }
};

std::string section(const std::string &title, const std::string &name, const std::string &rows,
                    const std::map<std::string, std::string> &texts, std::string way = "") {
    const auto text = texts.find(name);
    INFO(name);
    REQUIRE(text != texts.end());
    if (!way.empty()) way = std::string(1, static_cast<char>(std::toupper(way[0]))) + way.substr(1) + ".\n\n";
    std::string out = "\n### " + title + "\n\n" + way + "```cpp\n" + text->second + "```\n\n";
    if (rows.empty()) return out + "No fields.\n";
    return out + "| number | name | kind | bound | since |\n|--:|---|---|---|---|\n" + rows;
}

template <std::size_t... I> std::vector<std::pair<std::string, std::string>> all_rows(std::index_sequence<I...>) {
    return {{kind_name(AnyMessage(std::variant_alternative_t<I, AnyMessageOf>{})),
             Rows::of<std::variant_alternative_t<I, AnyMessageOf>>()}...};
}

std::string listing() {
    const auto texts = definitions();
    std::string out;
    std::uint16_t kind = 0;
    for (const auto &[name, rows] : all_rows(std::make_index_sequence<std::variant_size_v<AnyMessageOf>>{})) {
        const std::string number = std::to_string(++kind), way = way_of(name);
        INFO(name);
        REQUIRE(!way.empty());
        out += section(number + " " + name, name, rows, texts, way + (opens(kind) ? "; begins a connection" : ""));
    }
    out += "\n## 5. Structs in messages\n";
    std::set<std::string> done;
    while (true) {
        const auto &pending = Rows::pending();
        const auto next =
            std::find_if(pending.begin(), pending.end(), [&](const auto &p) { return done.count(p.first) == 0; });
        if (next == pending.end()) return out;
        const auto [name, rows] = *next;
        done.insert(name);
        const std::string made = rows();
        out += section(name, name, made, texts);
    }
}

}  // namespace

TEST_CASE("the page about the protocol has every message as the programs have it") {
    const std::string path = std::string(DCS_SOURCE_DIR) + "/docs/PROTOCOL.md";
    const std::string page = text_of("docs/PROTOCOL.md");
    const std::string begin = "<!-- listing: made by protocol_page_test, DCS_REWRITE=1 rewrites it -->\n";
    const std::string end = "<!-- end of the listing -->\n";
    const std::size_t from = page.find(begin), to = page.find(end);
    REQUIRE(from != std::string::npos);
    REQUIRE(to != std::string::npos);
    const std::string now = listing() + "\n";
    if (std::getenv("DCS_REWRITE")) {
        std::ofstream(path) << page.substr(0, from + begin.size()) << now << page.substr(to);
        return;
    }
    CHECK(page.substr(from + begin.size(), to - from - begin.size()) == now);
}

TEST_CASE("the page about the protocol names the forms that this program reads") {
    const std::string page = text_of("docs/PROTOCOL.md");
    CHECK(page.find("forms " + std::to_string(our_forms.oldest) + " to " + std::to_string(our_forms.newest)) !=
          std::string::npos);
}
