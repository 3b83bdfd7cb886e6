/* SPDX-License-Identifier: MIT */
/* A plugin that is given many jobs: each answers for itself, or throws for all.
 */
#include <stdexcept>
#include <weir/plugin.hpp>

struct handler {
    void run_batch(weir::batch &jobs)
    {
        for (std::size_t i = 0; i < jobs.size(); i++) {
            auto n = jobs[i].i64("n").value();

            if (n == 0)
                throw std::runtime_error("thrown for all");
            if (n == 2)
                jobs.answer(i, weir::fail("even"));
        }
    }
};

WEIR_PLUGIN_EXPORT = weir::plugin<handler>("batch");
