/* SPDX-License-Identifier: MIT */
/* A plugin whose handler throws what its option says. With BARE it is called
 * from C as it is. */
#include <cerrno>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <weir/plugin.hpp>

class handler
{
  public:
#ifdef BLOCKING
    static constexpr bool is_blocking = true;
#endif
    static constexpr weir_option options[] = {
        weir::option("what", WEIR_OPTION_TEXT, "error", "What is thrown."),
    };

    explicit handler(const weir::opening &with) : what(with.text(0))
    {
        if (what == "open")
            throw std::runtime_error("no such till");
        if (what == "code")
            throw weir::error(WEIR_ESYSTEM, "the till is on fire");
    }

    weir::verdict run(weir::job &job)
    {
        if (what == "error")
            throw std::runtime_error("the till is locked");
        if (what == "failure")
            throw weir::failure("no till at all");
        if (what == "number")
            throw 7;
        if (what == "memory")
            throw std::bad_alloc();
        if (what == "files")
            throw std::system_error(EMFILE, std::generic_category());
        if (what == "threads")
            throw std::system_error(EAGAIN, std::system_category());
        if (what == "refused")
            throw weir::error(WEIR_ENOMEM, "cannot be added");
        if (what == "denied")
            throw std::system_error(EACCES, std::generic_category(), "a file");
        if (what == "handle") {
            auto dropped = job.handle();

            throw std::runtime_error("thrown with a handle");
        }
        if (what == "dropped") {
            auto dropped = job.handle();

            return weir::pending();
        }
        if (what == "retry")
            return weir::retry_after(1500, "asked for");
        if (what == "snooze")
            return weir::snooze(2500);
        job.count("seen");
        return weir::done();
    }

#ifndef BLOCKING
    void flush()
    {
        if (what == "flush")
            throw std::runtime_error("never seen");
        if (what == "short")
            throw std::bad_alloc();
    }
#endif

  private:
    std::string_view what;
};

#ifdef BARE
static enum weir_verdict run(void *, struct weir_job *)
{
    throw std::runtime_error("the till is locked");
}

static weir_plugin bare()
{
    weir_plugin it{};

    it.abi = WEIR_PLUGIN_ABI;
    it.size = sizeof(it);
    it.name = "bare";
    it.run = run;
    return it;
}

WEIR_PLUGIN_EXPORT = bare();
#else
WEIR_PLUGIN_EXPORT = weir::plugin<handler>("throws");
#endif
