"""The sandbox: runs code that models wrote, and nothing that it does can pass, escape or slow what comes after it.

In: a program, and tests or input. Out: a `Report`. `pool.Sandbox` is the door; the modules below it:

    pool, worker            in the user's process: a few warm workers, one request at a time each
    server                  a worker: a process without the user's data that forks a pair of processes for each program
    candidate, examiner     the pair: the program, and the tests; they exchange values (`wire`, `peer`), never objects
    confinement             what both are put under: `landlock`, `seccomp` (`syscalls`), `limits`, `namespaces`, another user
    floor                   what this machine offers, and what to do when it is too little

A program never shares a process with its tests, so it cannot patch, read or forge them: all it can do is answer calls.
Left out on purpose: other languages than Python, and other systems than Linux.
"""
