/* SPDX-License-Identifier: MIT */

/* The weir command: what a process needs before its first word is looked at. */

#include "adapters/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

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
    weir__leave_first_process();
    memset(&ignore, 0, sizeof(ignore));
    ignore.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &ignore, NULL); /* cannot fail for SIGPIPE */
    return (int)weir__cli_main(argc, argv);
}
