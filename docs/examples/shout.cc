/* SPDX-License-Identifier: MIT */
/* A plugin in C++17: logs the text of its jobs in capitals. */
#include <cctype>
#include <string>
#include <weir/plugin.hpp>

class shout
{
  public:
    static constexpr weir_option options[] = {
        weir::option("mark", WEIR_OPTION_TEXT, "!", "What stands behind it."),
    };

    explicit shout(const weir::opening &with) : mark(with.text(0)) {}

    weir::verdict run(weir::job &job)
    {
        auto text = job.str("text");

        if (!text)
            throw weir::failure("the body has no text");
        std::string loud(*text);
        for (char &c : loud)
            c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        job.log(WEIR_LEVEL_INFO, loud + mark);
        return weir::done();
    }

  private:
    std::string mark;
};

WEIR_PLUGIN_EXPORT = weir::plugin<shout>("shout");
