// Says to a scheduler whatever it is ordered to, as a peer that runs it: one connection at a time, orders on standard
// input,
// one line of answer to each. Messages are those of tests/unit/wire/samples.h with some fields set to other values.
//   unix PATH | tls ADDRESS PKI_DIR|- [AUTHORITY_DIR]    opened, or: closed WHY
//   say KIND [FIELD=VALUE]...     said. FIELD as in `spec.argv[0]`; `argv.size`; %-escapes; VALUE @request: a request
//                                 for a certificate, signed with the key of PKI_DIR or a new one
//   frame KIND [FIELD=VALUE]...   its bytes in hex, said to no peer
//   hear                          KIND FIELD=VALUE..., or: closed WHY; or: silence, after a minute
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "base/clock.h"
#include "base/text.h"
#include "net/loop.h"
#include "pki/authority.h"
#include "tests/unit/wire/samples.h"
#include "wire/message.h"
#include "wire/archives.h"

namespace {
using namespace dcs;
using Fields = std::map<std::string, std::string>;

std::string escaped(const std::string &text) {
    std::string out;
    char hex[4];
    for (const unsigned char c : text.substr(0, 400)) {
        std::snprintf(hex, sizeof hex, "%%%02x", c);
        out += std::isalnum(c) || c == '.' || c == '_' || c == '-' || c == '/' ? std::string(1, char(c)) : hex;
    }
    return out;
}

std::string unescaped(const std::string &text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '%' && i + 2 < text.size()) {
            out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
            i += 2;
        } else {
            out += text[i];
        }
    return out;
}

// Visits every field by name: sets those that are to be set, and tells what is there.
class Visitor : public boost::archive::detail::interface_oarchive<Visitor> {
public:
    explicit Visitor(Fields set = {}) : set_(std::move(set)) {}
    std::string told;
    const Fields &unused() const { return set_; }

    template <class T> void save_override(const wire::FieldOf<T> &field) {
        visit(place_ + field.name(), const_cast<T &>(field.const_value()));
    }
    template <class T> void save_override(const T &value) { wire::walk_fields(*this, value); }

private:
    template <class T> void visit(const std::string &name, T &value) {
        if constexpr (std::is_same_v<T, std::string>) {
            if (const auto text = wanted(name)) value = *text;
            told += " " + name + "=" + escaped(value);
        } else if constexpr (wire::is_vector<T>) {
            if (const auto size = wanted(name + ".size")) value.resize(std::stoul(*size));
            for (std::size_t i = 0; i < value.size(); ++i) visit(name + "[" + std::to_string(i) + "]", value[i]);
        } else if constexpr (std::is_arithmetic_v<T>) {
            if (const auto text = wanted(name)) value = static_cast<T>(std::stod(*text));
            told += " " + name + "=" + std::to_string(value);
        } else if constexpr (std::is_enum_v<T>) {
            if (const auto text = wanted(name)) value = static_cast<T>(std::stoi(*text));
            told += " " + name + "=" + std::to_string(static_cast<int>(value));
        } else {
            const std::string before = place_;
            place_ = name + ".";
            wire::walk_fields(*this, value);
            place_ = before;
        }
    }
    std::optional<std::string> wanted(const std::string &name) {
        const auto found = set_.find(name);
        if (found == set_.end()) return {};
        const std::string value = found->second;
        set_.erase(found);
        return value;
    }
    Fields set_;
    std::string place_;
};

class Speaker {
public:
    std::string obey(std::istringstream &words) {
        std::string order;
        words >> order;
        if (order == "unix") return open_unix(words);
        if (order == "tls") return open_tls(words);
        if (order == "say" || order == "frame") return say(words, order == "frame");
        return order == "hear" ? hear() : "unknown order " + order;
    }

private:
    std::string open_unix(std::istringstream &words) {
        std::string path;
        words >> path;
        begin();
        conn_ = loop_->connect_unix(path, limits_);
        return hear();
    }

    std::string open_tls(std::istringstream &words) {
        std::string address, directory, authority_directory;
        words >> address >> directory >> authority_directory;
        net::TlsSelf self;
        net::TlsTrust trust;
        trust.role = pki::Role::scheduler;
        key_.clear();
        if (directory != "-") {
            const auto who = pki::read_identity(directory);
            if (!who) return "closed " + who.status().text;
            self = {who->key, who->certificate.der, who->authority.der};
            trust.authority = who->authority.der;
            key_ = who->key;
        } else {
            const auto authority = pki::authority_in(authority_directory, wall_clock_s());
            if (!authority) return "closed " + authority.status().text;
            trust.authority = authority->certificate.der;
        }
        const auto context = net::tls_context(self, trust);
        if (!context) return "closed " + context.status().text;
        begin();
        conn_ = loop_->connect_tls(address, limits_, *context);
        return hear();
    }

    void begin() {
        loop_ = net::Loop::create();
        limits_.max_payload = 32u << 20;
    }

    std::string say(std::istringstream &words, bool only_bytes) {
        std::string kind, field;
        words >> kind;
        Fields set;
        while (words >> field) {
            const std::size_t at = field.find('=');
            if (at == std::string::npos) return "no field: " + field;
            const std::string value = field.substr(at + 1);
            set[field.substr(0, at)] = value == "@request" ? request() : unescaped(value);
        }
        for (wire::AnyMessage &message : samples_) {
            if (wire::kind_name(message) != kind) continue;
            wire::AnyMessage mine = message;
            Visitor visitor(set);
            std::visit([&](auto &m) { visitor << m; }, mine);
            // What a stranger cannot say in the opening form.
            auto *approve = std::get_if<wire::ApproveHost>(&mine);
            if (approve && set.count("replace") == 0) approve->replace = 0;
            auto *open = std::get_if<wire::OpenSession>(&mine);
            if (open && set.count("nice") == 0) open->nice = 0;
            if (!visitor.unused().empty()) return "no such field: " + visitor.unused().begin()->first;
            if (only_bytes) {  // whose fields have places that tests know, where that form has the message
                auto frame = wire::encode(mine, ++request_, wire::positional_form);
                if (!frame) frame = wire::encode(mine, request_, wire::newest_form);
                return frame ? hex_of(*frame) : frame.status().text;
            }
            const Status s = loop_->send(conn_, mine, ++request_);
            return s ? "said" : s.text;
        }
        return "no such message: " + kind;
    }

    std::string request() {
        if (key_.empty()) key_ = pki::new_key();
        const auto made = pki::make_request(key_);
        return made ? *made : "";
    }

    std::string hear() {
        const Instant until = boot_clock() + seconds(60);
        while (boot_clock() < until) {
            for (const net::Arrival &a : loop_->wait(until, 1)) {
                if (a.what == net::What::opened) return "opened";
                if (a.what == net::What::closed) return "closed " + a.why;
                if (a.what != net::What::frame) continue;
                const auto message = wire::decode_payload(a.header, a.payload);
                if (!message) return "nonsense " + message.status().text;
                Visitor visitor;
                std::visit([&](const auto &m) { visitor << m; }, *message);
                return wire::kind_name(*message) + visitor.told;
            }
        }
        return "silence";
    }

    std::unique_ptr<net::Loop> loop_;
    net::Limits limits_;
    ConnId conn_{};
    std::uint64_t request_ = 0;
    std::string key_;
    std::vector<wire::AnyMessage> samples_ = wire::samples::all();
};
}  // namespace

int main() {
    Speaker speaker;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string answer = speaker.obey(words);
        for (char &c : answer)
            if (c == '\n') c = ' ';
        std::cout << answer << std::endl;
    }
}
