// golomb: the shortest Golomb ruler with N marks, by branch and bound on the pool. A grain searches all
// rulers that begin with three given marks for one that is shorter than a bound. The bound of a grain is the
// length of the shortest ruler known at its submission, so submissions depend on the results so far.
//
// It can be run again after any kill, because all decisions depend on the results in their order: at most WINDOW
// grains are unfinished, each result permits exactly one more, and a rerun gets the same results in the same
// order. It repeats the same calls, with the same bounds, up to the place where it was.
//
// Exit status: 0 if it succeeds and the result equals the published length, if any; 1: an error; 2: wrong usage.
#include <charconv>
#include <climits>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include <unistd.h>

#include "dcs.hpp"

namespace
{

constexpr int window = 16, first_bound = 255, notice_minutes = 1;
constexpr int marks_least = 5, marks_most = 14;
// OEIS A003022: lengths of the shortest rulers, from 0 marks.
constexpr int published[] = {0, 0, 1, 3, 6, 11, 17, 25, 34, 44, 55, 72, 85, 106, 127};

struct branch {
    int second = 0, third = 0;
};

struct ruler {
    int length = 0;  // 0: none is known
    std::string marks = {};
};

// The first marks of rulers that may be shorter than the bound, in a fixed order. The marks after the first two gaps
// form a ruler, too.
class branches
{
public:
    explicit branches(int marks) : marks_(marks)
    {
    }
    bool next(int bound, branch &to)
    {
        for (;; third_ = ++second_) {
            // Of two mirror images only the one with the smaller first gap, which is at most half of the length.
            if (2 * second_ >= bound) return false;
            while (++third_ + published[marks_ - 2] < bound) {
                if (third_ == 2 * second_) continue;  // the same gap twice
                to = {second_, third_};
                return true;
            }
        }
    }

private:
    int marks_, second_ = 1, third_ = 1;
};

std::string input_of(int marks, int bound, branch at)
{
    std::ostringstream text;
    text << marks << " 3 " << bound << "\n3 0 " << at.second << ' ' << at.third << '\n' << at.third + 1 << "\n0\n";
    return text.str();
}

// The grain program in the directory of this program.
std::string default_grain()
{
    char path[PATH_MAX];
    const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
    const std::string own(path, length > 0 ? static_cast<std::size_t>(length) : 0);
    return own.substr(0, own.rfind('/') + 1) + "golomb_below";
}

ruler read_ruler(const dcs::result &result)
{
    if (!result.ok())
        throw std::runtime_error("grain " + std::to_string(result.grain) + " failed with signal " +
                                 std::to_string(result.signal) + ", status " + std::to_string(result.code) + ": " +
                                 result.error);
    if (result.output == "none\n") return {};
    ruler found;
    std::istringstream text(result.output);
    if (!(text >> found.length) || !std::getline(text >> std::ws, found.marks))
        throw std::runtime_error("grain " + std::to_string(result.grain) + " answered \"" + result.output + '"');
    return found;
}

ruler search(dcs::session &session, int marks, const std::string &grain)
{
    branches left(marks);
    ruler best;
    int number = 0, unfinished = 0;
    bool more = true;
    const auto fill = [&] {
        branch at;
        const int bound = best.length > 0 ? best.length : first_bound;
        while (unfinished < window && (more = more && left.next(bound, at))) {
            session.submit(number++, {.argv = {grain}, .input = input_of(marks, bound, at), .notice = notice_minutes});
            ++unfinished;
        }
    };
    fill();
    for (const dcs::result &result : session.results(1)) {  // one by one, because each affects the next submission
        --unfinished;
        const ruler found = read_ruler(result);
        if (found.length > 0 && (best.length == 0 || found.length < best.length)) {
            best = found;
            std::cerr << "golomb: grain " << result.grain << " found one of length " << best.length << '\n';
        }
        fill();
    }
    if (unfinished > 0)
        throw std::runtime_error(std::to_string(unfinished) + " grains were killed: the search is not complete");
    std::cerr << "golomb: " << number << " grains\n";
    return best;
}

int judge(int marks, const ruler &best)
{
    std::cout << best.length << ": " << best.marks << '\n';
    if (best.length == published[marks]) {
        std::cerr << "golomb: this is the published length\n";
        return 0;
    }
    std::cerr << "golomb: the published length is " << published[marks] << '\n';
    return 1;
}

bool parse(std::string_view text, int &marks)
{
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), marks);
    return error == std::errc{} && end == text.data() + text.size() && marks >= marks_least && marks <= marks_most;
}

}  // namespace

int main(int argc, char **argv)
{
    int marks = 11;
    std::string grain = default_grain();
    bool good = true;
    for (int i = 1; i < argc && good; ++i) {
        if (std::string_view(argv[i]) == "--grain" && i + 1 < argc) grain = argv[++i];
        else good = parse(argv[i], marks);
    }
    if (!good) {
        std::cerr << "usage: golomb [--grain PATH] [N]\n"
                     "The shortest Golomb ruler with N marks (5 to 14, default 11).\n";
        return 2;
    }
    try {
        dcs::session session = dcs::session::resume("golomb-" + std::to_string(marks));
        const ruler best = search(session, marks, grain);
        session.close();
        return judge(marks, best);
    } catch (const dcs::error &error) {
        std::cerr << "golomb: " << error.what()
                  << "\nRun the same command again when the cause is removed: it continues where it was.\n";

    } catch (const std::exception &error) {
        std::cerr << "golomb: " << error.what() << '\n';
    }
    return 1;
}
