/* SPDX-License-Identifier: MIT */

/* The weir command: its table of commands. */

#include "adapters/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const struct weir__command *const commands[] = {
    &weir__cmd_run,           &weir__cmd_check,        &weir__cmd_doctor,
    &weir__cmd_add,           &weir__cmd_show,         &weir__cmd_list,
    &weir__cmd_delete,        &weir__cmd_reschedule,   &weir__cmd_pause,
    &weir__cmd_resume,        &weir__cmd_purge,        &weir__cmd_stats,
    &weir__cmd_topic_list,    &weir__cmd_topic_show,   &weir__cmd_topic_set,
    &weir__cmd_dead_list,     &weir__cmd_dead_requeue, &weir__cmd_dead_purge,
    &weir__cmd_plugin_info,   &weir__cmd_plugin_try,   &weir__cmd_plugin_new,
    &weir__cmd_server_status, &weir__cmd_server_stop,
};

/* A stream that came closed would be the number of the next socket, and output
 * would go to the server. What takes its place refuses as a closed one does. */
static void occupy_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", mode); /* gets the lowest number: fd */
    }
}

int main(int argc, char **argv)
{
    struct sigaction ignore;

    occupy_streams();
    memset(&ignore, 0, sizeof(ignore));
    ignore.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &ignore, NULL); /* cannot fail for SIGPIPE */
    return (int)weir__cli_main(commands, sizeof(commands) / sizeof(commands[0]),
                               argc, argv);
}
