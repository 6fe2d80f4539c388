#pragma once
// What a verb is, and one invocation of it.
#include <cstdio>
#include <string>
#include <vector>

#include "arguments.h"
#include "failure.h"
#include "table.h"
#include "base/json.h"

namespace dcs::commands {

struct Call {
    Format format = Format::table;
    Arguments arguments;
    std::string directory;  // of the pool; absolute
    int failure_exit = 0;   // `dcs run` and `dcs map`: the exit code of every failure of their own

    int fail(const Failure &failure) const {
        const int exit = report(failure, format);
        return failure_exit != 0 ? failure_exit : exit;
    }
};

// --help says these one after the other, with the usage between `about` and the options.
struct Verb {
    const char *noun;  // "session"; "" for verbs that stand alone
    const char *name;
    const char *words = "";    // behind the options: "NAME...", "SEL [DIR]"; how many there may be is checked by it
    const char *summary;       // one line
    const char *about;         // what it does, then "Examples:" with some
    OptionTable options = {};  // besides those that every verb has
    const char *notes = "";
    int (*run)(const Call &);
    bool command_follows = false;  // the words are a command line
    int failure_exit = 0;
    bool formats = true;  // -o makes a difference
};

// A question on standard error; the answer comes from standard input.
inline bool says_yes(const std::string &question) {
    std::fprintf(stderr, "%s [y/N] ", question.c_str());
    char answer[16] = "";
    return std::fgets(answer, sizeof answer, stdin) != nullptr && (answer[0] == 'y' || answer[0] == 'Y');
}

// Documents on standard output.

// Prints {"schema":SCHEMA,NAME:DOCUMENT} as one line.
inline void print_document(const char *schema, const char *name, const std::string &document) {
    std::printf("%s\n", JsonObject(schema).add_raw(name, document).text().c_str());
}

// In the format that was asked for: the document, the name of what was done or is shown, or words for people. What a
// verb returns.
inline int print_as_asked(const Call &call, const JsonObject &document, const std::string &name,
                          const std::string &words) {
    const std::string text = call.format == Format::json ? document.text() : call.format == Format::name ? name : words;
    std::printf("%s\n", text.c_str());
    return exits::ok;
}

// What a verb has done or lists: at once by its name or in words for people, or at the end as one document.
class Listing {
public:
    Listing(const Call &call, const char *schema, const char *member)
        : format_(call.format), schema_(schema), member_(member) {}
    // No words: a row of a table. No document: its name.
    void add(const std::string &name, const std::string &words, const std::string &document = "") {
        rows_.push_back(document.empty() ? json_string(name) : document);
        const std::string &text = format_ == Format::name ? name : words;
        if (format_ != Format::json && !text.empty()) std::printf("%s\n", text.c_str());
    }
    std::size_t size() const { return rows_.size(); }
    // What the verb returns. `below`: for people.
    int end(const std::string &below = "") const {
        if (format_ == Format::json) print_document(schema_, member_, json_array(rows_));
        else if (format_ == Format::table && !below.empty()) std::printf("%s\n", below.c_str());
        return exits::ok;
    }
    int end(const Table &table, const std::string &below) const {
        return end((rows_.empty() ? "" : table.text() + "\n") + below);
    }

private:
    const Format format_;
    const char *const schema_, *const member_;
    std::vector<std::string> rows_;
};

}  // namespace dcs::commands
